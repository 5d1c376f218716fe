"""Which column a field gets."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import ipaddress
import re
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import pyarrow as pa
import pytest
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    Json,
    NaiveDatetime,
    PlainSerializer,
    RootModel,
    computed_field,
    create_model,
    field_serializer,
    model_validator,
)
from typing_extensions import TypeAliasType, TypedDict

from pipeline.core.errors import SpecError
from pipeline.storage.arrow import AUDIT_FIELDS, record_schema
from pipeline.storage.columns import is_json


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Odd(enum.Enum):
    A = 1
    B = "b"


class Item(BaseModel):
    name: str
    price: Annotated[Decimal, Field(max_digits=12, decimal_places=2)]


class Tags(RootModel[list[str]]):
    pass


class Empty(BaseModel):
    pass


@dataclasses.dataclass
class Point:
    x: float


class Pair(TypedDict):
    key: str


class Checked(BaseModel):
    low: int

    @model_validator(mode="after")
    def _ordered(self) -> Checked:
        return self


Money = Annotated[Decimal, Field(max_digits=12, decimal_places=2)]
Nested = TypeAliasType("Nested", "list[Nested] | None")
ITEM = pa.struct([("name", pa.string()), ("price", pa.decimal128(12, 2))])
JSON = "json"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, pa.string()),
        (int, pa.int64()),
        (float, pa.float64()),
        (bool, pa.bool_()),
        (bytes, pa.binary()),
        (Annotated[int, Field(ge=0, le=9)], pa.int64()),
        (Optional[int], pa.int64()),  # noqa: UP045  (the older spelling is what users have)
        (Decimal, pa.string()),
        (Money, pa.decimal128(12, 2)),
        (Annotated[Decimal, Field(decimal_places=2)], pa.decimal128(38, 2)),
        (Annotated[Decimal, Field(max_digits=10)], pa.string()),
        (Annotated[Decimal, Field(max_digits=60, decimal_places=2)], pa.string()),
        (dt.date, pa.date32()),
        (dt.datetime, pa.timestamp("us", "UTC")),
        (AwareDatetime, pa.timestamp("us", "UTC")),
        (NaiveDatetime, pa.timestamp("us")),
        (dt.time, pa.time64("us")),
        (dt.timedelta, pa.duration("us")),
        (uuid.UUID, pa.string()),
        (HttpUrl, pa.string()),
        (ipaddress.IPv4Address, pa.string()),
        (Colour, pa.string()),
        (Level, pa.int64()),
        (Odd, JSON),
        (Literal["a", "b"], pa.string()),
        (Literal["a", None], pa.string()),
        (Literal[1, 2], pa.int64()),
        (Literal[1, "a"], JSON),
        (list[str], pa.list_(pa.string())),
        (list[Money], pa.list_(pa.decimal128(12, 2))),
        (set[int], pa.list_(pa.int64())),
        (tuple[int, ...], pa.list_(pa.int64())),
        (tuple[float, float], pa.list_(pa.float64())),
        (tuple[int, str], JSON),
        (list[list[int]], pa.list_(pa.list_(pa.int64()))),
        (Item, ITEM),
        (Item | None, ITEM),
        (list[Item], pa.list_(ITEM)),
        (dict[str, Item], pa.map_(pa.string(), ITEM)),
        (dict[int, str], pa.map_(pa.int64(), pa.string())),
        (dict[str, Any], JSON),
        (dict[dt.date, int], JSON),
        (int | str, JSON),
        (list[int | str], JSON),
        (Literal["a"] | str | None, pa.string()),
        (Any, JSON),
        (Empty, JSON),
        (Tags, pa.list_(pa.string())),
        (Point, pa.struct([("x", pa.float64())])),
        (Pair, pa.struct([("key", pa.string())])),
        (Checked, pa.struct([("low", pa.int64())])),
        (Json[list[int]], pa.list_(pa.int64())),
        (Nested, JSON),
        (Annotated[int, PlainSerializer(str, return_type=str)], pa.string()),
        (Annotated[int, PlainSerializer(lambda value: value)], JSON),
    ],
    # Without the addresses of functions, which differ from process to process.
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", str(value)),
)
def test_a_type_has_the_column_a_warehouse_expects(annotation: Any, expected: Any) -> None:
    field = record_schema(create_model("Record", value=(annotation, ...))).field("value")
    assert (JSON if is_json(field) else field.type) == expected
    assert field.nullable


class Node(BaseModel):
    name: str
    children: list[Node] = []


def test_recursion_ends_in_json() -> None:
    schema = record_schema(Node)
    assert schema.field("name").type == pa.string()
    assert is_json(schema.field("children"))
    tree = record_schema(create_model("Tree", root=(Node, ...))).field("root").type
    assert is_json(tree.field("children"))


def test_columns_are_named_by_field_and_never_by_alias() -> None:
    class Aliased(BaseModel):
        total: int = Field(alias="Gesamt", serialization_alias="Sum")

    assert record_schema(Aliased).names[:1] == ["total"]


def test_computed_fields_are_columns_and_excluded_ones_are_not() -> None:
    class Computed(BaseModel):
        net: int
        secret: int = Field(0, exclude=True)

        @computed_field
        @property
        def gross(self) -> float:
            return self.net * 1.19

    assert record_schema(Computed).names[:2] == ["net", "gross"]
    assert "secret" not in record_schema(Computed).names


def test_a_serializer_decides_the_type() -> None:
    class Serialised(BaseModel):
        day: dt.date

        @field_serializer("day")
        def _day(self, value: dt.date) -> str:
            return value.isoformat()

    assert record_schema(Serialised).field("day").type == pa.string()


def test_the_order_is_record_then_input_then_audit() -> None:
    schema = record_schema(Item, {"source": pa.string()})
    assert schema.names == ["name", "price", "source", *(field.name for field in AUDIT_FIELDS)]


@pytest.mark.parametrize(
    ("record", "extra", "named"),
    [
        ({"source": (str, ...)}, {"source": pa.string()}, "source"),
        ({"Source": (str, ...)}, {"source": pa.string()}, "Source"),
        ({"name": (str, ...)}, {"_status": pa.string()}, "_status"),
    ],
)
def test_a_name_taken_twice_is_refused_by_name(record: Any, extra: Any, named: str) -> None:
    with pytest.raises(SpecError, match=repr(named)):
        record_schema(create_model("Record", **record), extra)


def test_a_field_named_as_an_audit_column_is_refused_by_name() -> None:
    # Pydantic has no such fields, but dataclasses do.
    odd = dataclasses.make_dataclass("Odd", [("_Raw", str)])
    with pytest.raises(SpecError, match="'_Raw'"):
        record_schema(odd)


@pytest.mark.parametrize("kind", [Tags, list[int], int], ids=str)
def test_what_is_no_object_is_refused(kind: Any) -> None:
    with pytest.raises(SpecError, match="not an object"):
        record_schema(kind)


def test_keys_that_the_model_does_not_know_have_no_column() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        name: str

    assert record_schema(Open).names[:1] == ["name"]
