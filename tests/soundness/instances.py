"""Draws valid instances of a catalogue entry as compact JSON in declaration order."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from tests.soundness.entry import Entry
from tests.soundness.ordering import in_declared_order
from tests.soundness.strategies import from_json_schema

__all__ = ["instances_of", "values_of"]


def values_of(entry: Entry) -> st.SearchStrategy[Any]:
    """Values that are candidates for instances: the entry's own strategy, else one made from its JSON Schema."""
    if entry.instances is not None:
        return entry.instances
    return from_json_schema(entry.schema)


@st.composite
def instances_of(draw: st.DrawFn, entry: Entry) -> bytes:
    """Compact JSON that the type accepts, keys in declaration order.

    The text is Pydantic's own dump (round trip, by alias) where the type accepts that back, else the drawn value itself
    (an excluded field, an alias that only validation knows), and for entries tagged `as_drawn` (secrets).
    """
    raw = _as_json(draw(values_of(entry)), entry)
    try:
        parsed = entry.adapter.validate_json(raw)
    except ValueError:
        assume(False)
    if "as_drawn" in entry.tags:
        return raw
    try:
        dumped = entry.adapter.dump_json(parsed, by_alias=True, round_trip=True)
        entry.adapter.validate_json(dumped)
    except (ValidationError, PydanticSerializationError):
        return raw
    return dumped


def _as_json(value: Any, entry: Entry) -> bytes:
    plain = json.loads(to_json(value))
    ordered = in_declared_order(plain, entry.schema)
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
