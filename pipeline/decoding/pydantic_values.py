"""Single values of Pydantic's as JSON Schema: strings, numbers, dates, addresses, and values given outright."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pipeline.decoding.pydantic_checks import bounds_of, json_members, key_members, noted

__all__ = ["ValueGenerator"]


class ValueGenerator(GenerateJsonSchema):
    """Writes what the stock generator loses of single values, under the keywords of `pydantic_schema`."""

    _is_key = False
    """Whether it is an object's key, which is a string: numbers are read from one, but not those given outright."""

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
        checked = []
        zone = schema.get("tz_constraint")
        if isinstance(zone, int):
            checked.append(f"an offset of {zone} seconds")
            zone = "aware"
        if zone is not None:
            generated["x-string"]["zone"] = zone
        if schema.get("microseconds_precision") == "error":
            generated["x-string"]["micro"] = True
        if kind == "date":
            generated["x-string"].update(bounds)
        else:
            checked.extend(f"{key} {value}" for key, value in bounds.items())
        if (now := schema.get("now_op")) is not None:
            checked.append(f"{now} of today")
        return {**generated, "x-checked": checked} if checked else generated

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        return {"type": "string", "x-string": {"kind": "uuid", "version": schema.get("version")}}

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        schemes = schema.get("allowed_schemes")
        # As they are compared, schemes are in lower case (RFC 3986, section 3.1).
        named = [scheme for scheme in schemes or () if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme)]
        if schemes and not named:
            return {"x-refused": f"no URL has the scheme {schemes[0]!r}; write it in lower case"}
        if named == ["file"] and schema.get("host_required"):
            return {"x-refused": "URLs of files are written without a host; leave out host_required"}
        settings = {"schemes": named or None, "max_length": schema.get("max_length")}
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
        values = [member.value for member in schema["members"]]
        members = json_members(values, is_float=schema.get("sub_type") == "float")
        if not members:
            return {"x-refused": "an enum of such values has no JSON form; give its members strings or 64-bit numbers"}
        if self._is_key and schema.get("sub_type") is None:
            members = key_members(members)
        return {**generated, "enum": members}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        if any(isinstance(value, bytes) for value in schema["expected"]):
            return {"x-refused": "a Literal of bytes has no JSON form; write strings"}
        if any(isinstance(value, enum.Enum) and not isinstance(value, str | int) for value in schema["expected"]):
            return {"x-refused": "a Literal of plain enum members has no JSON form; write the enum, or their values"}
        if not (named := json_members(schema["expected"])):
            return {"x-refused": "a Literal of integers beyond 64 bits is not read from JSON; write strings"}
        if self._is_key:
            return {"enum": key_members(named)}
        return super().literal_schema({**schema, "expected": named})

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        return {"x-refused": "classes have no JSON form; write their names"}

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        return {"x-refused": "complex numbers have no JSON form; write two floats"}

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        return {"x-refused": "fractions have no JSON form; write Decimal or two ints"}
