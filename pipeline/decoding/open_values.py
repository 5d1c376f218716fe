"""Any JSON value, for what a schema leaves open: nested to a bounded depth, and the same whatever the schema."""

from __future__ import annotations

import functools

from pipeline.decoding.automata import EMPTY, NO_TAG, Dfa
from pipeline.decoding.containers import array_language, object_language
from pipeline.decoding.effort import MOST_STATES
from pipeline.decoding.field_tags import FieldTags
from pipeline.decoding.jsontext import json_literal, string_of
from pipeline.decoding.nfa import union
from pipeline.decoding.numbers import open_number
from pipeline.decoding.shapes import Bool, Obj
from pipeline.decoding.spelling import booleans

__all__ = ["open_value"]


@functools.cache
def open_value(depth: int) -> Dfa:
    """Values of at most `depth` levels; at one level, arrays and objects are empty.  It has no fields to tell apart."""
    inner = open_value(depth - 1) if depth > 1 else EMPTY
    tags = FieldTags()
    array = array_language([], inner, 0, 0 if inner.is_empty else None, tags, MOST_STATES)
    keys = [] if inner.is_empty else [(string_of(), inner)]
    record = object_language(Obj(), [], {}, keys, tags, MOST_STATES)
    scalars = [json_literal(b"null"), booleans(Bool()), open_number(), string_of()]
    value = union([*scalars, array, record])
    return Dfa(value.edges, value.accepting, (NO_TAG,) * value.state_count).minimized()
