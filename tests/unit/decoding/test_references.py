"""What a `$ref` leads to."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.decoding import compile_grammar


@pytest.mark.parametrize("keyword", ["default", "const", "examples", "enum", "example"])
def test_a_reference_leads_to_no_data(keyword: str) -> None:
    """Fails when an identifier inside a value is taken for that of a schema."""
    data: Any = {"$anchor": "x", "n": 1}
    other = {keyword: [data] if keyword in ("examples", "enum") else data}
    meant = {keyword: {"$anchor": "x", "type": "integer"}}
    for defined in ({**meant, "other": other}, {"other": other, **meant}):
        _is_integer({"type": "object", "properties": {"a": {"$ref": "#x"}}, "$defs": defined})


def _is_integer(schema: dict[str, Any]) -> None:
    grammar = compile_grammar(schema)
    assert grammar.automaton.accepts(b'{"a":1}')
    assert not grammar.automaton.accepts(b'{"a":"text"}')
