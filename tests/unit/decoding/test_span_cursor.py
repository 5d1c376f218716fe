"""Extractive fields: what is not in the document cannot be written, and whatever is can be."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from pipeline import Span
from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Guide, NoSpanError, SpanDocument, SpanView, compile_grammar, compile_guide, review
from pipeline.decoding.span_document import view_of_values
from tests.unit.decoding.support import EOS, legal_ids, vocabulary


class Item(BaseModel):
    name: Annotated[str, Span()]


class Receipt(BaseModel):
    company: Annotated[str, Span()]
    day: Annotated[dt.date, Span()] | None
    total: Annotated[Decimal, Span()]
    items: list[Item]
    note: str


@cache
def guide() -> Guide:
    return compile_guide(compile_grammar(Receipt), vocabulary())


def _words(text: str) -> SpanView:
    """Every run of words of a line."""
    values = []
    for line in re.finditer(r"[^\n]+", text):
        words = list(re.finditer(r"\S+", line.group()))
        for first in range(len(words)):
            for last in range(first, len(words)):
                start, end = words[first].start(), words[last].end()
                spelling = json.dumps(line.group()[start:end], ensure_ascii=False)[1:-1].encode()
                values.append((spelling, line.start() + start, line.start() + end))
    return view_of_values(values)


def _document(text: str) -> SpanDocument:
    days = [(m.group().encode(), *m.span()) for m in re.finditer(r"\d{4}-\d\d-\d\d", text)]
    sums = [(m.group().encode(), *m.span()) for m in re.finditer(r"(?<![\d-])\d+\.\d\d", text)]
    views = {"string": _words(text), "date": view_of_values(days), "decimal": view_of_values(sums)}
    made = SpanDocument(tuple(views[kind["type"]] for kind in guide().span_kinds))
    return SpanDocument.from_bytes(made.to_bytes())


TEXT = 'ABC "SDN" BHD\ncafé ab\n2018-02-03 12.50\n12.50 total'
words = st.sampled_from(["ab", "abc", "SDN", "日本", 'q"t', "é", "12.50", "3.00", "2018-02-03", "company"])
texts = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4).map("\n".join)


@settings(max_examples=120, deadline=None)
@given(
    text=texts,
    choices=st.lists(st.integers(0, 10**6), min_size=80, max_size=80),
    extra=st.integers(0, 30),
    reserve=st.sampled_from([0, 3, 8, 40]),
)
def test_every_extractive_value_stands_in_the_document_where_it_says(
    text: str, choices: list[int], extra: int, reserve: int
) -> None:
    """Within every budget, whatever is kept back for later fields, and the mask forbids just what `advance` refuses."""
    document = _document(text)
    try:
        unbounded = guide().cursor(document=document)
    except NoSpanError as error:
        assert "total" in str(error) and not re.search(r"\d+\.\d\d", text)  # noqa: PT017, PT018
        return
    budget = unbounded.least_left + extra
    kept = (reserve,) * len(guide().fields)
    cursor = guide().cursor(budget, kept, document)
    taken: list[int] = []
    for choice in choices[:budget]:
        legal = legal_ids(cursor.row().words, guide().vocab_size)
        token_id, other = legal[choice % len(legal)], choice % guide().vocab_size
        assert cursor.validate([other]) == [other] * (other in legal)
        assert cursor.advance(token_id)
        cursor.rollback(1)
        assert legal_ids(cursor.row().words, guide().vocab_size) == legal
        assert cursor.advance(token_id)
        if cursor.is_terminated:
            break
        taken.append(token_id)
    assert cursor.is_accepting
    record = Receipt.model_validate_json(guide().decode(taken))
    marks = review(guide(), taken, budget, kept, document)
    found = {path: [text[a:b] for a, b in places] for path, places in ((m.path, m.places) for m in marks.spans)}
    assert set(found["company"]) == {record.company}
    assert {Decimal(value) for value in found["total"]} == {record.total}
    assert (record.day is None) == ("day" not in found)


@pytest.mark.parametrize("company", ['ABC "SDN" BHD', '"SDN"', "café ab", "total", "12.50 total"])
def test_every_stretch_of_words_can_be_written(company: str) -> None:
    document = _document(TEXT)
    record = {"company": company, "day": None, "total": "12.50", "items": [{"name": "ab"}], "note": ""}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).replace('"12.50"', "12.50", 1)
    text = text.replace(json.dumps(company, ensure_ascii=False), json.dumps(company, ensure_ascii=False), 1)
    cursor = guide().cursor(document=document)
    for byte in text.encode():
        assert cursor.advance(4 + byte), text
    assert cursor.is_accepting
    assert cursor.advance(EOS)


def test_a_reserve_keeps_a_copied_value_from_eating_the_record() -> None:
    name = "a shop whose name goes on and on and on and on until the record has no room for anything else"
    document = _document(f"{name}\n2018-02-03 12.50")
    lengths = {}
    for reserve in (0, 6):
        budget = guide().cursor(document=document).least_left + 60
        cursor = guide().cursor(budget, (reserve,) * len(guide().fields), document)
        assert all(cursor.advance(4 + byte) for byte in b'{"company":"')
        lengths[reserve] = len(cursor.validate([4 + byte for byte in name.encode()]))
    assert lengths[0] - lengths[6] >= 6


def test_the_same_text_at_two_places_is_known_to_be_ambiguous() -> None:
    document = _document(TEXT)
    text = '{"company":"ABC","day":null,"total":12.50,"items":[],"note":""}'
    marks = review(guide(), [4 + byte for byte in text.encode()], None, document=document)
    places = {mark.path: mark.places for mark in marks.spans}
    assert len(places["company"]) == 1
    assert [TEXT[a:b] for a, b in places["total"]] == ["12.50", "12.50"]


@pytest.mark.parametrize("company", ["ABC SDN", "BHD\\ncafé", "XYZ", "AB", "ABC ", ""])
def test_what_is_no_stretch_of_words_cannot_be_written(company: str) -> None:
    cursor = guide().cursor(document=_document(TEXT))
    text = f'{{"company":"{company}"'
    assert not all(cursor.advance(4 + byte) for byte in text.encode())


def test_a_document_without_a_value_that_must_be_there_is_refused_by_field() -> None:
    with pytest.raises(NoSpanError, match="total"):
        guide().cursor(document=_document("no amount here"))


def test_the_plain_grammar_of_the_same_model_needs_no_document() -> None:
    plain = compile_guide(compile_grammar(Receipt, extractive=False), vocabulary())
    assert plain.span_kinds == ()
    assert plain.cursor(plain.least_tokens).least_left == plain.least_tokens


_WALK = """
import sys
from numba.core.dispatcher import Dispatcher
from pipeline.decoding import Guide, SpanDocument
from pipeline.decoding import kernels, unescaped_kernels

def compiled():
    modules = (kernels, unescaped_kernels)
    return {(name, str(kind)) for module in modules for name, found in vars(module).items()
            if isinstance(found, Dispatcher) for kind in found.signatures}

guide = Guide.load(sys.argv[1])
guide.warm()
before = compiled()
document = SpanDocument.from_bytes(open(sys.argv[2], "rb").read())
cursor = guide.cursor(guide.least_tokens + 30, guide.usual_reserve, document)
while not cursor.is_terminated:
    row = cursor.row()
    cursor.advance(next(index for index in reversed(range(guide.vocab_size)) if row.has(index)))
assert before, "nothing was compiled"
assert compiled() == before, compiled() - before
"""


def test_a_warm_guide_has_all_its_machine_code(tmp_path: Path) -> None:
    """Fails when a step compiles: seconds in which no request of the engine goes on."""
    guide().save(tmp_path / "guide")
    (tmp_path / "document").write_bytes(_document(TEXT).to_bytes())
    done = subprocess.run(
        [sys.executable, "-c", _WALK, str(tmp_path / "guide"), str(tmp_path / "document")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


NO_DAY = "ABC SDN\n12.50 total"
START = b'{"company":"ABC","day":'


@pytest.mark.parametrize("budget", [None, 70_000, 400])
def test_a_value_that_the_document_lacks_is_never_begun_and_no_budget_is_to_blame(budget: int | None) -> None:
    cursor = guide().cursor(budget, document=_document(NO_DAY))
    for byte in START:
        assert not cursor.is_tightened
        assert cursor.advance(4 + byte)
    assert {guide().decode((token_id,))[:1] for token_id in legal_ids(cursor.row().words, guide().vocab_size)} == {b"n"}
    assert not cursor.advance(4 + ord('"'))
    text = b'null,"total":12.50,"items":[],"note":""}'
    marks = review(guide(), [4 + byte for byte in START + text], budget, document=_document(NO_DAY))
    assert marks.is_complete
    assert marks.first_tightened is None


def test_a_long_stretch_is_not_begun_where_it_cannot_be_ended() -> None:
    """The mask and `advance` agree where the room is above 256 tokens and the document's one line above that."""
    line = "x" * 600
    document = SpanDocument((view_of_values([(line.encode(), 0, 600), (b"ab", 601, 603)]),) * 3)
    span_guide = compile_guide(compile_grammar(Item), vocabulary())
    document = SpanDocument(document.views[: len(span_guide.span_kinds)])
    cursor = span_guide.cursor(500, document=document)
    assert all(cursor.advance(4 + byte) for byte in b'{"name":"')
    for token_id in legal_ids(cursor.row().words, span_guide.vocab_size):
        assert cursor.validate([token_id]) == [token_id]
    assert not cursor.advance(4 + ord("x"))


class DateOrText(BaseModel):
    when: Annotated[dt.date | str, Span()]


class TextOrKeyword(BaseModel):
    company: Annotated[str, Span()] | Literal["unknown"]


class ByName(BaseModel):
    sums: dict[Annotated[str, Span()], int]


@pytest.mark.parametrize("record", [DateOrText, TextOrKeyword])
def test_copied_values_beside_others_that_begin_alike_are_refused(record: type[BaseModel]) -> None:
    with pytest.raises(SchemaRefusedError, match=r"(when|company).*beside other strings"):
        compile_grammar(record)
    assert compile_grammar(record, extractive=False).fields


def test_a_key_cannot_be_copied() -> None:
    with pytest.raises(SchemaRefusedError, match=r"sums.*take Span off"):
        compile_grammar(ByName)


@pytest.mark.parametrize(
    ("kind", "span", "said"),
    [
        (str, Span(), {}),
        (str, Span(within="document", lines=True), {"within": "document", "lines": True}),
        (str, Span(max_words=3, words=False, pattern="a+"), {"max_words": 3, "words": False, "pattern": "a+"}),
        (dt.date, Span(date_order="dmy"), {"date_order": "dmy"}),
    ],
)
def test_a_schema_gives_the_spans_of_the_class(kind: Any, span: Span, said: dict[str, Any]) -> None:
    schema = create_model("Marked", value=(Annotated[kind, span], ...)).model_json_schema()
    schema["properties"]["value"]["x-span"] = said
    [expected] = compile_grammar(create_model("Marked", value=(Annotated[kind, span], ...))).spans
    [found] = compile_grammar(schema).spans
    assert found.settings == expected.settings


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"patern": "a"}, r"x-span\.patern: unknown key; did you mean 'pattern'\?"),
        ({"within": "page"}, r"x-span\.within: .*'paragraph'"),
        ({"max_words": "x"}, r"x-span\.max_words: .*integer"),
        ({"max_words": 0}, r"x-span: Span\(max_words=0\): at least 1"),
        ({"pattern": "("}, r"x-span: .*pattern"),
        (True, r"x-span: "),
    ],
)
def test_a_setting_of_a_span_that_means_nothing_is_refused(said: Any, reason: str) -> None:
    """Fails when it is passed over: the field would be held to less than its schema says."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-span": said}}, "required": ["a"]}
    with pytest.raises(SchemaRefusedError, match=rf"field a: {reason}"):
        compile_grammar(schema)
