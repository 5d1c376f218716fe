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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, JsonRef, JsonSchemaMode, JsonSchemaValue
from pydantic_core import PydanticOmit, SchemaError, core_schema

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.pydantic_checks import (
    as_validated,
    is_alias_path,
    is_hashable,
    is_known,
    is_required,
    lacks_length,
    noted,
    readers_of_keys,
    unheld_check,
)
from pipeline.decoding.pydantic_shared import is_read_otherwise, text_settings
from pipeline.decoding.pydantic_values import ValueGenerator

__all__ = ["schema_of_type"]

_ALIAS_PATH = {"x-refused": "an AliasPath reads inside another value; write the nested model"}
_HIDDEN = {"x-refused": "SkipJsonSchema hides a field that a record must have; give it a default"}
_SIZELESS = {"x-refused": "a value without a length is asked for one; leave out min_length and max_length"}


def schema_of_type(record: Any) -> dict[str, Any]:
    """The schema of anything that `TypeAdapter` takes.

    Raises:
        SchemaRefusedError: Pydantic cannot make sense of the type itself.
    """
    try:
        adapter = TypeAdapter(record)
        schema = adapter.json_schema(schema_generator=_Generator, mode="validation", ref_template=DEFAULT_REF_TEMPLATE)
    except (PydanticUserError, PydanticOmit, SchemaError, RuntimeError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SchemaRefusedError(f"{getattr(record, '__name__', record)}: {why}") from error
    return dict(schema)


class _Generator(ValueGenerator):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._shared: dict[str, Any] = {}
        self._text_settings: frozenset[str] = frozenset()

    @property
    def mode(self) -> JsonSchemaMode:
        """A record is what is read, whichever form a class's configuration would rather document."""
        return "validation"

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        kind = schema.get("type", "")
        # Only what is shared is named by others: what stands in its place is read by the configuration around it.
        if self._is_key or self._shared.get(schema.get("ref")) is not schema:
            schema = {name: value for name, value in schema.items() if name != "ref"}
        try:
            generated = super().generate_inner(as_validated(schema))
        except PydanticOmit:
            if kind.endswith("-field") and is_required(schema):
                return dict(_HIDDEN)
            raise
        if not kind.startswith("function-") or "x-refused" in generated:
            return generated
        if lacks_length(schema, self._resolved(generated)):
            return dict(_SIZELESS)
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

    def definitions_schema(self, schema: core_schema.DefinitionsSchema) -> JsonSchemaValue:
        self._shared |= {each["ref"]: each for each in schema["definitions"]}
        self._text_settings = text_settings(schema)
        return super().definitions_schema(schema)

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        return self._set(super().set_schema(schema), schema)

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        return self._set(super().frozenset_schema(schema), schema)

    def _set(self, generated: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        generated.pop("uniqueItems", None)
        if not is_hashable(schema.get("items_schema"), self._shared):
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

    @contextmanager
    def _reading(self, *, is_key: bool) -> Iterator[None]:
        before, self._is_key = self._is_key, is_key
        try:
            yield
        finally:
            self._is_key = before

    def _keys(self, schema: Any) -> JsonSchemaValue:
        with self._reading(is_key=True):
            generated = self.generate_inner(schema)
        is_held = schema["type"] == "any" or is_hashable(schema, self._shared)
        return generated if is_held else noted(generated, "keys that can be hashed")

    def definition_ref_schema(self, schema: core_schema.DefinitionReferenceSchema) -> JsonSchemaValue:
        ref = schema["schema_ref"]
        if ref not in self._shared:
            return super().definition_ref_schema(schema)
        around = self._config.config_dict
        is_lost = is_read_otherwise(ref, self._shared, around=around, anywhere=self._text_settings)
        generated = self._shared_key(self._shared[ref]) if self._is_key else super().definition_ref_schema(schema)
        return noted(generated, "the configuration of the model that holds it") if is_lost else generated

    def _shared_key(self, shared: Any) -> JsonSchemaValue:
        """What is shared stands as values; as a key it may be less.  One that holds itself is no key."""
        del self._shared[shared["ref"]]
        try:
            return self.generate_inner(shared)
        finally:
            self._shared[shared["ref"]] = shared

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
        with self._reading(is_key=False):
            inner = self.generate_inner(schema["schema"]) if "schema" in schema else {}
        return {"type": "string", "x-json": inner}

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        generated = super().tagged_union_schema(schema)
        choices = generated.pop("oneOf")
        if (found := generated.pop("discriminator", None)) is None:
            return noted({**generated, "anyOf": choices}, "the discriminator's choice")
        # A tag that has a default may not be left out all the same.
        tag = found["propertyName"]
        generated["anyOf"] = [self._with_required(choice, tag) for choice in choices]
        named = {key.value if isinstance(key, enum.Enum) else key for key in schema["choices"]}
        is_held = all(self._has_tag(choice, tag, named) for choice in choices)
        return generated if is_held else noted(generated, "the discriminator's choice")

    def _has_tag(self, choice: JsonSchemaValue, name: str, named: set[Any]) -> bool:
        """Whether a choice is written with such tags alone; True where that is not known yet."""
        tag = self._resolved(self._resolved(choice).get("properties", {}).get(name, {}))
        return not tag or all(value in named for value in tag.get("enum", [tag.get("const")]))

    def _with_required(self, choice: JsonSchemaValue, name: str) -> JsonSchemaValue:
        if name in self._resolved(choice).get("required", ()):
            return choice
        return {"allOf": [choice], "required": [name]}

    def tuple_schema(self, schema: core_schema.TupleSchema) -> JsonSchemaValue:
        generated = super().tuple_schema(schema)
        is_last = schema.get("variadic_item_index", -1) in (-1, len(schema["items_schema"]) - 1)
        return generated if is_last else noted(generated, "items after those of any number")

    def call_schema(self, schema: core_schema.CallSchema) -> JsonSchemaValue:
        return noted(super().call_schema(schema), "what the function makes of its arguments")

    def chain_schema(self, schema: core_schema.ChainSchema) -> JsonSchemaValue:
        generated = super().chain_schema(schema)
        return noted(generated, "a further constraint") if len(schema["steps"]) > 1 else generated

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
        with self._config_wrapper_stack.push(cast("ConfigDict", schema.get("config"))):
            return self._closed(super().typed_dict_schema(schema), schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        with self._config_wrapper_stack.push(cast("ConfigDict", schema.get("config"))):
            generated = self._closed(super().dataclass_schema(schema), schema)
        return noted(generated, "__post_init__") if schema.get("post_init") else generated

    def _closed(self, generated: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """What a model ignores, it need not be given: undeclared keys are generated only where it keeps them."""
        if generated.get("type") != "object":
            return generated
        written = generated.setdefault("properties", {})
        readers = readers_of_keys(schema)
        if shared := [key for key in written if readers[key] > 1]:
            generated = noted(generated, f"two fields read the key {shared[0]!r}")
        if generated.setdefault("additionalProperties", False) is not False:
            # An extra value may not take another spelling of a field, nor the key of a hidden one.
            for key in readers:
                written.setdefault(key, False)
        return generated

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonSchemaValue:
        generated = super().model_fields_schema(schema)
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
