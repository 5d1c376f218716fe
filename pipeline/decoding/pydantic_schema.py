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
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema, JsonRef, JsonSchemaValue
from pydantic_core import PydanticOmit, SchemaError, core_schema

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.pydantic_checks import (
    as_validated,
    bounds_of,
    is_alias_path,
    is_hashable,
    is_known,
    is_required,
    json_members,
    noted,
    other_spellings,
    unheld_check,
)

__all__ = ["schema_of_type"]

_ALIAS_PATH = {"x-refused": "an AliasPath reads inside another value; write the nested model"}
_HIDDEN = {"x-refused": "SkipJsonSchema hides a field that a record must have; give it a default"}


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


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        kind = schema.get("type", "")
        try:
            generated = super().generate_inner(as_validated(schema))
        except PydanticOmit:
            if kind.endswith("-field") and is_required(schema):
                return dict(_HIDDEN)
            raise
        if not kind.startswith("function-") or "x-refused" in generated:
            return generated
        own = self.get_schema_from_definitions(JsonRef(generated["$ref"])) if "$ref" in generated else None
        if own is None or "ref" not in schema:
            reason = unheld_check(schema, generated)
            return generated if reason is None else noted(generated, reason)
        # The type is used in several places, so that the note goes where all of them find it.
        if (reason := unheld_check(schema, own)) is not None:
            own["x-checked"] = [*own.get("x-checked", ()), reason]
        return generated

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
            return noted(generated, f"pattern with {re.RegexFlag(flags)!r}")
        generated["pattern"] = f"(?i){pattern.pattern}" if flags else pattern.pattern
        return generated

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        digits = {key: schema[key] for key in ("max_digits", "decimal_places") if schema.get(key) is not None}
        bounds = {key: str(value) for key, value in bounds_of(schema).items()}
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
        bounds = {key: getattr(value, "isoformat", value.__str__)() for key, value in bounds_of(schema).items()}
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
            spelt: JsonSchemaValue = {
                "type": "string",
                "x-string": {"kind": kind if kind == "hex" else "base64-strict"},
            }
            is_bounded = "minLength" in generated or "maxLength" in generated
            return noted(spelt, "length in bytes") if is_bounded else spelt
        generated["format"] = "binary"
        if "maxLength" in generated or generated.get("minLength", 0) > 1:
            generated["x-ascii_only"] = True
        return generated

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        generated = super().enum_schema(schema)
        generated.pop("type", None)
        # JSON has no tuples, dates and such, so a member with such a value cannot be named by one.
        members = json_members(member.value for member in schema["members"])
        if not members:
            return {"x-refused": "an enum of such values has no JSON form; give its members strings or numbers"}
        return {**generated, "enum": members}

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonSchemaValue:
        self._shared = {each["ref"]: each for each in schema["definitions"] if "ref" in each}
        return super().definitions_schema(schema)

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        return self._set(super().set_schema(schema), schema)

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        return self._set(super().frozenset_schema(schema), schema)

    def _set(self, generated: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        generated.pop("uniqueItems", None)
        if not is_hashable(schema.get("items_schema"), getattr(self, "_shared", {})):
            generated = noted(generated, "items that can be hashed")
        if generated.get("minItems", 0) > 1:
            return noted(generated, f"at least {generated['minItems']} different items")
        return generated

    def _resolved(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        """The schema behind references, as far as it is known yet."""
        while "$ref" in schema:
            behind = self.get_schema_from_definitions(JsonRef(schema["$ref"]))
            if behind is None:
                return {}
            schema = behind
        return schema

    def frozendict_schema(self, schema: Any) -> JsonSchemaValue:
        return self.dict_schema(schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return self.dict_schema(schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        return {**self.dict_schema(schema), "additionalProperties": {"type": "integer"}}

    def _keys(self, schema: Any) -> JsonSchemaValue:
        """Keys are strings: numbers are read from them, but not the numbers of a literal or of a plain enum."""
        generated = self.generate_inner(schema)
        if schema["type"] == "literal" or (schema["type"] == "enum" and schema.get("sub_type") is None):
            members = self._resolved(generated)
            values = members.get("enum", [members["const"]] if "const" in members else [])
            return {"enum": [value for value in values if isinstance(value, str | bool)]}
        return generated

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        generated: JsonSchemaValue = {"type": "object", "additionalProperties": True}
        if "keys_schema" in schema:
            generated["x-keys"] = self._keys(schema["keys_schema"])
        if "values_schema" in schema:
            generated["additionalProperties"] = self.generate_inner(schema["values_schema"])
        self.update_with_validations(generated, schema, self.ValidationsMapping.object)
        if generated.get("minProperties", 0) > 1:
            return noted(generated, f"at least {generated['minProperties']} different keys")
        return generated

    def json_schema(self, schema: core_schema.JsonSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"]) if "schema" in schema else {}
        return {"type": "string", "x-json": inner}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        generated = super().tagged_union_schema(schema)
        choices = generated.pop("oneOf")
        if (found := generated.pop("discriminator", None)) is None:
            return noted({**generated, "anyOf": choices}, "the discriminator's choice")
        # A tag that has a default may not be left out all the same.
        tag = found["propertyName"]
        return {**generated, "anyOf": [self._with_required(choice, tag) for choice in choices]}

    def _with_required(self, choice: JsonSchemaValue, name: str) -> JsonSchemaValue:
        if name in self._resolved(choice).get("required", ()):
            return choice
        return {"allOf": [choice], "required": [name]}

    def chain_schema(self, schema: core_schema.ChainSchema) -> JsonSchemaValue:
        generated = super().chain_schema(schema)
        return noted(generated, "a further constraint") if len(schema["steps"]) > 1 else generated

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        return {"x-refused": "classes have no JSON form; write their names"}

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        return {"x-refused": "complex numbers have no JSON form; write two floats"}

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        return {"x-refused": "fractions have no JSON form; write Decimal or two ints"}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        generated = self._closed(super().model_schema(schema), schema)
        if schema.get("custom_init"):
            generated = noted(generated, "the class's own __init__")
        if schema.get("post_init"):
            return self._post_init(generated, schema["cls"], str(schema["post_init"]))
        return generated

    @staticmethod
    def _post_init(generated: JsonSchemaValue, cls: type, name: str) -> JsonSchemaValue:
        """Pydantic sets up private attributes in this hook; only one that the user wrote can refuse a record."""
        if is_known(getattr(cls, name, None)):
            return generated
        return noted(generated, name)

    def _update_class_schema(self, json_schema: JsonSchemaValue, cls: type[Any], config: Any) -> None:
        shown = {key: value for key, value in config.items() if key != "json_schema_extra"}
        super()._update_class_schema(json_schema, cls, cast("ConfigDict", shown))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return self._closed(super().typed_dict_schema(schema), schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        generated = self._closed(super().dataclass_schema(schema), schema)
        return noted(generated, "__post_init__") if schema.get("post_init") else generated

    def _closed(self, generated: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """What a model ignores, it need not be given: undeclared keys are generated only where it keeps them."""
        if generated.get("type") != "object":
            return generated
        generated.setdefault("properties", {})
        if generated.setdefault("additionalProperties", False) is False:
            return generated
        is_by_name = bool(schema.get("config", {}).get("validate_by_name"))
        while schema["type"] not in ("model-fields", "dataclass-args", "typed-dict") and "schema" in schema:
            schema = schema["schema"]
        for name in other_spellings(schema.get("fields", ()), is_by_name=is_by_name):
            generated["properties"].setdefault(name, False)
        return noted(generated, "keys of extra values") if "extras_keys_schema" in schema else generated

    def field_is_present(self, field: Any) -> bool:
        return field.get("init") is not False and super().field_is_present(field)

    def field_is_required(self, field: Any, total: bool) -> bool:
        inner = field["schema"]
        is_validated = inner.get("validate_default", self._config.config_dict.get("validate_default"))
        # A default that is validated may be refused; what is written is not.
        return super().field_is_required(field, total) or bool(inner["type"] == "default" and is_validated)

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        return _ALIAS_PATH if is_alias_path(schema) else super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        return _ALIAS_PATH if is_alias_path(schema) else super().dataclass_field_schema(schema)

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonSchemaValue:
        return _ALIAS_PATH if is_alias_path(schema) else super().typed_dict_field_schema(schema)

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        if any(isinstance(value, bytes) for value in schema["expected"]):
            return {"x-refused": "a Literal of bytes has no JSON form; write strings"}
        if any(isinstance(value, enum.Enum) and not isinstance(value, str | int) for value in schema["expected"]):
            return {"x-refused": "a Literal of plain enum members has no JSON form; write the enum, or their values"}
        return super().literal_schema(schema)
