"""Catalogue: models nested and shared, defaults, and the other record-like types."""

from __future__ import annotations

import dataclasses
from datetime import date
from decimal import Decimal
from typing import Annotated, ClassVar, Generic, Literal, NamedTuple, NotRequired, Required, TypeVar

import pydantic.dataclasses
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
)
from typing_extensions import TypedDict

from tests.soundness.entry import Entry, entry

__all__ = ["ENTRIES", "Invoice"]

T = TypeVar("T")


class Empty(BaseModel):
    pass


class Person(BaseModel):
    name: str
    age: Annotated[int, Field(ge=0, le=130)]


class Defaults(BaseModel):
    name: str
    count: int = 3
    note: str | None = None
    tags: list[str] = Field(default_factory=list)


class AllOptional(BaseModel):
    a: int | None = None
    b: bool = False
    c: Literal["x"] = "x"


class Constant(BaseModel):
    kind: Literal["invoice"] = "invoice"
    version: Literal[2]
    label: ClassVar[str] = "not a field"


class Address(BaseModel):
    street: Annotated[str, Field(max_length=12)]
    city: Annotated[str, Field(min_length=1, max_length=8)]


class SharedNested(BaseModel):
    billing: Address
    shipping: Address
    others: Annotated[list[Address], Field(max_length=2)]


class Depth8(BaseModel):
    needed: bool
    also_needed: int


class Depth7(BaseModel):
    inner: Depth8
    mark: bool


class Depth6(BaseModel):
    inner: Depth7
    mark: bool


class Depth5(BaseModel):
    inner: Depth6
    mark: bool


class Depth4(BaseModel):
    inner: Depth5
    mark: bool


class Depth3(BaseModel):
    inner: Depth4
    mark: bool


class Depth2(BaseModel):
    inner: Depth3
    mark: bool


class Depth1(BaseModel):
    inner: Depth2
    mark: bool


class LineItem(BaseModel):
    description: Annotated[str, Field(max_length=20)]
    quantity: Annotated[int, Field(ge=1, le=999)]
    price: Annotated[Decimal, Field(max_digits=8, decimal_places=2, ge=0)]


class Invoice(BaseModel):
    number: Annotated[str, Field(pattern=r"^INV-[0-9]{4,6}$")]
    issued: date
    currency: Literal["EUR", "USD", "GBP"]
    items: Annotated[list[LineItem], Field(min_length=1, max_length=3)]
    total: Annotated[Decimal, Field(max_digits=10, decimal_places=2)]
    note: Annotated[str, Field(max_length=30)] | None = None


class Box(BaseModel, Generic[T]):
    content: T
    label: Annotated[str, Field(max_length=4)]


class Inherited(Person):
    member: bool
    age: Annotated[int, Field(ge=18, le=99)]


class IntRoot(RootModel[Annotated[list[int], Field(max_length=3)]]):
    pass


class HoldsRoot(BaseModel):
    values: IntRoot
    last: bool


class Movie(TypedDict):
    title: Annotated[str, Field(max_length=6)]
    year: int


class PartialMovie(TypedDict, total=False):
    title: Required[str]
    year: int


class MixedMovie(TypedDict):
    title: str
    year: NotRequired[int]


class ClosedMovie(TypedDict):
    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    year: int


@dataclasses.dataclass
class PlainData:
    a: int
    b: Annotated[str, Field(max_length=3)] = "x"


@pydantic.dataclasses.dataclass
class PydanticData:
    a: Annotated[int, Field(gt=0)]
    inner: PlainData


class Point(NamedTuple):
    x: int
    y: int = 0


class ReservedNames(BaseModel):
    model_config = ConfigDict(protected_namespaces=())
    model_name: bool
    schema_: Annotated[bool, Field(alias="schema")]
    type: Literal["object"]
    properties: bool
    ref: Annotated[bool, Field(alias="$ref")]


ENTRIES: tuple[Entry, ...] = (
    entry("model_empty", Empty, "model"),
    entry("model_person", Person, "model"),
    entry("model_defaults", Defaults, "model", "default"),
    entry("model_all_optional", AllOptional, "model", "default"),
    entry("model_constant", Constant, "model", "literal"),
    entry("model_shared_nested", SharedNested, "model", "nested"),
    entry("model_depth_1", Depth8, "model", "nested"),
    entry("model_depth_2", Depth7, "model", "nested"),
    entry("model_depth_3", Depth6, "model", "nested"),
    entry("model_depth_4", Depth5, "model", "nested"),
    entry("model_depth_5", Depth4, "model", "nested"),
    entry("model_depth_6", Depth3, "model", "nested"),
    entry("model_depth_7", Depth2, "model", "nested"),
    entry("model_depth_8", Depth1, "model", "nested"),
    entry("model_invoice", Invoice, "model", "nested"),
    entry("model_generic_int", Box[Annotated[int, Field(ge=0, le=5)]], "model", "generic"),
    entry("model_generic_nested", Box[Box[bool]], "model", "generic", "nested"),
    entry("model_inherited", Inherited, "model"),
    entry("model_reserved_names", ReservedNames, "model", "alias"),
    entry("root_model", IntRoot, "model", "root"),
    entry("root_model_nested", HoldsRoot, "model", "root"),
    entry("typed_dict", Movie, "typed_dict"),
    entry("typed_dict_partial", PartialMovie, "typed_dict"),
    entry("typed_dict_not_required", MixedMovie, "typed_dict"),
    entry("typed_dict_closed", ClosedMovie, "typed_dict", "extra"),
    entry("dataclass", PlainData, "dataclass"),
    entry("dataclass_pydantic", PydanticData, "dataclass", "nested"),
    entry("named_tuple", Point, "named_tuple", may_widen=True),
)
