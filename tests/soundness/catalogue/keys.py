"""Catalogue: keys of objects: those that the fields of a class are read from, and those of mappings."""

from __future__ import annotations

from typing import Annotated

from hypothesis import strategies as st
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

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
)
