"""Where each extractive value of a record stands, by the path of its field."""

from __future__ import annotations

import json

import pytest

from pipeline.decoding import SpanMark
from pipeline.run.located import located


@pytest.mark.parametrize(
    ("record", "marks", "paths"),
    [
        (
            {"items": [{"name": "a"}, {"name": "b"}]},
            ["items[].name", "items[].name"],
            ["items[0].name", "items[1].name"],
        ),
        ({"sums": {"Net": 1, "Tax": 2}}, ["sums.*", "sums.*"], ["sums.Net", "sums.Tax"]),
        ({"pair": ["a", "b"]}, ["pair[0]", "pair[1]"], ["pair[0]", "pair[1]"]),
        ({"pair": ["a", "b", "c"]}, ["pair[0]", "pair[]", "pair[]"], ["pair[0]", "pair[1]", "pair[2]"]),
        ({"a": {"x": {"b": ["v"]}, "y": {"b": []}}, "c": "w"}, ["a.*.b[]", "c"], ["a.x.b[0]", "c"]),
        ({"day": None, "sum": 1, "note": "n"}, ["sum"], ["sum"]),
        (["a", None, "b"], ["[]", "[]"], ["[0]", "[2]"]),
    ],
)
def test_each_value_has_its_own_place(record: object, marks: list[str], paths: list[str]) -> None:
    given = [SpanMark(path, ((n, n + 1),)) for n, path in enumerate(marks)]
    fields = (*dict.fromkeys(marks), "other.field")
    found = located(given, json.dumps(record), fields=fields, offset=10)
    assert [(span.field, span.start) for span in found] == [(path, n + 10) for n, path in enumerate(paths)]


def test_a_declared_field_does_not_take_the_place_of_an_extra_one() -> None:
    record = json.dumps({"name": "n", "more": "m"})
    [span] = located([SpanMark("*", ((3, 4),))], record, fields=("name", "*"))
    assert (span.field, span.start) == ("more", 3)


def test_a_deep_record_is_walked_once() -> None:
    """Fails when each level doubles the names that are tried."""
    record: object = "v"
    field = ""
    for _ in range(40):
        record, field = {"a": [record]}, f"a[].{field}" if field else "a[]"
    [span] = located([SpanMark(field, ((0, 1),))], json.dumps(record), fields=(field,))
    assert span.field.count("[0]") == 40
