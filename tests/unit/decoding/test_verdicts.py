"""What a type or a schema says and no automaton holds is told: the field is widened, never called enforced.

Each case of `TYPES` and `SCHEMAS` was once accepted with every field called enforced.
"""

import dataclasses
import datetime as dt
import enum
import json
import math
import re
from collections import Counter, OrderedDict
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AnyHttpUrl,
    BaseModel,
    ConfigDict,
    Discriminator,
    EmailStr,
    Field,
    Json,
    SecretBytes,
    SecretStr,
    Strict,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import core_schema

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Verdict, compile_grammar
from tests.soundness.json_schema import schema_complaint, schema_validator
from tests.unit.decoding.support import is_enforced

DEFS = {"$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}}}


@pytest.mark.parametrize(
    "inner",
    [
        {"$dynamicRef": "#n"},
        {"$recursiveRef": "#"},
        {"type": "array", "contains": {"const": 1}},
        {"type": "object", "unevaluatedProperties": False, "properties": {"b": {}}},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    ],
    ids=lambda inner: next(key for key in inner if key not in ("type", "items", "properties")),
)
def test_a_keyword_that_is_not_held_widens_its_field(inner: dict[str, Any]) -> None:
    """Fails when the keyword is passed over in silence."""
    schema = {**DEFS, "type": "object", "properties": {"a": inner, "z": {"type": "null"}}, "required": ["a", "z"]}
    verdicts = {field.path: field.verdict for field in compile_grammar(schema).verdicts}
    assert verdicts["a"] is Verdict.WIDENED
    assert verdicts["z"] is Verdict.ENFORCED


def test_a_combination_of_too_many_alternatives_widens_its_field() -> None:
    """Fails when each is spelt, or told apart from each other, whatever that takes."""
    shared = {name: {"type": "integer"} for name in "klm"}
    branches = [
        {"type": "object", "required": [name], "properties": {**shared, name: {"type": "string"}}}
        for name in [f"q{index}" for index in range(12)]
    ]
    grammar = compile_grammar({"type": "object", "properties": {"a": {"oneOf": branches}, "z": {"type": "null"}}})
    verdicts = {field.path: field for field in grammar.verdicts}
    assert verdicts["a"].verdict is Verdict.WIDENED
    assert "alternatives" in verdicts["a"].reason
    assert verdicts["z"].verdict is Verdict.ENFORCED
    assert grammar.automaton.accepts(b'{"a":{"q3":"text"}}')


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: bool


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    lives: bool


class A(BaseModel):
    n: Annotated[int, Field(le=9)]


class B(BaseModel):
    n: Annotated[int, Field(le=5)]


class Ordered(BaseModel):
    low: bool
    high: bool

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.low > self.high:
            raise ValueError("low above high")
        return self


class Two(BaseModel):
    a: Ordered
    b: Ordered


def path_validator(value: str) -> str:
    if not value.startswith("/"):
        raise ValueError("no path")
    return value


class Hidden(BaseModel):
    a: SkipJsonSchema[int]
    b: bool


@pydantic_dataclass(config=ConfigDict(extra="forbid"))
class Made:
    a: bool
    made: bool = dataclasses.field(init=False, default=True)


class BadDefault(BaseModel):
    n: Annotated[int, Field(ge=1, validate_default=True)] = 0


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    t: Annotated[int, Field(validation_alias=AliasChoices("t", "amount"))] = 0


class ByName(BaseModel):
    model_config = ConfigDict(extra="allow", validate_by_name=True)
    total: Annotated[int, Field(alias="Total")] = 0


class HiddenAndOpen(BaseModel):
    model_config = ConfigDict(extra="allow")
    i: SkipJsonSchema[int] = 0


class Shared(BaseModel):
    a: Annotated[int, Field(validation_alias=AliasChoices("a", "y"))] = 0
    y: str


class Keyed(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Annotated[str, Field(pattern="^x-")], bool]


class Encoded(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    raw: Annotated[bytes, Field(max_length=2)]


class Days(enum.Enum):
    FIRST = dt.date(2020, 1, 1)
    NAMED = "named"


class Plain(enum.Enum):
    ONE = 1
    TWO = "two"


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    n: int


class Coloured(BaseModel):
    colours: set[Plain]
    main: Plain


class TwoColoured(BaseModel):
    a: Coloured
    b: Coloured


@pydantic_dataclass(config=ConfigDict(extra="allow"))
class OpenClass:
    a: bool


TYPES = [
    (Annotated[Cat | Dog, Field(discriminator="kind")], '{"lives":true}'),
    (
        Annotated[
            Annotated[A, Tag("a")] | Annotated[B, Tag("b")],
            Discriminator(lambda value: "b" if value["n"] > 5 else "a"),
        ],
        '{"n":7}',
    ),
    (Two, '{"a":{"low":true,"high":false},"b":{"low":false,"high":false}}'),
    (Annotated[EmailStr, Field(pattern=r"@example\.com$")], '"a@b.de"'),
    (Annotated[Json[str], Field(pattern="^a$")], '"\\"b\\""'),
    (Annotated[Literal["a", "b"], Field(pattern="a")], '"b"'),
    (Annotated[str | list[bool], Field(min_length=1)], "[]"),
    (Annotated[list[bool] | dict[str, bool], Field(max_length=1)], "[true,true]"),
    (Annotated[Json[list[bool]], Field(min_length=3)], '"[]"'),
    (Annotated[AnyHttpUrl, Field(max_length=11)], '"http://a.bc"'),
    (Annotated[SecretBytes, Field(max_length=2)], '"éé"'),
    (Annotated[SecretStr, Field(min_length=4), Field(min_length=2)], '"abc"'),
    (Annotated[str, AfterValidator(path_validator)], '"a"'),
    (Hidden, '{"b":true}'),
    (Made, '{"a":true,"made":true}'),
    (BadDefault, "{}"),
    (OrderedDict[int, bool], '{"a":true}'),
    (OrderedDict[Annotated[str, Field(pattern="^a+$")], bool], '{"b":3}'),
    (Counter[int], '{"a":1}'),
    (dict[Literal[1, 2], bool], '{"1":true}'),
    (dict[Plain, bool], '{"1":true}'),
    (Open, '{"amount":"x"}'),
    (ByName, '{"total":"x"}'),
    (HiddenAndOpen, '{"i":"x"}'),
    (Shared, '{"y":"x"}'),
    (Keyed, '{"a":true,"b":true}'),
    (Encoded, '{"raw":"AAECAwQF"}'),
    (set[Any], "[{}]"),
    (set[A], '[{"n":1}]'),
    (Days, '"2020-01-01"'),
    (Annotated[str, Field(pattern=r"^\<b\>$")], '"<b>"'),
    (Annotated[Decimal, Field(max_digits=3, decimal_places=5)], "0.0"),
]


@pytest.mark.parametrize(("tp", "text"), TYPES, ids=[text for _, text in TYPES])
def test_what_pydantic_refuses_is_not_called_enforced(tp: Any, text: str) -> None:
    with pytest.raises((ValidationError, TypeError)):
        TypeAdapter(tp).validate_json(text)
    _is_honest(tp, text)


def _is_honest(described: Any, text: str) -> None:
    """A text that is refused is refused by the automaton too, or a verdict says that something is checked later."""
    try:
        grammar = compile_grammar(described)
    except SchemaRefusedError:
        return
    assert not (is_enforced(grammar) and grammar.automaton.accepts(text.encode()))


SCHEMAS = [
    ({"oneOf": [{"type": "string", "format": "uri"}, {"type": "string", "pattern": "^urn:[a-z]{1,3}$"}]}, '"urn:a"'),
    ({"oneOf": [{"type": "number", "multipleOf": 0.1}, {"type": "number", "minimum": 1e5, "maximum": 2e5}]}, "100000"),
    ({"oneOf": [{"format": "time", "type": "string"}, {"type": "string", "pattern": "^10:00:00[z]$"}]}, '"10:00:00z"'),
    ({"type": "string", "pattern": "(?!.*--)^[a-z-]+$"}, '"a--b"'),
    (
        {
            "$id": "https://e.org/root",
            "$defs": {
                "code": {"type": "string"},
                "item": {
                    "$id": "https://e.org/item",
                    "$defs": {"code": {"type": "integer"}},
                    "type": "object",
                    "properties": {"code": {"$ref": "#/$defs/code"}},
                    "additionalProperties": False,
                },
            },
            "$ref": "#/$defs/item",
        },
        '{"code":"a"}',
    ),
    ({"type": "string", "format": "duration"}, '"-P1D"'),
]


@pytest.mark.parametrize(("schema", "text"), SCHEMAS, ids=[text for _, text in SCHEMAS])
def test_what_the_standard_refuses_is_not_called_enforced(schema: dict[str, Any], text: str) -> None:
    assert schema_complaint(schema_validator(schema), json.loads(text)) is not None
    _is_honest(schema, text)


class Missing:
    """A type that Pydantic leaves out of a JSON Schema."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> core_schema.CoreSchema:
        return core_schema.missing_sentinel_schema()


@pytest.mark.parametrize("described", [Annotated[Sequence[int], Strict()], Missing], ids=["strict sequence", "missing"])
def test_a_type_that_pydantic_cannot_describe_is_refused(described: Any) -> None:
    with pytest.raises(SchemaRefusedError):
        compile_grammar(described)


@pytest.mark.parametrize("schema", [{"const": math.inf}, {"enum": [2.5, math.nan]}, {"enum": [2.5, [math.inf]]}])
def test_a_constant_that_json_cannot_write_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaRefusedError, match="JSON can spell"):
        compile_grammar(schema)


@pytest.mark.parametrize(
    ("described", "text"),
    [
        (Annotated[Cat | Dog, Field(discriminator="kind")], '{"kind":"dog","lives":true}'),
        (dict[int, bool], '{"1":true}'),
        (set[tuple[str, str]], '[["a","b"]]'),
        (set[frozenset[str]], '[["a"]]'),
        (set[Frozen], '[{"n":1}]'),
        (TwoColoured, '{"a":{"colours":[1],"main":1},"b":{"colours":[],"main":"two"}}'),
        (OpenClass, '{"a":true}'),
        (set[int], "[1,2]"),
        (Annotated[str, Field(min_length=2, max_length=3)], '"ab"'),
        (Annotated[list[bool], Field(min_length=1)], "[true]"),
        (Annotated[SecretStr, Field(min_length=2)], '"abc"'),
        (UUID, '"12345678-1234-1234-1234-123456789abc"'),
        (Path, '"a/b"'),
        (EmailStr, '"a@b.de"'),
        (Plain, "1"),
        (Annotated[str, Field(pattern=re.compile("^[a-c]+$", re.IGNORECASE))], '"aB"'),
        ({"oneOf": [{"type": "string", "format": "uri"}, {"type": "integer"}]}, "1"),
        ({"type": "string", "format": "duration"}, '"P1DT2H3M"'),
        ({"$id": "https://e.org/r", "$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}, "3"),
        ({"$id": "https://e.org/r", "$defs": {"n": {"$id": "n", "type": "integer"}}, "$ref": "n"}, "3"),
    ],
    ids=str,
)
def test_what_can_be_held_stays_enforced(described: Any, text: str) -> None:
    grammar = compile_grammar(described)
    assert is_enforced(grammar)
    assert grammar.automaton.accepts(text.encode())
