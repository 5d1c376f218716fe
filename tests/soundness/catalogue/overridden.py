"""Catalogue: validators and schemas of the user's own, which say more, less or other than the type."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainValidator,
    WithJsonSchema,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import core_schema

from tests.soundness.entry import Entry, entry
from tests.soundness.strategies import integers

__all__ = ["ENTRIES"]

_ODD = {"may_widen": True, "may_be_refused": True}


def _halved(value: Any) -> int:
    if not isinstance(value, int) or value % 2:
        raise ValueError("odd")
    return value // 2


class SchemaExtra(BaseModel):
    wider: Annotated[int, Field(le=5, json_schema_extra={"maximum": 100})]
    other: Annotated[int, WithJsonSchema({"type": "string"})]


class ModelSchemaExtra(BaseModel):
    model_config = ConfigDict(json_schema_extra={"properties": {"a": {"type": "string"}}, "required": []})
    a: int


class OwnSchema(BaseModel):
    a: int

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "object", "properties": {}, "additionalProperties": True}


class Wrapped(BaseModel):
    a: int

    @model_validator(mode="wrap")
    @classmethod
    def _wrap(cls, value: Any, handler: Any) -> Any:
        made = handler(value)
        if made.a == 3:
            raise ValueError("three")
        return made


class PlainField(BaseModel):
    a: int

    @field_validator("a", mode="plain")
    @classmethod
    def _plain(cls, value: Any) -> int:
        return _halved(value)


class OwnInit(BaseModel):
    a: int

    def __init__(self, **values: Any) -> None:
        if values.get("a") == 5:
            raise ValueError("five")
        super().__init__(**values)


class PostInit(BaseModel):
    a: int

    def model_post_init(self, context: Any) -> None:
        if self.a < 0:
            raise ValueError("below zero")


@dataclasses.dataclass
class PostInitData:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("below zero")


def _built(schema: core_schema.CoreSchema) -> Any:
    """A type whose core schema is written by hand."""
    return Annotated[Any, GetPydanticSchema(lambda _source, _handler: schema)]


def _tagged(tags: list[str]) -> core_schema.CoreSchema:
    tag = core_schema.literal_schema(tags) if tags else core_schema.str_schema()
    choice = core_schema.typed_dict_schema({"k": core_schema.typed_dict_field(tag)})
    return core_schema.tagged_union_schema({"a": choice}, discriminator="k")


_STR, _BOOL = core_schema.str_schema(), core_schema.bool_schema()
_CALLED = core_schema.arguments_schema([core_schema.arguments_parameter("a", core_schema.int_schema())])
_EXTRAS = core_schema.model_fields_schema(
    {"a": core_schema.model_field(core_schema.int_schema())},
    extra_behavior="allow",
    extras_keys_schema=core_schema.str_schema(max_length=2),
)

ENTRIES: tuple[Entry, ...] = (
    entry(
        "plain_validator",
        Annotated[int, PlainValidator(_halved)],
        "validator",
        instances=st.sampled_from([2, 4]),
        **_ODD,
    ),
    entry("wrap_validator", Annotated[int, WrapValidator(lambda value, handler: handler(value))], "validator", **_ODD),
    entry("validator_in_list", list[Annotated[int, AfterValidator(_halved)]], "validator", **_ODD),
    entry("validator_in_union", Annotated[int, AfterValidator(_halved)] | None, "validator", **_ODD),
    entry(
        "validator_as_key", dict[Annotated[str, AfterValidator(lambda key: key[:1])], int], "validator", "dict", **_ODD
    ),
    entry(
        "schema_override", Annotated[int, WithJsonSchema({"type": "string"})], "schema", instances=integers(), **_ODD
    ),
    entry(
        "schema_override_wider",
        Annotated[int, Field(le=5), WithJsonSchema({})],
        "schema",
        instances=st.integers(0, 5),
        **_ODD,
    ),
    entry("schema_extra", SchemaExtra, "schema", instances=st.just({"wider": 3, "other": 4}), **_ODD),
    entry("schema_extra_model", ModelSchemaExtra, "schema", instances=st.just({"a": 3}), **_ODD),
    entry("schema_own", OwnSchema, "schema", instances=st.just({"a": 3}), **_ODD),
    entry("schema_skipped", int | SkipJsonSchema[None], "schema", **_ODD),
    entry("model_wrap_validator", Wrapped, "validator", **_ODD),
    entry("model_plain_field", PlainField, "validator", instances=st.just({"a": 4}), **_ODD),
    entry("model_own_init", OwnInit, "model", **_ODD),
    entry("model_post_init", PostInit, "model", **_ODD),
    entry("dataclass_post_init", PostInitData, "dataclass", **_ODD),
    entry(
        "built_offset",
        _built(core_schema.datetime_schema(tz_constraint=3600)),
        "schema",
        "as_drawn",
        instances=st.just("2020-01-31T10:00:00+01:00"),
        **_ODD,
    ),
    entry(
        "built_tuple",
        _built(core_schema.tuple_schema([_STR, _BOOL], variadic_item_index=0)),
        "schema",
        "any",
        instances=st.just(["a", "b", True]),
        **_ODD,
    ),
    entry(
        "built_call",
        _built(core_schema.call_schema(_CALLED, lambda a: str(a), return_schema=_BOOL)),
        "schema",
        "no_json",
        **_ODD,
    ),
    entry("built_tag_open", _built(_tagged([])), "schema", instances=st.just({"k": "a"}), **_ODD),
    entry("built_tag_unnamed", _built(_tagged(["a", "b"])), "schema", instances=st.just({"k": "a"}), **_ODD),
    entry("built_tag", _built(_tagged(["a"])), "schema", instances=st.just({"k": "a"})),
    entry("built_extras", _built(_EXTRAS), "schema", "extra", "as_drawn", instances=st.just({"a": 1}), **_ODD),
)
