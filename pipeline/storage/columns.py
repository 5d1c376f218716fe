"""From a Pydantic type to an Arrow type: the column in which a warehouse would expect such values.

It reads pydantic's core schema, in which aliases, `Annotated` and forward references are already resolved.  What no
Arrow type holds without loss (unions, `Any`, recursion) becomes JSON text, and its field's metadata says so.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from pipeline.core.errors import SpecError

__all__ = ["ENCODING", "is_json", "model_fields"]

ENCODING = b"recordmill.encoding"
"""Key of a field's metadata; the value `json` says that the strings are JSON texts."""

_MOST_DIGITS = 38
"""Of decimal128, and of the decimal types of most warehouses."""

_Schema = Mapping[str, Any]

_SCALARS: dict[str, pa.DataType] = {
    "str": pa.string(),
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timedelta": pa.duration("us"),
    "uuid": pa.string(),
    "url": pa.string(),
    "multi-host-url": pa.string(),
    "none": pa.string(),
}

_INNER: dict[str, str] = {
    "nullable": "schema",
    "default": "schema",
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "model-field": "schema",
    "dataclass-field": "schema",
    "typed-dict-field": "schema",
    "json": "schema",
    "lax-or-strict": "strict_schema",
    "json-or-python": "json_schema",
}
"""Wrappers, and the key of what they wrap: for values that come from JSON, the JSON side of it."""


_OBJECTS = ("model", "dataclass", "typed-dict")


def is_json(field: pa.Field[Any]) -> bool:
    """Whether the column's strings are JSON texts."""
    return field.metadata is not None and field.metadata.get(ENCODING) == b"json"


def model_fields(model: type) -> list[pa.Field[Any]]:
    """One nullable Arrow field a field of the model, by its Python name, in order of declaration; computed ones last.

    Raises:
        SpecError: the type is not one whose values are objects.
    """
    try:
        schema = TypeAdapter(model).core_schema
    except PydanticUserError as error:
        raise SpecError(f"{model.__name__} is not a type that pydantic can validate: {error.code}") from error
    members = _Columns().members(schema)
    if members is None:
        raise SpecError(f"{model.__name__} is not an object with fields, so its values are not rows of a table")
    return members


class _Columns:
    """Walks one core schema; keeps its definitions, and the references that it stands in."""

    def __init__(self) -> None:
        self._definitions: dict[str, _Schema] = {}
        self._open: list[str | None] = []

    def members(self, schema: _Schema) -> list[pa.Field[Any]] | None:
        """The fields of an object type; None for any other type."""
        with self._inside(schema):
            inner = self._unwrapped(schema)
            if inner is not None:
                return self.members(inner)
            match schema["type"]:
                case "model" if not schema.get("root_model"):
                    return self.members(schema["schema"])
                case "dataclass":
                    return self.members(schema["schema"])
                case "model-fields" | "typed-dict":
                    named = list(schema["fields"].items())
                case "dataclass-args":
                    named = [(item["name"], item) for item in schema["fields"] if not item.get("init_only")]
                case _:
                    return None
            computed = [(item["property_name"], item["return_schema"]) for item in schema.get("computed_fields", ())]
            kept = [(name, item) for name, item in named if not item.get("serialization_exclude")]
            return [self._field(name, item) for name, item in [*kept, *computed]]

    @contextmanager
    def _inside(self, schema: _Schema) -> Iterator[None]:
        self._open.append(schema.get("ref"))
        try:
            yield
        finally:
            self._open.pop()

    def _unwrapped(self, schema: _Schema) -> _Schema | None:
        """The schema with one wrapper or reference less; None if it is a type of its own."""
        match schema["type"]:
            case "definitions":
                self._definitions.update({item["ref"]: item for item in schema["definitions"]})
                inner = schema["schema"]
            case "definition-ref":
                inner = self._definitions[schema["schema_ref"]]
            case "chain":
                inner = schema["steps"][-1]
            case kind if kind in _INNER:
                inner = schema.get(_INNER[kind], {"type": "any"})
            case _:
                inner = None
        return cast(_Schema | None, inner)

    def _field(self, name: str, schema: _Schema) -> pa.Field[Any]:
        kind = self._type(schema)
        return pa.field(name, pa.string(), metadata={ENCODING: b"json"}) if kind is None else pa.field(name, kind)

    def _type(self, schema: _Schema) -> pa.DataType | None:
        """The Arrow type, or None where only JSON will do."""
        if schema.get("ref") is not None and schema["ref"] in self._open:
            return None
        serialised = _serialised(schema)
        if serialised is not None:
            return self._type(serialised)
        inner = self._unwrapped(schema)
        with self._inside(schema):
            return self._own_type(schema) if inner is None else self._type(inner)

    def _own_type(self, schema: _Schema) -> pa.DataType | None:
        kind = schema["type"]
        if kind in _SCALARS:
            return _SCALARS[kind]
        match kind:
            case "datetime":
                return pa.timestamp("us", None if schema.get("tz_constraint") == "naive" else "UTC")
            case "decimal":
                return _decimal(schema)
            case "enum":
                return _common([_plain(member.value) for member in schema["members"]])
            case "literal":
                return _common([_plain(value) for value in schema["expected"] if value is not None])
            case "list" | "set" | "frozenset":
                return self._list([schema.get("items_schema", {"type": "any"})])
            case "tuple":
                return self._list(schema["items_schema"])
            case "dict":
                return self._map(schema)
            case "union":
                choices = (choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"])
                return _common([self._type(choice) for choice in choices if choice["type"] != "none"])
            case "model" if schema.get("root_model"):
                return self._type(schema["schema"])
            case _:
                members = None if schema["type"] not in _OBJECTS else self.members(schema)
                # Parquet has no struct without members.
                return pa.struct(members) if members else None

    def _list(self, items: Iterable[_Schema]) -> pa.DataType | None:
        kind = _common([self._type(item) for item in items])
        return None if kind is None else pa.list_(pa.field("element", kind))

    def _map(self, schema: _Schema) -> pa.DataType | None:
        key = self._type(schema.get("keys_schema", {"type": "any"}))
        value = self._type(schema.get("values_schema", {"type": "any"}))
        return None if value is None or key not in (pa.string(), pa.int64()) else pa.map_(key, value)


def _serialised(schema: _Schema) -> _Schema | None:
    """What a serializer of the user's gives in place of the value: `Any` where it does not say."""
    serialization = schema.get("serialization", {})
    if serialization.get("type") not in ("function-plain", "function-wrap"):
        return None
    if serialization.get("when_used", "always").startswith("json"):
        return None
    # Pydantic's own types serialize themselves, to themselves, when dumped as Python values.
    if getattr(serialization["function"], "__module__", "").startswith("pydantic."):
        return None
    returned: _Schema = serialization.get("return_schema", {"type": "any"})
    return returned


def _decimal(schema: _Schema) -> pa.DataType:
    places, digits = schema.get("decimal_places"), schema.get("max_digits") or _MOST_DIGITS
    if places is None or digits > _MOST_DIGITS or places > digits:
        return pa.string()
    return pa.decimal128(digits, places)


def _plain(value: object) -> pa.DataType | None:
    """The type of one constant."""
    if isinstance(value, enum.Enum):
        value = value.value
    for kind, arrow in ((bool, pa.bool_()), (int, pa.int64()), (str, pa.string()), (float, pa.float64())):
        if isinstance(value, kind):
            return arrow
    return None


def _common(kinds: list[pa.DataType | None]) -> pa.DataType | None:
    """The one type that all have, if there is one."""
    return kinds[0] if kinds and all(kind is not None and kind == kinds[0] for kind in kinds) else None
