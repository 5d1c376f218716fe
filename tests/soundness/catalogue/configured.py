"""Catalogue: what a model's configuration, aliases and validators do to its fields."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from hypothesis import strategies as st
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

from tests.soundness.entry import Entry, entry

__all__ = ["ENTRIES"]

T = TypeVar("T")


class ForbidExtra(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: bool = True


class AllowExtra(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class TypedExtra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]
    a: int


class IgnoreExtra(BaseModel):
    model_config = ConfigDict(extra="ignore")
    a: bool


class Aliases(BaseModel):
    quoted: Annotated[int, Field(alias='say "hi"')]
    backslash: Annotated[int, Field(alias="back\\slash")]
    unicode: Annotated[int, Field(alias="größe")]
    emoji: Annotated[int, Field(alias="🧾 total")]
    newline: Annotated[int, Field(alias="two\nlines\t\x01")]
    pattern: Annotated[int, Field(alias="a.*[b]{2}$|^")]
    blank: Annotated[int, Field(alias="")]
    slash: Annotated[int, Field(alias="a/b~c")]


class ValidationAlias(BaseModel):
    total: Annotated[int, Field(validation_alias="Total")]


class AliasChoice(BaseModel):
    total: Annotated[int, Field(validation_alias=AliasChoices("total", "amount"))]


class AliasPaths(BaseModel):
    total: Annotated[int, Field(validation_alias=AliasPath("totals", 0))]


class ByName(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    total: Annotated[int, Field(alias="Total")]


class CamelCase(BaseModel):
    model_config = ConfigDict(alias_generator=lambda name: name.title().replace("_", ""))
    unit_price: bool
    in_stock: bool


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    when: date
    amount: Decimal
    count: int
    share: float


class PythonPattern(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    code: Annotated[str, Field(pattern=r"^(?!000)[0-9]{3}$")]


class WordPattern(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    word: Annotated[str, Field(pattern=r"^\w+\W\Z")]


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, str_min_length=1)
    name: str


class Lowered(BaseModel):
    model_config = ConfigDict(str_to_lower=True, str_max_length=6)
    name: str


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    a: int


class NoInfinity(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)
    a: float


class Excluded(BaseModel):
    a: int
    hidden: Annotated[bool, Field(exclude=True)]


class Computed(BaseModel):
    width: int
    height: int

    @computed_field
    def area(self) -> int:
        return self.width * self.height


class ShownAsWritten(BaseModel):
    model_config = ConfigDict(json_schema_mode_override="serialization")
    width: int
    depth: bool = True

    @field_serializer("width")
    def _spelt(self, width: int) -> str:
        return str(width)

    @computed_field
    def area(self) -> str:
        return "none"


class FieldValidated(BaseModel):
    even: int

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


class ModelValidated(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def _ordered(self) -> ModelValidated:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class BeforeValidated(BaseModel):
    low: int

    @model_validator(mode="before")
    @classmethod
    def _object(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("low") == 7:
            raise ValueError("seven")
        return value


ENTRIES: tuple[Entry, ...] = (
    entry("model_forbid", ForbidExtra, "model", "extra"),
    entry("model_allow", AllowExtra, "model", "extra", may_widen=True, over_restricting="extra keys may be left out"),
    entry(
        "model_typed_extra", TypedExtra, "model", "extra", may_widen=True, over_restricting="extra keys may be left out"
    ),
    entry("model_ignore", IgnoreExtra, "model", "extra"),
    entry("model_aliases", Aliases, "model", "alias"),
    entry("model_validation_alias", ValidationAlias, "model", "alias"),
    entry("model_alias_choices", AliasChoice, "model", "alias", may_be_refused=True, may_widen=True),
    entry(
        "model_alias_path",
        AliasPaths,
        "model",
        "alias",
        may_be_refused=True,
        may_widen=True,
        instances=st.fixed_dictionaries({"totals": st.lists(st.integers(), min_size=1, max_size=1)}),
    ),
    entry("model_by_name", ByName, "model", "alias"),
    entry("model_alias_generator", CamelCase, "model", "alias"),
    entry("model_strict", Strict, "model", "strict", may_widen=True),
    entry(
        "model_strip",
        Stripped,
        "model",
        "config",
        may_widen=True,
        instances=st.fixed_dictionaries({"name": st.text("abcXYZ!~09", min_size=1, max_size=4)}),
    ),
    entry("model_lower", Lowered, "model", "config", may_widen=True),
    entry("model_look_ahead", PythonPattern, "model", "pattern", may_widen=True),
    entry("model_python_pattern", WordPattern, "model", "pattern", may_widen=True),
    entry("model_frozen", Frozen, "model", "config"),
    entry("model_no_infinity", NoInfinity, "model", "config"),
    entry("model_exclude", Excluded, "model"),
    entry("model_computed", Computed, "model"),
    entry(
        "model_shown_as_written",
        ShownAsWritten,
        "model",
        "config",
        "as_drawn",
        instances=st.fixed_dictionaries({"width": st.integers(0, 99), "depth": st.booleans()}),
    ),
    entry("model_field_validator", FieldValidated, "model", "validator", may_widen=True),
    entry("model_validator_after", ModelValidated, "model", "validator", may_widen=True),
    entry("model_validator_before", BeforeValidated, "model", "validator", may_widen=True),
)
