"""Stretches of text against a slow reading of the same rules by other means (UAX 29 graphemes from `regex`)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.spans import SpanFinder, folded, folding
from tests.unit.spans.reading import Found, candidates, found_in

_PLAIN = "a b Z é 12 3 ½ . , ( ) - ' \" \\ / $ RM 🙂 東 京 ラー メン สวัส ดี שלום مرحبا नमस्ते 서울 에서 ಠ"
_PIECES = (
    *_PLAIN.split(), "e\u0301", "n\u0303o", "👩\u200d👧", "👍🏽", "🇲🇾🇸🇬", "1\ufe0f\u20e3", "\u200fא", "\u200b",
    "\ufeff",
    "\x01", "\x1b", "\x7f", "soft\u00adhyphen",
)  # fmt: skip
_BLANKS = (" ", "  ", "\t", "\u00a0", "\u3000", "\n", "\r\n", "\n\n", "\r", "\x0c", "\x85", "\u2028", "\u2029", "\x1c")
_WALLS = ("\0", "\ud800", "\udfff")
texts = st.lists(
    st.sampled_from(_PIECES) | st.sampled_from(_BLANKS) | st.sampled_from((*_PIECES, *_BLANKS, *_WALLS)), max_size=14
).map("".join)

_IDEOGRAPH = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}ー]")


def _kind(grapheme: str) -> str:
    first = grapheme[0]
    if first.isspace() or first in "\u200b\u200f\ufeff":
        return "blank"
    if _IDEOGRAPH.match(first):
        return "ideograph"
    for name, form in (("syllable", r"\p{Hangul}"), ("letter", r"\p{L}"), ("digit", r"[\p{Nd}\p{No}]")):
        if regex.match(form, first):
            return name
    return "sign"


def _line_stretches(line: str, *, words: bool) -> set[str]:
    """Every stretch of one folded line."""
    graphemes = regex.findall(r"\X\xad*", line)
    kinds = [_kind(grapheme) for grapheme in graphemes]
    bounds = [0]
    for before, here in pairwise(kinds):
        is_own = here in ("sign", "ideograph", "syllable")
        bounds.append(int(not words or before != here or is_own))
    bounds[0] = 1
    bounds.append(1)
    starts = [index for index, kind in enumerate(kinds) if bounds[index] and kind != "blank"]
    ends = [index + 1 for index, kind in enumerate(kinds) if bounds[index + 1] and kind != "blank"]
    return {"".join(graphemes[start:end]) for start in starts for end in ends if end > start}


def _stretches(text: str, *, words: bool) -> set[str]:
    lines = [part for line in text.splitlines() for part in regex.split("[\0\ud800-\udfff]", line)]
    return {stretch for line in lines for stretch in _line_stretches(folded(line), words=words)}


def _spelt(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


@settings(deadline=None, max_examples=300)
@given(texts, st.booleans())
def test_every_stretch_between_bounds_of_a_line_can_be_said_and_no_other(text: str, words: bool) -> None:
    # The Devanagari cluster is one grapheme since Unicode 15.1 and several here, which only adds bounds.
    if not words:
        text = text.replace("नमस्ते", "नम")
    said = {value for value, _, _ in found_in(text, {"type": "string", "words": words})}
    assert said == {_spelt(stretch) for stretch in _stretches(text, words=words)}


@settings(deadline=None, max_examples=300)
@given(texts, st.sampled_from(["line", "sentence", "paragraph", "document"]), st.booleans())
def test_a_stretch_is_its_place_in_the_text_folded_and_escaped(text: str, within: str, words: bool) -> None:
    for value, start, end in found_in(text, {"type": "string", "within": within, "words": words}):
        source = text[start:end]
        assert value == _spelt(folded(source))
        assert source == source.strip()


@settings(deadline=None, max_examples=200)
@given(texts, st.integers(1, 4), st.integers(1, 12))
def test_bounds_of_length_and_words_keep_exactly_the_stretches_within_them(text: str, words: int, length: int) -> None:
    kind = {"type": "string"}
    every = found_in(text, kind)
    assert _decoded(found_in(text, {**kind, "max_length": length})) == {
        found for found in _decoded(every) if len(found[0]) <= length
    }
    plain = regex.sub(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}ー]", "x", text)
    limited = _decoded(found_in(plain, {**kind, "max_words": words}))
    assert limited == {found for found in _decoded(found_in(plain, kind)) if len(found[0].split()) <= words}


def _decoded(found: list[Found]) -> set[Found]:
    return {(json.loads(f'"{value}"'), start, end) for value, start, end in found}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Sold by (ABC SDN. BHD.) today", "ABC SDN. BHD."),
        ("Sold by (ABC SDN. BHD.) today", "ABC SDN. BHD"),
        ("Sold by (ABC SDN. BHD.) today", "(ABC SDN. BHD.)"),
        ("TOTAL RM12.50", "RM"),
        ("TOTAL RM12.50", "12.50"),
        ("a\t \u00a0b", "a b"),
        ("A\r\nB C", "B C"),
        ('say "hi" \\o/', '\\"hi\\" \\\\o'),
        ("bell\x07 rings", "bell\\u0007 rings"),
        ("東京都千代田区", "千代田"),
        ("서울에서", "서울"),
        ("e\u0301te\u0301 1", "e\u0301te\u0301"),
        ("\ufeffTitle", "Title"),
    ],
)
def test_what_people_mark_can_be_said(text: str, value: str) -> None:
    assert value in {found[0] for found in found_in(text, {"type": "string"})}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Company Ltd", "Comp"),
        ("Company Ltd", "Company "),
        ("one\ntwo", "one two"),
        ("one\0two", "one two"),
        ("e\u0301", "e"),
        ("👩\u200d👧", "👩"),
        ("🇲🇾", "🇲"),
    ],
)
def test_what_is_no_word_or_crosses_a_line_cannot_be_said(text: str, value: str) -> None:
    assert value not in {found[0] for found in found_in(text, {"type": "string"})}


def test_offsets_are_in_characters_of_the_original_text() -> None:
    text = "\u00a0 שלום\u00a0\r\n x\u0301\t\t🙂  東京"
    found = {value: text[start:end] for value, start, end in found_in(text, {"type": "string"})}
    assert found["שלום"] == "שלום"
    assert found["x\u0301 🙂 東"] == "x\u0301\t\t🙂  東"


@pytest.mark.parametrize(
    ("within", "value"),
    [("document", "an ox. C d"), ("paragraph", "an ox. C"), ("sentence", "an ox."), ("line", "ox. C")],
)
def test_a_stretch_stays_within_its_scope(within: str, value: str) -> None:
    text = "an\nox. C\n \nd"
    said = {found[0] for found in found_in(text, {"type": "string", "within": within})}
    assert value in said
    assert all(len(other) <= len(value) for other in said if other.startswith(value[0]))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ('It rains. We stay! Why? "Fun." She left.', ["It rains.", "We stay!", "Why?", '"Fun."', "She left."]),
        ("Mr. Lee of XY Sdn. Bhd. left on 3. Mai. He.", ["Mr. Lee of XY Sdn. Bhd. left on 3. Mai.", "He."]),
        ("今天下雨。我們在家。", ["今天下雨。", "我們在家。"]),
        ("J. R. Tolkien wrote e.g. this. and that", ["J. R. Tolkien wrote e.g. this. and that"]),
        ("One line\nof a sentence. Two", ["One line of a sentence.", "Two"]),
    ],
)  # fmt: skip
def test_sentences_end_where_readers_end_them(text: str, sentences: list[str]) -> None:
    view = SpanFinder([{"type": "string", "within": "sentence"}]).document(text).views[0]
    parts = [part.decode() for part in view.buffer.tobytes().split(b"\xff")]
    assert [json.loads(f'"{part.strip()}"') for part in parts if part.strip()] == sentences


@pytest.mark.parametrize("run", ["...... ", "?!... ", "؟... ", "。。。。", "。！？」", '..") '])
def test_a_run_of_stops_is_looked_at_from_its_first_only(run: str) -> None:
    """Fails when it is looked at from each: a page of `。` would take the square of its length."""
    forms = (folding._WITH_SPACE, folding._WITHOUT_SPACE)
    assert {place for form in forms for place in range(len(run)) if form.match(run + "A", place)} == {0}


@pytest.mark.parametrize("text", ["", " \n ", "\0", "\ud800\udc00", "\u0301", "\ufeff"])
@pytest.mark.parametrize("kind", ["string", "date", "datetime", "time", "decimal", "integer", "number", "enum"])
def test_a_document_without_visible_text_has_no_candidates(text: str, kind: str) -> None:
    view = SpanFinder([{"type": kind, "values": ["x"]}]).document(text).views[0]
    assert view.is_empty
    assert list(candidates(view)) == []


@pytest.mark.parametrize(
    ("text", "within", "values"),
    [
        ("\ufeff ACME Ltd. \n\n 1, High St.\r\nTown  ", "line", ["ACME Ltd.", "1, High St.", "Town"]),
        ("A b\nC d\nE", "document", ["A b", "A b C d", "A b C d E", "C d", "C d E", "E"]),
        ("a\nb\n\nc", "paragraph", ["a", "a b", "b", "c"]),
        (" a\0b ", "line", ["a", "b"]),
        (" \n ", "document", []),
    ],
)  # fmt: skip
def test_whole_lines_begin_and_end_with_what_can_be_seen_of_them(text: str, within: str, values: list[str]) -> None:
    assert [found[0] for found in found_in(text, {"type": "string", "within": within, "lines": True})] == values


@pytest.mark.parametrize("text", ["a\n👨\u200d\n", ".\u200d\n", "👨\u200d", "x .\u200d \u200d\n\n", "👨\u200d\0b"])
def test_a_joiner_that_joins_nothing_is_no_trouble(text: str) -> None:
    """Fails when a sign and a joiner are glued to what cannot be seen: the sign would have no end."""
    said = {value for value, _, _ in found_in(text, {"type": "string"})}
    assert any("👨" in value or "." in value for value in said)
