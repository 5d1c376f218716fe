"""What Pydantic checks of a value that its JSON Schema does not say, and what may be relied on as said."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import JsonSchemaValue

__all__ = [
    "as_validated",
    "bounds_of",
    "is_alias_path",
    "is_hashable",
    "is_known",
    "is_required",
    "json_members",
    "key_members",
    "lacks_length",
    "noted",
    "readers_of_keys",
    "unheld_check",
]

_KNOWN_MODULES = ("pydantic.", "pydantic_core", "ipaddress", "pathlib")
"""Modules whose validators take what the schema says, where it says it exactly."""
_USERS_OWN = ("pydantic._internal._decorators_v1", "pydantic.experimental.")
"""Modules of Pydantic's that wrap functions of the user's."""
_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")
_KNOWN_FORMATS = frozenset(
    {"email", "uri", "ipv4", "ipv6", "ipv4network", "ipv6network", "ipv4interface", "ipv6interface", "path", "password",
     "base64", "base64url", "binary", "ipvanyaddress", "ipvanynetwork", "ipvanyinterface"}
)  # fmt: skip
_PLAIN_STRINGS = frozenset({"path_validator", "SecretStr", "SecretBytes"})
"""Validators of Pydantic's own that take any string."""
_NARROWER = {
    "EncodedStr": "base64 of UTF-8 text",
    "PathType": "the path on this machine",
    "<locals>.val_func": "validator val_func",
}
"""Validators of Pydantic's own that take less than their schema says, by what stands in their names."""
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_MEASURED_OTHERWISE = frozenset({"binary", "path", "uri"})
"""Formats whose length is not counted in characters of the JSON string."""


def noted(schema: JsonSchemaValue, reason: str) -> JsonSchemaValue:
    """The schema of a field of which this much is checked afterwards."""
    if "$ref" in schema:
        return {"allOf": [schema], "x-checked": [reason]}
    return {**schema, "x-checked": [*schema.get("x-checked", ()), reason]}


def bounds_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The bounds of a core schema that are set."""
    return {key: schema[key] for key in _BOUNDS if schema.get(key) is not None}


def is_known(function: Any) -> bool:
    """Whether a function is Pydantic's or the standard library's own."""
    module = str(getattr(function, "__module__", None) or type(function).__module__)
    return module.startswith(_KNOWN_MODULES) and not module.startswith(_USERS_OWN)


def unheld_check(core: Mapping[str, Any], schema: JsonSchemaValue) -> str | None:
    """What a validator checks beyond its schema; None where the schema says it all.

    Args:
        core: the core schema of a validator.
        schema: the JSON Schema made of it.
    """
    function = core["function"]["function"]
    name = getattr(function, "__qualname__", type(function).__name__)
    if isinstance(function, functools.partial) and is_known(function.func):
        is_held = all(_holds(schema, key, value) for key, value in function.keywords.items())
        # Of several bounds the last one stands in the schema.
        is_alone = is_held and not _is_bounded_within(core["schema"], function.keywords)
        return None if is_alone else f"constraint {function.keywords}"
    if not is_known(function):
        return f"validator {name.rpartition('.')[2]}"
    if name.rpartition(".")[2] in _PLAIN_STRINGS:
        return None
    for inner, reason in _NARROWER.items():
        if inner in name:
            return reason
    is_exact = "x-string" in schema or "x-json" in schema or schema.get("format") in _KNOWN_FORMATS
    return None if is_exact else f"validator {getattr(function, '__name__', 'of the type')}"


def _holds(schema: JsonSchemaValue, key: str, value: Any) -> bool:
    """Whether the schema has a bound of the length in the unit that Pydantic counts in."""
    bound, _, what = key.partition("_")
    unit = _LENGTHS.get(schema.get("type", ""))
    if what != "length" or unit is None or "x-json" in schema or schema.get("format") in _MEASURED_OTHERWISE:
        return False
    return bool(schema.get(f"{bound}{unit}") == value)


_SIZELESS_STRINGS = frozenset({"date", "time", "datetime", "timedelta", "uuid"})
_SIZELESS_TYPES = frozenset({"integer", "number", "boolean", "null"})


def lacks_length(core: Mapping[str, Any], schema: JsonSchemaValue) -> bool:
    """Whether a validator bounds the length of what has none, which raises an error whatever the record says.

    Args:
        core: the core schema of a validator.
        schema: the JSON Schema made of it.
    """
    function = core["function"]["function"]
    if not isinstance(function, functools.partial) or {"min_length", "max_length"}.isdisjoint(function.keywords):
        return False
    is_address = str(schema.get("format", "")).startswith("ip")
    is_sizeless = schema.get("x-string", {}).get("kind") in _SIZELESS_STRINGS or schema.get("type") in _SIZELESS_TYPES
    return is_address or is_sizeless or "x-number" in schema


def _is_bounded_within(core: Any, keywords: Mapping[str, Any]) -> bool:
    """Whether what is bounded has such a bound already, or is measured in bytes."""
    if core["type"] == "bytes":
        return True
    function = core.get("function", {}).get("function") if core["type"].startswith("function-") else None
    if isinstance(function, functools.partial) and not keywords.keys().isdisjoint(function.keywords):
        return True
    inner = _inner(core)
    return inner is not None and _is_bounded_within(inner, keywords)


def _inner(core: Any) -> Any:
    """The core schema of what is read from JSON inside another one; None where there is none."""
    held = (core.get(key) for key in ("schema", "lax_schema", "json_schema"))
    found = next((each for each in held if isinstance(each, dict)), None)
    return found if found is not None and "type" in found else None


def is_alias_path(field: Mapping[str, Any]) -> bool:
    """Whether a field is read from inside another value."""
    alias = field.get("validation_alias")
    first = alias[0] if isinstance(alias, list) and alias and isinstance(alias[0], list) else alias
    return isinstance(first, list) and len(first) > 1


_HASHABLE = frozenset(
    {"none", "bool", "int", "float", "decimal", "str", "bytes", "date", "time", "datetime", "timedelta", "literal",
     "enum", "url", "multi-host-url", "uuid", "frozenset", "is-instance"}
)  # fmt: skip


def is_hashable(core: Any, shared: Mapping[str, Any]) -> bool:
    """Whether every value of a type can be an item of a set; False where that is not plain to see.

    Args:
        core: a core schema.
        shared: core schemas by the reference that others name them by.
    """
    kind = None if core is None else core["type"]
    if kind in _HASHABLE:
        return True
    match kind:
        case "definition-ref":
            rest = {ref: each for ref, each in shared.items() if ref != core["schema_ref"]}
            return is_hashable(shared.get(core["schema_ref"]), rest)
        case "tuple":
            return all(is_hashable(item, shared) for item in core["items_schema"])
        case "model" | "dataclass":
            has_hash = core["cls"].__hash__ is not None  # as frozen ones have
            held = [core] if core.get("root_model") else _fields(core)
            return has_hash and all(is_hashable(each["schema"], shared) for each in held)
        case "function-plain":
            return is_known(core["function"]["function"])  # which makes addresses
        case "union":
            choices = (each[0] if isinstance(each, tuple) else each for each in core["choices"])
            return all(is_hashable(each, shared) for each in choices)
        case "tagged-union":
            return all(is_hashable(each, shared) for each in core["choices"].values())
        case "chain":
            return is_hashable(core["steps"][-1], shared)
    inner = None if core is None else _inner(core)
    return inner is not None and is_hashable(inner, shared)


def _fields(core: Any) -> list[Any]:
    while core["type"] not in ("model-fields", "dataclass-args"):
        core = core["schema"]
    return list(core["fields"].values() if isinstance(core["fields"], Mapping) else core["fields"])


def is_required(field: Mapping[str, Any]) -> bool:
    """Whether a record without the field is refused."""
    return bool(field.get("required", True)) and field["schema"]["type"] != "default"


def readers_of_keys(core: Any) -> Counter[str]:
    """How many fields of a class are read from each key of an object, in whole or in part."""
    config = core.get("config", {})
    is_by_alias, is_by_name = config.get("validate_by_alias", True), bool(config.get("validate_by_name"))
    while core["type"] not in ("model-fields", "dataclass-args", "typed-dict") and "schema" in core:
        core = core["schema"]
    fields = core.get("fields", ())
    named = fields.items() if isinstance(fields, Mapping) else ((field["name"], field) for field in fields)
    found: Counter[str] = Counter()
    for name, field in named:
        aliases = _first_keys(field.get("validation_alias")) if is_by_alias else set()
        found.update({*aliases, name} if is_by_name else aliases or {name})
    return found


def _first_keys(alias: Any) -> set[str]:
    if not isinstance(alias, list):
        return set() if alias is None else {alias}
    paths = alias if alias and isinstance(alias[0], list) else [alias]
    return {path[0] for path in paths if isinstance(path[0], str)}


def json_members(values: Any, *, is_float: bool = False) -> list[Any]:
    """Of an enum's or a literal's values those that JSON text can name as they are, and Pydantic reads.

    Args:
        is_float: whether they are compared as floats; whole numbers are read as integers of 64 bits otherwise.
    """
    named = (value for value in values if isinstance(value, str | int | float | None))
    return [value for value in named if not isinstance(value, int | float) or _is_read(value, is_float=is_float)]


def _is_read(value: float, *, is_float: bool) -> bool:
    return math.isfinite(value) if is_float else -(2**63) <= value < 2**63


def key_members(values: Iterable[Any]) -> list[Any]:
    """Of such values those that an object's key can name."""
    return [value for value in values if isinstance(value, str | bool)]


_SHOWN = frozenset({"title", "description", "examples", "deprecated", "x-span"})


def as_validated(schema: Any) -> Any:
    """The schema without what a user says of its JSON form: what is validated counts, not what is documented."""
    metadata = schema.get("metadata")
    if not metadata:
        return schema
    kept = dict(metadata)
    for key in ("pydantic_js_functions", "pydantic_js_annotation_functions"):
        if key in kept:
            kept[key] = [function for function in kept[key] if _is_trusted(function)]
    extra = kept.pop("pydantic_js_extra", None)
    if isinstance(extra, dict):
        kept["pydantic_js_extra"] = {name: value for name, value in extra.items() if name in _SHOWN}
    return {**schema, "metadata": kept}


def _is_trusted(function: Any) -> bool:
    name = getattr(function, "__qualname__", "")
    module = str(getattr(function, "__module__", ""))
    return module.startswith((*_KNOWN_MODULES, "pipeline.")) and "WithJsonSchema" not in name
