"""Catalogue: keys of objects: those that the fields of a class are read from, and those of mappings."""

from __future__ import annotations

import enum
from collections import Counter
from datetime import date
from ipaddress import IPv4Address
from typing import Annotated, Literal

from hypothesis import strategies as st
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, Json, RootModel
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypeAliasType, TypedDict

from tests.soundness.entry import Entry, entry

__all__ = ["ENTRIES"]


class ChoiceOfAnother(BaseModel):
    a: Annotated[int, Field(validation_alias=AliasChoices("a", "y"))] = 0
    y: str


class PathOfAnother(BaseModel):
    a: Annotated[int, Field(validation_alias=AliasChoices("a", AliasPath("y", 0)))] = 0
    y: list[str]


class NameOfAnother(BaseModel):
    model_config = ConfigDict(validate_by_name=True)
    a: Annotated[int, Field(alias="x")] = 0
    b: Annotated[str, Field(alias="a")]


class OneAliasForTwo(BaseModel):
    a: Annotated[int, Field(alias="x")]
    b: Annotated[str, Field(alias="x")]


@dataclass
class OneAliasForTwoData:
    a: Annotated[int, Field(alias="x")]
    b: Annotated[str, Field(alias="x")]


class OneAliasForTwoDict(TypedDict):
    a: Annotated[int, Field(alias="x")]
    b: Annotated[str, Field(alias="x")]


class NamesOnly(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)
    a: Annotated[bool, Field(alias="b")]
    b: Annotated[str, Field(alias="a")]


class HiddenAndOpen(BaseModel):
    model_config = ConfigDict(extra="allow")
    i: SkipJsonSchema[int] = 0
    named: Annotated[SkipJsonSchema[int], Field(alias="n")] = 0
    b: bool


class Plain(enum.Enum):
    ONE = 1
    HALF = 0.5
    WORD = "b"


class Letters(RootModel[Literal["a", "b"]]):
    model_config = ConfigDict(frozen=True)


class Thawed(RootModel[Literal[1, "z"]]):
    pass


Own = TypeAliasType("Own", Literal[1, "a"])


class KeysAndValues(BaseModel):
    value: Plain
    keyed: dict[Plain, Own]
    either: dict[Plain | Own, bool]


_ODD = {"may_widen": True, "may_be_refused": True}
_TWICE = st.just({"x": "1"})

ENTRIES: tuple[Entry, ...] = (
    entry("key_choice_of_another", ChoiceOfAnother, "alias", may_widen=True),
    entry("key_path_of_another", PathOfAnother, "alias", may_widen=True),
    entry("key_name_of_another", NameOfAnother, "alias", may_widen=True),
    entry("key_one_for_two", OneAliasForTwo, "alias", "as_drawn", may_widen=True, instances=_TWICE),
    entry("key_one_for_two_dataclass", OneAliasForTwoData, "alias", "as_drawn", may_widen=True, instances=_TWICE),
    entry("key_one_for_two_typed_dict", OneAliasForTwoDict, "alias", "as_drawn", may_widen=True, instances=_TWICE),
    entry("key_names_only", NamesOnly, "alias", instances=st.just({"a": True, "b": "c"})),
    entry(
        "key_hidden",
        HiddenAndOpen,
        "extra",
        "as_drawn",
        over_restricting="extra keys may be left out",
        instances=st.just({"b": True}),
    ),
    entry("keys_union", dict[Literal[1, 2, 3] | Literal["all"], float], "dict", instances=st.just({"all": 0.5})),
    entry("keys_optional", dict[Literal[1, "a"] | None, bool], "dict", instances=st.just({"a": True})),
    entry("keys_described", dict[Annotated[Plain, Field(title="x")], int], "dict", instances=st.just({"b": 1})),
    entry("keys_enum_or_date", dict[Plain | date, int], "dict", instances=st.just({"b": 1, "2020-01-31": 2})),
    entry("keys_of_counter", Counter[Literal[1, "a"] | None], "dict", instances=st.just({"a": 1})),
    entry("keys_root_model", dict[Letters, int], "dict", instances=st.just({"a": 1})),
    entry("keys_root_model_thawed", dict[Thawed, int], "dict", instances=st.just({}), **_ODD),
    entry("keys_json", dict[Json[Literal[1]], int], "dict", instances=st.just({"1": 1})),
    entry("keys_json_list", dict[Json[list[int]], int], "dict", instances=st.just({}), **_ODD),
    entry("keys_address", dict[IPv4Address, bool], "dict", instances=st.just({"127.0.0.1": True})),
    entry(
        "keys_and_values",
        KeysAndValues,
        "dict",
        instances=st.just({"value": 1, "keyed": {"b": 1}, "either": {"a": True, "b": False}}),
    ),
)
