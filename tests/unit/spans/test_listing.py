"""Strings that a pattern or a least length picks, against trying every stretch without partial matches."""

from __future__ import annotations

import json
import logging

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.errors import SchemaRefusedError
from pipeline.spans import SpanFinder, listing
from tests.unit.spans.reading import found_in
from tests.unit.spans.test_views import texts

_PATTERNS = (
    r"\d{2}/\d{2}", r"[A-Z]{2}\d+", r"\w+", r".*", r"a.*b|Z", r"^RM \d+$", r"(?i)rm", r"(?=1)\d+\D", r"\bé\b", r"(.)\1",
    r"🙂?", r"[^a]{3,5}", r"(?:a|b)+(?<!b)",
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(texts, st.sampled_from(_PATTERNS), st.booleans(), st.integers(0, 3))
def test_exactly_the_stretches_that_match_as_a_whole_are_listed(
    text: str, pattern: str, words: bool, least: int
) -> None:
    kind = {"type": "string", "words": words}
    every = [(json.loads(f'"{value}"'), start, end) for value, start, end in found_in(text, kind)]
    wanted = {found for found in every if regex.fullmatch(pattern, found[0]) and len(found[0]) >= least}
    listed = found_in(text, {**kind, "pattern": pattern, "min_length": least})
    assert {(json.loads(f'"{value}"'), start, end) for value, start, end in listed} == wanted


@settings(deadline=None, max_examples=100)
@given(texts, st.integers(2, 6), st.integers(1, 9), st.integers(1, 3))
def test_a_least_length_is_kept_with_the_other_bounds(text: str, least: int, most: int, words: int) -> None:
    kind = {"type": "string", "max_length": most, "max_words": words}
    wanted = {found for found in found_in(text, kind) if len(json.loads(f'"{found[0]}"')) >= least}
    assert set(found_in(text, {**kind, "min_length": least})) == wanted


@settings(deadline=None, max_examples=100)
@given(texts, st.sampled_from(_PATTERNS))
def test_looking_at_several_characters_first_changes_nothing(text: str, pattern: str) -> None:
    kind = {"type": "string", "pattern": pattern}
    alone = found_in(text, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "_MANY", -1)
        assert found_in(text, kind) == alone


@pytest.mark.parametrize("kind", [{"pattern": ".*"}, {"min_length": 2}])
@pytest.mark.parametrize(
    ("limit", "heads"),
    [(40_000, "rowfveymands"), (20_000, "rovmw"), (1_000, "r")],
    ids=["all", "words", "lines"],
)
def test_too_many_stretches_leave_out_the_longest_ones_everywhere(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: dict[str, object],
    limit: int,
    heads: str,
) -> None:
    monkeypatch.setattr(listing, "_MAX_TRIALS", limit)
    monkeypatch.setattr(listing, "_MAX_LISTED", 10 * limit)
    text = "\n".join(f"row {number} of very many words, " * 3 for number in range(10, 60))
    with caplog.at_level(logging.WARNING, listing.__name__):
        found = found_in(text, {"type": "string", "words": False, **kind})
    assert "very" not in caplog.text
    assert "only spans up to" in caplog.text
    rows = {text.count("\n", 0, start) for _, start, _ in found}
    assert rows == set(range(50))
    assert {value[0] for value, _, _ in found if value[0].isalpha()} == set(heads)


def test_stretches_that_are_too_many_are_found_out_without_trying_any_of_them_twice(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limit, trials = 4000, 0
    pattern = regex.compile(".*")

    class Counting:
        def fullmatch(self, text: str, partial: bool = False) -> regex.Match[str] | None:
            nonlocal trials
            trials += 1
            return pattern.fullmatch(text, partial=partial)

    monkeypatch.setattr(listing, "_MAX_TRIALS", limit)
    monkeypatch.setattr(listing, "compiled", lambda _: Counting())
    text = " ".join(map(str, range(100, 400)))
    assert len(found_in(text, {"type": "string", "pattern": ".*"})) > limit / 2
    assert "only spans up to 32 characters" in caplog.text
    assert trials <= limit + len(set(text)) + 1


def test_a_pattern_that_is_none_is_refused_when_the_finder_is_made() -> None:
    with pytest.raises(SchemaRefusedError, match="pattern"):
        SpanFinder([{"type": "string", "pattern": "(a"}])
