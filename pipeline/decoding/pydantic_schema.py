"""A Pydantic type as JSON Schema, without what the stock translation loses.

Pydantic's own generator drops digits and places of decimals, bounds of dates and durations, zones, key types of dicts
and the presence of validators.  This one writes them under keywords of our own:

    x-string   {"kind": ..., bounds}   the string's exact language (see `formats`)
    x-number   {"kind": "decimal", ...} a decimal, spelt as a number or as a string
    x-keys     schema of an object's keys
    x-json     schema of the JSON inside a string
    x-checked  [reason, ...]            what Pydantic checks that no automaton holds: such a field is `widened`
    x-refused  reason                   no JSON can be generated for it
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaError, core_schema

from pipeline.core.errors import SchemaRefusedError

__all__ = ["schema_of_type"]

_BOUNDS = ("ge", "gt", "le", "lt", "multiple_of")
_ALIAS_PATH = {"x-refused": "an AliasPath reads inside another value; write the nested model"}
_KNOWN_MODULES = ("pydantic.", "pydantic_core", "ipaddress", "pathlib")
_KNOWN_FORMATS = frozenset(
    {"email", "uri", "ipv4", "ipv6", "ipv4network", "ipv6network", "ipv4interface", "ipv6interface", "path", "password",
     "base64", "base64url", "binary", "ipvanyaddress", "ipvanynetwork", "ipvanyinterface"}
)  # fmt: skip


def schema_of_type(record: Any) -> dict[str, Any]:
    """The schema of anything that `TypeAdapter` takes.

    Raises:
        SchemaRefusedError: Pydantic cannot make sense of the type itself.
    """
    try:
        adapter = TypeAdapter(record)
        schema = adapter.json_schema(schema_generator=_Generator, mode="validation", ref_template=DEFAULT_REF_TEMPLATE)
    except (PydanticUserError, SchemaError) as error:
        raise SchemaRefusedError(f"{getattr(record, '__name__', record)}: {str(error).splitlines()[0]}") from error
    return dict(schema)


def _noted(schema: JsonSchemaValue, reason: str) -> JsonSchemaValue:
    if "$ref" in schema:
        return {"allOf": [schema], "x-checked": [reason]}
    return {**schema, "x-checked": [*schema.get("x-checked", ()), reason]}


def _bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in _BOUNDS if schema.get(key) is not None}


def _is_known(function: Any) -> bool:
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).startswith(_KNOWN_MODULES)


_PLAIN_STRINGS = frozenset({"path_validator", "SecretStr", "SecretBytes"})
"""Validators of Pydantic's own that take any string."""
_NARROWER = {
    "EncodedStr": "base64 of UTF-8 text",
    "PathType": "the path on this machine",
    "<locals>.val_func": "validator val_func",
}
"""Validators of Pydantic's own that take less than their schema says, by what stands in their names."""
_KEYWORDS = {
    "min_length": ("minLength", "minItems", "minProperties"),
    "max_length": ("maxLength", "maxItems", "maxProperties"),
}


def _partial_constraint(function: Any, schema: JsonSchemaValue) -> bool | None:
    """Whether the schema holds the constraint that a partial function of Pydantic's checks; None for others."""
    if not isinstance(function, functools.partial) or not _is_known(function.func):
        return None
    return all(any(word in schema for word in _KEYWORDS.get(key, ())) for key in function.keywords)


def _alias_path(field: Mapping[str, Any]) -> bool:
    """Whether a field is read from inside another value."""
    alias = field.get("validation_alias")
    first = alias[0] if isinstance(alias, list) and alias and isinstance(alias[0], list) else alias
    return isinstance(first, list) and len(first) > 1


_SHOWN = frozenset({"title", "description", "examples", "deprecated", "x-span"})


def _as_validated(schema: Any) -> Any:
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


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        generated = super().generate_inner(_as_validated(schema))
        kind = schema.get("type", "")
        if kind.startswith("function-") and "x-refused" not in generated:
            function = schema["function"]["function"]
            name = getattr(function, "__qualname__", type(function).__name__)
            if (partial := _partial_constraint(function, generated)) is not None:
                return generated if partial else _noted(generated, f"constraint {function.keywords}")
            if name.rpartition(".")[2] in _PLAIN_STRINGS:
                return generated
            for inner, reason in _NARROWER.items():
                if inner in name:
                    return _noted(generated, reason)
            if not _is_known(function):
                return _noted(generated, f"validator {name.rpartition('.')[2]}")
            if not self._is_exact(generated):
                return _noted(generated, f"validator {getattr(function, '__name__', 'of the type')}")
        return generated

    @staticmethod
    def _is_exact(schema: JsonSchemaValue) -> bool:
        return "x-string" in schema or "x-json" in schema or schema.get("format") in _KNOWN_FORMATS

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {"x-refused": f"{error_info.removeprefix('core_schema.')} has no JSON form"}

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        generated = super().str_schema(schema)
        for key in ("strip_whitespace", "to_lower", "to_upper", "ascii_only"):
            value = schema.get(key, getattr(self._config, f"str_{key}", None))
            if value:
                generated[f"x-{key}"] = True
        for key, name in (("minLength", "str_min_length"), ("maxLength", "str_max_length")):
            value = self._config.config_dict.get(name)
            if value and key not in generated:
                generated[key] = value
        pattern = schema.get("pattern")
        if not isinstance(pattern, re.Pattern):
            return generated
        flags = pattern.flags & ~re.compile(pattern.pattern).flags
        if flags & ~re.IGNORECASE:
            generated.pop("pattern", None)
            return _noted(generated, f"pattern with {re.RegexFlag(flags)!r}")
        generated["pattern"] = f"(?i){pattern.pattern}" if flags else pattern.pattern
        return generated

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        digits = {key: schema[key] for key in ("max_digits", "decimal_places") if schema.get(key) is not None}
        bounds = {key: str(value) for key, value in _bounds(schema).items()}
        return {"x-number": {"kind": "decimal", **bounds, **digits}}

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        return self._temporal("date", schema)

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        return self._temporal("time", schema)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        return self._temporal("datetime", schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return self._temporal("timedelta", schema)

    def _temporal(self, kind: str, schema: Mapping[str, Any]) -> JsonSchemaValue:
        bounds = {key: getattr(value, "isoformat", value.__str__)() for key, value in _bounds(schema).items()}
        generated: JsonSchemaValue = {"type": "string", "x-string": {"kind": kind}}
        if (zone := schema.get("tz_constraint")) is not None:
            generated["x-string"]["zone"] = zone
        if schema.get("microseconds_precision") == "error":
            generated["x-string"]["micro"] = True
        if kind == "date":
            generated["x-string"].update(bounds)
        elif bounds:
            generated["x-checked"] = [f"{key} {value}" for key, value in bounds.items()]
        if (now := schema.get("now_op")) is not None:
            generated["x-checked"] = [*generated.get("x-checked", ()), f"{now} of today"]
        return generated

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        return {"type": "string", "x-string": {"kind": "uuid", "version": schema.get("version")}}

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        settings = {"schemes": schema.get("allowed_schemes"), "max_length": schema.get("max_length")}
        return {"type": "string", "format": "uri", "x-string": {"kind": "url", **settings}}

    def multi_host_url_schema(self, schema: Any) -> JsonSchemaValue:
        return self.url_schema(schema)

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        generated = super().bytes_schema(schema)
        if self._config.config_dict.get("val_json_bytes", "utf8") != "utf8":
            kind = str(self._config.config_dict["val_json_bytes"])
            return {"type": "string", "x-string": {"kind": "base64-strict" if kind == "base64" else kind}}
        generated["format"] = "binary"
        if "maxLength" in generated or generated.get("minLength", 0) > 1:
            generated["x-ascii_only"] = True
        return generated

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        generated = super().enum_schema(schema)
        generated.pop("type", None)
        # JSON has no tuples and such, so a member with such a value cannot be named by one.
        scalars = [value for value in generated.get("enum", ()) if isinstance(value, str | int | float | None)]
        if "enum" in generated and not scalars:
            return {"x-refused": "an enum of such values has no JSON form; give its members strings or numbers"}
        return {**generated, "enum": scalars} if "enum" in generated else generated

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        return self._set(super().set_schema(schema))

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        return self._set(super().frozenset_schema(schema))

    @staticmethod
    def _set(generated: JsonSchemaValue) -> JsonSchemaValue:
        generated.pop("uniqueItems", None)
        if generated.get("minItems", 0) > 1:
            return _noted(generated, f"at least {generated['minItems']} different items")
        return generated

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        generated: JsonSchemaValue = {"type": "object", "additionalProperties": True}
        if "keys_schema" in schema:
            generated["x-keys"] = self.generate_inner(schema["keys_schema"])
        if "values_schema" in schema:
            generated["additionalProperties"] = self.generate_inner(schema["values_schema"])
        self.update_with_validations(generated, schema, self.ValidationsMapping.object)
        if generated.get("minProperties", 0) > 1:
            return _noted(generated, f"at least {generated['minProperties']} different keys")
        return generated

    def json_schema(self, schema: core_schema.JsonSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"]) if "schema" in schema else {}
        return {"type": "string", "x-json": inner}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        generated = super().tagged_union_schema(schema)
        if "oneOf" in generated:
            generated["anyOf"] = generated.pop("oneOf")
        return generated

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        return {"x-refused": "classes have no JSON form; write their names"}

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        return {"x-refused": "complex numbers have no JSON form; write two floats"}

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        return {"x-refused": "fractions have no JSON form; write Decimal or two ints"}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        generated = self._closed(super().model_schema(schema))
        if schema.get("custom_init"):
            generated = _noted(generated, "the class's own __init__")
        if schema.get("post_init"):
            return self._post_init(generated, schema["cls"], str(schema["post_init"]))
        return generated

    @staticmethod
    def _post_init(generated: JsonSchemaValue, cls: type, name: str) -> JsonSchemaValue:
        """Pydantic sets up private attributes in this hook; only one that the user wrote can refuse a record."""
        if _is_known(getattr(cls, name, None)):
            return generated
        return _noted(generated, name)

    def _update_class_schema(self, json_schema: JsonSchemaValue, cls: type[Any], config: Any) -> None:
        shown = {key: value for key, value in config.items() if key != "json_schema_extra"}
        super()._update_class_schema(json_schema, cls, cast("ConfigDict", shown))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return self._closed(super().typed_dict_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        generated = self._closed(super().dataclass_schema(schema))
        return _noted(generated, "__post_init__") if schema.get("post_init") else generated

    @staticmethod
    def _closed(generated: JsonSchemaValue) -> JsonSchemaValue:
        """What a model ignores, it need not be given: undeclared keys are generated only where it keeps them."""
        if generated.get("type") == "object":
            generated.setdefault("properties", {})
            generated.setdefault("additionalProperties", False)
        return generated

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        return _ALIAS_PATH if _alias_path(schema) else super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        return _ALIAS_PATH if _alias_path(schema) else super().dataclass_field_schema(schema)

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonSchemaValue:
        return _ALIAS_PATH if _alias_path(schema) else super().typed_dict_field_schema(schema)

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        if any(isinstance(value, enum.Enum) and not isinstance(value, str | int) for value in schema["expected"]):
            return {"x-refused": "a Literal of plain enum members has no JSON form; write the enum, or their values"}
        return super().literal_schema(schema)
