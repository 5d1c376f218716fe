"""Spans are checked against the documents they come from."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.run.grounding import misplaced

TEXT = "ABC  SDN\tBHD\nRM 12.50 on 3 Feb\nİSTANBUL"


def _row(field: str, start: int, end: int, **values: Any) -> dict[str, Any]:
    return {"_spans": [{"field": field, "start": start, "end": end, "is_ambiguous": False}], **values}


@pytest.mark.parametrize(
    "row",
    [
        _row("company", 0, 12, company="ABC SDN BHD"),
        _row("items[1].name", 5, 8, items=[{"name": "x"}, {"name": "SDN"}]),
        _row("currency", 13, 15, currency="rm"),
        _row("total", 16, 21, total="12.50"),
        _row("city", 31, 39, city="istanbul"),
        {"_spans": None},
    ],
)
def test_a_value_that_stands_where_its_span_says_is_sound(row: dict[str, Any]) -> None:
    assert misplaced(row, TEXT) == []


def test_a_value_of_an_enumeration_may_stand_with_its_accents_apart() -> None:
    assert misplaced(_row("place", 0, 5, place="caf\u00e9"), "CAFE\u0301") == []


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_row("company", 0, 8, company="ABC SDN BHD"), "company is not what stands"),
        (_row("total", 30, 99, total="12.50"), "of 39 characters"),
        (_row("total", 5, 5, total="12.50"), "total at"),
    ],
)
def test_a_value_that_stands_elsewhere_is_named(row: dict[str, Any], said: str) -> None:
    (problem,) = misplaced(row, TEXT)
    assert said in problem
