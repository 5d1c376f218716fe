"""A schema whose keywords have values of the wrong type is refused by name, wherever it stands; what is no keyword of
JSON Schema is passed over."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, create_model

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Verdict, compile_grammar, lint_fields
from tests.unit.decoding.support import is_enforced

INFINITE, NO_NUMBER = float("inf"), float("nan")

MALFORMED: list[dict[str, Any]] = [
    {"type": 5},
    {"type": [{"type": "string"}]},
    {"properties": []},
    {"properties": {1: {}}},
    {"minimum": "x"},
    {"minimum": NO_NUMBER},
    {"maximum": INFINITE},
    {"minimum": 10**5000},
    {"exclusiveMinimum": "3"},
    {"multipleOf": INFINITE},
    {"multipleOf": 0},
    {"minLength": 1.5},
    {"maxProperties": INFINITE},
    {"enum": 5},
    {"enum": "abc"},
    {"enum": [NO_NUMBER]},
    {"const": {"a": INFINITE}},
    {"pattern": 5},
    {"format": ["x"]},
    {"$ref": 5},
    {"required": "a"},
    {"anyOf": 5},
    {"oneOf": {"a": 1}},
    {"prefixItems": 5},
    {"dependencies": 5},
    {"dependentRequired": {"a": "b"}},
    {"patternProperties": 5},
]


@pytest.mark.parametrize("schema", MALFORMED, ids=lambda schema: next(iter(schema)))
@pytest.mark.parametrize("is_ruled_out", [False, True])
def test_a_keyword_of_the_wrong_type_is_refused_by_name_and_place(
    schema: dict[str, Any], *, is_ruled_out: bool
) -> None:
    (keyword,) = schema
    inner = {"not": schema} if is_ruled_out else schema
    record = {"type": "object", "properties": {"a": {"anyOf": [inner]}}, "required": ["a"]}
    with pytest.raises(SchemaRefusedError, match=rf"field a: {re.escape(keyword)} "):
        compile_grammar(record)
    verdicts = {item.path: item.verdict for item in lint_fields(record)}
    assert verdicts["a"] is Verdict.REFUSED
    assert verdicts["(record)"] is Verdict.ENFORCED


@pytest.mark.parametrize("value", [5, 0, None, [], "abc"])
@pytest.mark.parametrize("keyword", ["items", "additionalProperties", "not"])
def test_what_is_no_schema_is_refused(keyword: str, value: Any) -> None:
    """Fails when it is taken for true or false."""
    if (keyword, value) == ("items", []):
        return
    with pytest.raises(SchemaRefusedError, match="is not a schema"):
        compile_grammar({"type": ["array", "object"], keyword: value})


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[int, Field(ge=10**5000)],
        Annotated[float, Field(ge=NO_NUMBER)],
        Annotated[Decimal, Field(ge=Decimal("nan"))],
    ],
    ids=["too great", "float", "decimal"],
)
def test_a_bound_that_is_no_number_is_refused(annotation: Any) -> None:
    model: type[BaseModel] = create_model("Model", value=(annotation, ...))
    with pytest.raises(SchemaRefusedError, match="field value: "):
        compile_grammar(model)


@pytest.mark.parametrize("keyword", ["Length", "Items", "Properties"])
def test_a_count_may_be_written_as_a_decimal_where_it_is_ruled_out(keyword: str) -> None:
    for end, empty in (("min", True), ("max", False)):
        grammar = compile_grammar({"not": {f"{end}{keyword}": 1.0 if empty else 0.0}})
        text = {"Length": '""', "Items": "[]", "Properties": "{}"}[keyword]
        assert grammar.automaton.accepts(text.encode()) == empty


@pytest.mark.parametrize(
    "own",
    [
        {"x-string": "my note"},
        {"x-string": {"kind": "date"}},
        {"x-json": {"type": "integer"}},
        {"x-number": {"kind": "decimal"}},
        {"x-checked": 5},
        {"x-refused": "later"},
        {"x-ascii_only": True},
    ],
    ids=str,
)
def test_a_schema_may_hold_keywords_that_begin_as_ours_do(own: dict[str, Any]) -> None:
    """Fails when they are obeyed in any other schema than that of a record type."""
    grammar = compile_grammar({"type": "string", **own})
    assert is_enforced(grammar)
    assert grammar.automaton.accepts('"é"'.encode())
    assert not grammar.automaton.accepts(b"1")


def test_a_bound_that_is_ruled_out_keeps_what_says_whether_it_is_open() -> None:
    """Fails when `minimum` is turned round without draft 4's `exclusiveMinimum` beside it."""
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "not": {"type": "number", "minimum": 5, "exclusiveMinimum": True},
    }
    grammar = compile_grammar(schema)
    assert grammar.automaton.accepts(b"5")
    assert not grammar.automaton.accepts(b"5.1")
