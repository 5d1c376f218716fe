"""Catalogue: optional values, unions of every kind, recursive models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, Optional, Union

from hypothesis import strategies as st
from pydantic import BaseModel, Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from tests.soundness.entry import Entry, entry

__all__ = ["ENTRIES"]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog", "puppy"]
    good: bool


class Fish(BaseModel):
    kind: Literal["fish"]
    water: Literal["salt", "fresh"]


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


class Owner(BaseModel):
    pet: Annotated[Cat | Dog | Fish, Field(discriminator="kind")]
    others: Annotated[list[Pet], Field(max_length=2)]


class Pending(BaseModel):
    kind: Literal["pending"]


class Settled(BaseModel):
    kind: Literal["settled"]
    how: Annotated[Cat | Dog, Field(discriminator="kind")]


class NestedDiscriminated(BaseModel):
    state: Annotated[Pending | Settled, Field(discriminator="kind")]


class Narrow(BaseModel):
    a: int


class Wide(BaseModel):
    a: int
    b: bool


def _shape(value: Any) -> str:
    held = value if isinstance(value, Mapping) else vars(value)
    return "wide" if "b" in held else "narrow"


class OptionalFields(BaseModel):
    a: Optional[int]  # noqa: UP045 - the old spelling is the case
    b: Union[bool, None] = None  # noqa: UP007
    c: Annotated[str, Field(max_length=3)] | None


class Tree(BaseModel):
    value: Annotated[int, Field(ge=0, le=9)]
    children: Annotated[list[Tree], Field(max_length=2)]


class LinkedList(BaseModel):
    value: bool
    next: LinkedList | None


class OptionalRecursion(BaseModel):
    value: bool
    parent: OptionalRecursion | None = None


class EndlessRecursion(BaseModel):
    again: EndlessRecursion


class Folder(BaseModel):
    files: Annotated[list[File], Field(max_length=1)]


class File(BaseModel):
    name: Annotated[str, Field(max_length=3)]
    folder: Folder | None


Nested = TypeAliasType("Nested", "bool | list[Nested]")

_DEPTH = "recursion is unrolled to a stated depth"
_trees = st.recursive(
    st.fixed_dictionaries({"value": st.integers(0, 9), "children": st.just([])}),
    lambda inner: st.fixed_dictionaries({"value": st.integers(0, 9), "children": st.lists(inner, max_size=2)}),
    max_leaves=1,
)
_links = st.one_of(
    st.fixed_dictionaries({"value": st.booleans(), "next": st.none()}),
    st.fixed_dictionaries(
        {"value": st.booleans(), "next": st.fixed_dictionaries({"value": st.booleans(), "next": st.none()})}
    ),
)

ENTRIES: tuple[Entry, ...] = (
    entry("optional_int", int | None, "optional"),
    entry("optional_bounded_str", Annotated[str, Field(max_length=4)] | None, "optional"),
    entry("optional_fields", OptionalFields, "optional", "model"),
    entry("union_int_str", int | str, "union"),
    entry("union_scalars", int | bool | float | None, "union"),
    entry("union_date_int", date | int, "union"),
    entry("union_lists", list[int] | Annotated[list[bool], Field(max_length=2)], "union"),
    entry("union_left_to_right", Annotated[float | bool, Field(union_mode="left_to_right")], "union"),
    entry("union_models", Narrow | Wide, "union", "model"),
    entry("union_models_reversed", Wide | Narrow, "union", "model"),
    entry("union_model_or_str", Cat | Annotated[str, Field(max_length=5)], "union", "model"),
    entry("union_constrained", Annotated[int, Field(le=0)] | Annotated[int, Field(ge=100)], "union", "bound"),
    entry("union_nested", list[int | list[bool] | None], "union"),
    entry("discriminated", Pet, "union", "discriminated"),
    entry("discriminated_fields", Owner, "union", "discriminated", "model"),
    entry("discriminated_nested", NestedDiscriminated, "union", "discriminated", "model"),
    entry(
        "discriminated_callable",
        Annotated[Annotated[Narrow, Tag("narrow")] | Annotated[Wide, Tag("wide")], Discriminator(_shape)],
        "union",
        "discriminated",
        may_widen=True,
    ),
    entry("recursive_tree", Tree, "recursive", over_restricting=_DEPTH, instances=_trees),
    entry("recursive_list", LinkedList, "recursive", over_restricting=_DEPTH, instances=_links),
    entry(
        "recursive_optional",
        OptionalRecursion,
        "recursive",
        over_restricting=_DEPTH,
        instances=st.fixed_dictionaries({"value": st.booleans(), "parent": st.none()}),
    ),
    entry(
        "recursive_mutual",
        Folder,
        "recursive",
        over_restricting=_DEPTH,
        instances=st.sampled_from(
            [
                {"files": []},
                {"files": [{"name": "a", "folder": None}]},
                {"files": [{"name": "", "folder": {"files": []}}]},
            ]
        ),
    ),
    entry(
        "recursive_alias",
        Nested,
        "recursive",
        may_be_refused=True,
        over_restricting=_DEPTH,
        instances=st.one_of(st.booleans(), st.lists(st.booleans(), max_size=3)),
    ),
    entry("recursive_endless", EndlessRecursion, "recursive", "no_json", may_be_refused=True),
)
