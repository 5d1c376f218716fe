"""What is given up where an automaton would be too large: depth before anything that a schema says can be held."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, create_model

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Verdict, compile_grammar
from pipeline.decoding.automata import StateLimitError
from pipeline.decoding.effort import Effort
from pipeline.decoding.emit import Emitter
from pipeline.decoding.grammar import Grammar
from pipeline.decoding.normalize import Normalizer
from pipeline.decoding.shapes import Term

_TWO_OPEN = {"type": "object", "properties": {"a": {}, "b": {}}}


class Branch(BaseModel):
    kids: list[Branch]
    counts: Annotated[list[int], Field(max_length=100_000)]


def _model(annotation: Any) -> type[BaseModel]:
    return create_model("Model", x=(annotation, ...))


def _verdicts(grammar: Grammar) -> dict[str, Verdict]:
    return {item.path: item.verdict for item in grammar.verdicts}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({"type": "array", "minItems": 50, "items": {}}, id="open values"),
        pytest.param({"type": "array", "minItems": 20, "items": _TWO_OPEN}, id="objects of open values"),
        pytest.param(_model(Annotated[list[Any], Field(min_length=200)]), id="a model's open values"),
        pytest.param(_model(Annotated[list[dict[str, Any]], Field(min_length=100)]), id="dictionaries"),
        pytest.param(_model(Annotated[list[dict[str, Any]], Field(max_length=100)]), id="a greatest count"),
    ],
)
def test_a_count_is_held_at_the_price_of_depth(record: Any) -> None:
    """Fails when the first effort decides what is refused or checked afterwards."""
    grammar = compile_grammar(record)
    assert set(_verdicts(grammar).values()) == {Verdict.ENFORCED}


def test_a_count_beyond_every_automaton_costs_no_depth() -> None:
    grammar = compile_grammar(Branch, recursion_depth=3)
    assert _verdicts(grammar)["counts"] is Verdict.WIDENED
    inner: dict[str, Any] = {"kids": [], "counts": [1]}
    record = {"kids": [{"kids": [inner], "counts": []}], "counts": [1, 2]}
    assert grammar.automaton.accepts(json.dumps(record, separators=(",", ":")).encode())


def test_a_least_count_beyond_every_automaton_is_refused_by_name() -> None:
    with pytest.raises(SchemaRefusedError, match="field x: at least 1000000 items"):
        compile_grammar(_model(Annotated[list[int], Field(min_length=1_000_000)]))


def test_objects_that_begin_alike_are_told_apart_only_within_the_effort() -> None:
    """Fails when their union grows to whatever it needs, and only then is found to be too large."""
    names = [f"p{index}" for index in range(6)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in names},
        "anyOf": [{"required": [name]} for name in names],
        "additionalProperties": False,
    }
    whole = Emitter(Normalizer(schema, dialect="ecma"), Effort(1, 1, 10_000)).node((Term(schema),), ())
    assert whole.state_count > 400
    with pytest.raises(StateLimitError):
        Emitter(Normalizer(schema, dialect="ecma"), Effort(1, 1, 300)).node((Term(schema),), ())
