"""Objects and arrays against a plain reading of their keywords: order, required ones, undeclared ones, counts."""

from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Verdict, compile_grammar
from tests.unit.decoding.support import is_enforced

NAMES = ["a", "ab", "abc", "b", "é", "éa", "", '"', "a\n"]
UNDECLARED = ["c", "abd", "è", "a\\", "\n"]


@given(data=st.data())
def test_an_object_holds_its_properties_in_order_and_others_after_them(data: st.DataObject) -> None:
    """Fails when places share a key that they go on from differently, or a key gets another's value."""
    names = data.draw(st.lists(st.sampled_from(NAMES), max_size=6, unique=True))
    required = [name for name in names if data.draw(st.booleans())]
    least, most = data.draw(st.sampled_from([(0, None), (0, 2), (1, 3), (2, None)]))
    additional = data.draw(st.sampled_from([False, {"type": "boolean"}]))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: {"const": index} for index, name in enumerate(names)},
        "required": required,
        "additionalProperties": additional,
        "minProperties": least,
        **({} if most is None else {"maxProperties": most}),
    }
    others = data.draw(st.lists(st.sampled_from(UNDECLARED), max_size=2, unique=True))
    keys = [name for name in names if name in required or data.draw(st.booleans())] + others
    is_sorted = data.draw(st.integers(0, 3)) > 0
    keys = keys if is_sorted else data.draw(st.permutations(keys))
    value = {key: names.index(key) if key in names else True for key in keys}
    if data.draw(st.integers(0, 3)) == 0 and value:
        value[data.draw(st.sampled_from(keys))] = data.draw(st.sampled_from([0, 1, True]))
    ordered = [name for name in names if name in value] + [key for key in keys if key not in names]
    is_allowed = (
        keys == ordered
        and set(required) <= set(keys)
        and least <= len(keys) <= (len(keys) if most is None else most)
        and all(
            item is True and additional if key not in names else item is not True and item == names.index(key)
            for key, item in value.items()
        )
    )
    try:
        grammar = compile_grammar(schema)
    except SchemaRefusedError:
        assert not is_allowed
        return
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert grammar.automaton.accepts(text) == bool(is_allowed)


@pytest.mark.parametrize("count", [3, 120])
def test_undeclared_properties_are_let_in_however_many_are_declared(count: int) -> None:
    """Fails when the keys of a large object are spelt anew at each of its places."""
    properties = {f"field_{index}": {"type": "integer"} for index in range(count)}
    grammar = compile_grammar({"type": "object", "properties": properties})
    assert [verdict.verdict for verdict in grammar.verdicts] == [Verdict.ENFORCED] * len(grammar.verdicts)
    accepts = grammar.automaton.accepts
    assert accepts(b'{"field_1":1,"field":"x","fields":[{"a":null}]}')
    assert accepts(b'{"other":true}')
    assert not accepts(b'{"other":true,"field_1":"x"}')
    assert not accepts(b'{"field_1":"x"}')
    assert grammar.automaton.state_count < 2_000 + 100 * count


@pytest.mark.parametrize(("least", "prefix"), [(0, 0), (1, 0), (3, 0), (0, 2), (4, 2), (1, 2)])
def test_an_array_has_its_least_length_and_no_greatest(least: int, prefix: int) -> None:
    """Fails when items before and after the last counted one are one copy too early."""
    schema = {"prefixItems": [{"const": index} for index in range(prefix)], "items": {"const": 9}, "minItems": least}
    accepts = compile_grammar({"type": "array", **schema}).automaton.accepts
    for length in range(9):
        items = [index if index < prefix else 9 for index in range(length)]
        assert accepts(json.dumps(items, separators=(",", ":")).encode()) == (length >= least)
        wrong = [*items[:-1], 8]
        assert not accepts(json.dumps(wrong, separators=(",", ":")).encode())


CLOSED = {"additionalProperties": False}
NUMBER = {"type": "number"}
A, B, AB, ABC = ({"properties": dict.fromkeys(names, NUMBER), **CLOSED} for names in ("a", "b", "ab", "abc"))


@pytest.mark.parametrize(
    ("schema", "is_held"),
    [
        ({"oneOf": [{**A, "required": ["a"]}, B], "type": "object"}, True),
        ({"oneOf": [A, ABC], "type": "object"}, True),
        ({**ABC, "type": "object", "not": {"properties": {"a": True}, **CLOSED}}, True),
        ({**ABC, "type": "object", "not": {"not": {"properties": {"a": True}, **CLOSED}}}, True),
        ({**ABC, "type": "object", "not": {"properties": {"a": True}, "additionalProperties": {"minimum": 2}}}, True),
        ({**AB, "type": "object", "required": ["a"], "not": B}, True),
        ({**AB, "type": "object", "not": {"additionalProperties": True}}, True),
        ({**ABC, "type": "object", "not": {"patternProperties": {"^[ab]$": {}}, **CLOSED}}, False),
        ({"type": "object", "properties": {"a": {}}, "not": A}, False),
    ],
)
def test_the_contrary_of_a_closed_object_is_held_where_it_can_be(schema: dict[str, Any], is_held: bool) -> None:
    """Fails when a property that breaks `additionalProperties` is not demanded, or too many are."""
    try:
        grammar = compile_grammar(schema)
        accepts, is_found_held = grammar.automaton.accepts, is_enforced(grammar)
    except SchemaRefusedError:
        accepts, is_found_held = (lambda data: False), True
    validator = jsonschema.Draft202012Validator(schema)
    for values in itertools.product((None, 1, 2), repeat=3):
        value = {name: item for name, item in zip("abc", values, strict=True) if item is not None}
        is_accepted = accepts(json.dumps(value, separators=(",", ":")).encode())
        is_valid = validator.is_valid(value)
        assert is_accepted or not is_valid
        assert not is_accepted or is_valid or not is_found_held
    assert is_found_held == is_held


def test_the_branches_of_a_schema_have_one_order_of_properties() -> None:
    """Fails when a branch keeps its own order, which no reader of the whole schema would write."""
    first = {"properties": {"kind": {"const": 1}, "a": {}, "b": {}}, "required": ["kind"], **CLOSED}
    second = {"properties": {"c": {}, "b": {}, "kind": {"const": 2}}, "required": ["kind"], **CLOSED}
    accepts = compile_grammar({"type": "object", "oneOf": [first, second]}).automaton.accepts
    assert accepts(b'{"kind":2,"b":0,"c":1}')
    assert accepts(b'{"kind":1,"a":0,"b":1}')
    assert not accepts(b'{"kind":2,"a":0}')
    assert not accepts(b'{"c":1,"b":0,"kind":2}')
