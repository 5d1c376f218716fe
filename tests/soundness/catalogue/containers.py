"""Catalogue: lists, tuples, sets, mappings and free JSON."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import annotated_types as at
from hypothesis import strategies as st
from pydantic import Field, Json, JsonValue, conlist, constr

from tests.soundness.catalogue.text import Level, Shade
from tests.soundness.entry import Entry, entry
from tests.soundness.strategies import decimals, floats, integers, json_values

__all__ = ["ENTRIES"]

_SMALL = Annotated[int, Field(ge=0, le=9)]
_DEPTH = "the depth of free JSON is bounded"
_DIGITS = st.integers(0, 9)
_FLOATS = floats()
_PLAIN = decimals(-100, 100, 2)
_ASCII_KEYS = st.dictionaries(st.text("abcXYZ!~09", min_size=1, max_size=4), st.booleans(), max_size=3)
_WORD = Annotated[str, Field(pattern=r"^[a-z]{1,4}$")]

ENTRIES: tuple[Entry, ...] = (
    entry("list_int", list[int], "list"),
    entry("list_untyped", list, "list", "any", may_be_refused=True, over_restricting=_DEPTH),
    entry("list_min", Annotated[list[_SMALL], Field(min_length=2)], "list", "bound"),
    entry("list_max", Annotated[list[bool], Field(max_length=3)], "list", "bound"),
    entry("list_min_max", conlist(_SMALL, min_length=2, max_length=4), "list", "bound"),
    entry("list_exact", Annotated[list[Literal["a", "b"]], at.Len(3, 3)], "list", "bound", "annotated_types"),
    entry("list_empty", Annotated[list[int], Field(max_length=0)], "list", "bound"),
    entry("list_of_lists", list[Annotated[list[_SMALL], Field(max_length=2)]], "list"),
    entry("list_optional_items", Annotated[list[int | None], Field(max_length=5)], "list"),
    entry("list_dates", Annotated[list[date], Field(min_length=1, max_length=2)], "list", "date"),
    entry("list_long", Annotated[list[_SMALL], Field(max_length=200)], "list", "bound"),
    entry("tuple_fixed", tuple[int, str, bool], "tuple"),
    entry("tuple_one", tuple[Decimal], "tuple"),
    entry("tuple_empty", tuple[()], "tuple"),
    entry("tuple_variadic", tuple[float, ...], "tuple"),
    entry("tuple_variadic_bounds", Annotated[tuple[_SMALL, ...], Field(min_length=1, max_length=3)], "tuple", "bound"),
    entry("set_int", set[int], "set"),
    entry("set_literal", set[Literal["a", "b", "c"]], "set"),
    entry("set_min", Annotated[set[_SMALL], Field(min_length=2)], "set", "bound", may_widen=True),
    entry(
        "set_literal_min", Annotated[set[Literal["a", "b", "c"]], Field(min_length=2)], "set", "bound", may_widen=True
    ),
    entry("set_max", Annotated[set[int], Field(max_length=4)], "set", "bound"),
    entry("frozenset_str", frozenset[_WORD], "set"),
    entry("frozenset_enum", Annotated[frozenset[Shade], Field(max_length=2)], "set", "enum"),
    entry("deque_int", deque[int], "list"),
    entry("deque_maxlen", Annotated[deque[_SMALL], Field(max_length=3)], "list", "bound"),
    entry("sequence_str", Sequence[_WORD], "list"),
    entry(
        "iterable_int",
        Iterable[int],
        "list",
        may_be_refused=True,
        may_widen=True,
        instances=st.lists(integers()),
    ),
    entry("dict_str_int", dict[str, int], "dict"),
    entry("dict_untyped", dict, "dict", "any", may_be_refused=True, over_restricting=_DEPTH),
    entry("dict_str_any", dict[str, Any], "dict", "any", may_be_refused=True, over_restricting=_DEPTH),
    entry("dict_int_key", dict[int, str], "dict", "keys", instances=st.dictionaries(integers(), st.text(), max_size=3)),
    entry(
        "dict_bounded_int_key", dict[_SMALL, bool], "dict", "keys", instances=st.dictionaries(_DIGITS, st.booleans())
    ),
    entry("dict_literal_key", dict[Literal["x", "y"], int], "dict", "keys"),
    entry("dict_enum_key", dict[Shade, bool], "dict", "keys", "enum"),
    entry("dict_int_enum_key", dict[Level, bool], "dict", "keys", "enum", may_widen=True),
    entry("dict_date_key", dict[date, int], "dict", "keys", may_widen=True),
    entry("dict_uuid_key", dict[UUID, bool], "dict", "keys", may_widen=True),
    entry(
        "dict_float_key", dict[float, bool], "dict", may_widen=True, instances=st.dictionaries(_FLOATS, st.booleans())
    ),
    entry("dict_bool_key", dict[bool, int], "dict", may_widen=True, instances=st.dictionaries(st.booleans(), _DIGITS)),
    entry("dict_decimal_key", dict[Decimal, int], "dict", may_widen=True, instances=st.dictionaries(_PLAIN, _DIGITS)),
    entry("dict_pattern_key", dict[constr(pattern=r"^[a-z]{2,3}$"), int], "dict", "keys"),  # type: ignore[misc]
    entry("dict_length_key", dict[constr(min_length=1, max_length=3), bool], "dict", "keys"),  # type: ignore[misc]
    entry(
        "dict_strip_key",
        dict[constr(strip_whitespace=True, min_length=1), bool],
        "dict",
        may_widen=True,
        instances=_ASCII_KEYS,
    ),  # type: ignore[misc]
    entry("dict_size", Annotated[dict[str, int], Field(min_length=1, max_length=2)], "dict", "bound", may_widen=True),
    entry("dict_max_size", Annotated[dict[str, int], Field(max_length=3)], "dict", "bound"),
    entry("dict_of_lists", dict[_WORD, Annotated[list[int], Field(max_length=2)]], "dict"),
    entry("mapping", Mapping[str, bool], "dict"),
    entry("json_value", JsonValue, "any", may_be_refused=True, over_restricting=_DEPTH),
    entry("json_of_int_list", Json[list[int]], "json", may_widen=True, instances=st.lists(integers()).map(json.dumps)),
    entry("json_of_str", Json[str], "json", may_widen=True, instances=st.text().map(json.dumps)),
    entry(
        "json_of_any",
        Json,
        "json",
        may_be_refused=True,
        may_widen=True,
        over_restricting=_DEPTH,
        instances=json_values(most_leaves=2).map(json.dumps),
    ),
    entry("any", Any, "any", may_be_refused=True, over_restricting=_DEPTH),
    entry("object", object, "any", may_be_refused=True, over_restricting=_DEPTH),
)
