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
    found = located([SpanMark(path, ((n, n + 1),)) for n, path in enumerate(marks)], json.dumps(record), offset=10)
    assert [(span.field, span.start) for span in found] == [(path, n + 10) for n, path in enumerate(paths)]
