"""What a schema says and no automaton holds is told: the field is widened, never called enforced."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.decoding import Verdict, compile_grammar

DEFS = {"$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}}}


@pytest.mark.parametrize(
    "inner",
    [
        {"$dynamicRef": "#n"},
        {"$recursiveRef": "#"},
        {"type": "array", "contains": {"const": 1}},
        {"type": "object", "unevaluatedProperties": False, "properties": {"b": {}}},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    ],
    ids=lambda inner: next(key for key in inner if key not in ("type", "items", "properties")),
)
def test_a_keyword_that_is_not_held_widens_its_field(inner: dict[str, Any]) -> None:
    """Fails when the keyword is passed over in silence."""
    schema = {**DEFS, "type": "object", "properties": {"a": inner, "z": {"type": "null"}}, "required": ["a", "z"]}
    verdicts = {field.path: field.verdict for field in compile_grammar(schema).verdicts}
    assert verdicts["a"] is Verdict.WIDENED
    assert verdicts["z"] is Verdict.ENFORCED
