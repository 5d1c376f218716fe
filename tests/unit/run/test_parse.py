"""From a generation's text to a record, or to the cause why there is none."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, Json, computed_field, field_validator, model_serializer

from pipeline.core.outcome import Cause
from pipeline.run.parse import Refusal, parse_record, salvage_record, strip_fence


class Line(BaseModel):
    name: str
    amount: Decimal


class Bill(BaseModel):
    shop: str
    day: dt.date | None = None
    lines: Annotated[list[Line], Field(alias="positions")] = []


class OwnError(Exception):
    """As libraries have them: no ValueError."""


class Touchy(BaseModel):
    value: int

    @field_validator("value")
    @classmethod
    def _check(cls, value: int) -> int:
        if value < 0:
            raise ValueError("negative")
        if value == 7:
            raise OwnError("seven")
        if value == 8:
            return next(number for number in [] if number)
        return 1 // value


class Unspeakable(BaseModel):
    value: int

    @model_serializer
    def _dump(self) -> dict[str, int]:
        raise KeyError("no")


def test_a_record_is_given_by_field_name_with_python_values() -> None:
    text = '{"shop":"a","day":"2026-01-31","positions":[{"name":"x","amount":"1.50"}]}'
    assert parse_record(text, Bill) == {
        "shop": "a",
        "day": dt.date(2026, 1, 31),
        "lines": [{"name": "x", "amount": Decimal("1.50")}],
    }


class Place(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    zip_code: Annotated[str, Field(alias="zip")]


class Visit(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)

    place: Annotated[Place, Field(alias="where")]


def test_a_class_that_serialises_by_alias_gives_field_names_too() -> None:
    """Columns bear them, so that a record under its aliases has no column to go to."""
    assert parse_record('{"where":{"zip":"8001"}}', Visit) == {"place": {"zip_code": "8001"}}


@pytest.mark.parametrize(
    ("text", "cause", "words"),
    [
        ("Sure!", Cause.NOT_JSON, "JSON"),
        ('{"value":1', Cause.NOT_JSON, "JSON"),
        ("{}", Cause.VALIDATOR, "value: Field required"),
        ('{"value":-1}', Cause.VALIDATOR, "negative"),
        ('{"value":0}', Cause.VALIDATOR, "ZeroDivisionError"),
        ('{"value":7}', Cause.VALIDATOR, "OwnError"),
        ('{"value":8}', Cause.VALIDATOR, "StopIteration"),
    ],
)
def test_a_refusal_says_which_kind_and_why(text: str, cause: Cause, words: str) -> None:
    refusal = parse_record(text, Touchy)
    assert isinstance(refusal, Refusal)
    assert refusal.cause is cause
    assert words in refusal.detail


class Packed(BaseModel):
    settings: Json[dict[str, int]]


def test_a_json_field_that_holds_none_is_the_models_refusal() -> None:
    refusal = parse_record('{"settings":"{"}', Packed)
    assert isinstance(refusal, Refusal)
    assert refusal.cause is Cause.VALIDATOR
    cut = parse_record('{"settings":"{', Packed)
    assert isinstance(cut, Refusal)
    assert cut.cause is Cause.NOT_JSON


def test_a_serializer_that_raises_refuses_the_record() -> None:
    refusal = parse_record('{"value":1}', Unspeakable)
    assert isinstance(refusal, Refusal)
    assert "serializer" in refusal.detail


def test_a_cut_list_keeps_its_whole_items_and_names_what_was_lost() -> None:
    salvaged = salvage_record('{"shop":"a","positions":[{"name":"x","amount":"1"},{"name":"y","am', Bill)
    assert salvaged is not None
    assert [line["name"] for line in salvaged.record["lines"]] == ["x"]
    assert salvaged.lost == ("day", "lines")


def test_values_that_do_not_satisfy_the_model_are_not_salvaged() -> None:
    assert salvage_record('{"day":"2026-01-31","sh', Bill) is None


@pytest.mark.parametrize("text", ['{"a":1}', ' {"a":1}\n', '```json\n{"a":1}\n```', '```\n{"a":1}```\n'])
def test_white_space_and_a_fence_are_no_part_of_unguided_json(text: str) -> None:
    assert strip_fence(text) == '{"a":1}'


class Aliased(BaseModel):
    shop: str = ""
    lines: Annotated[list[int], Field(validation_alias=AliasChoices("positions", "l.i"))] = []
    más: Annotated[list[int], Field(validation_alias="m.ás")] = []


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ('{"shop":"a","m.\\u00e1s":[],"positions":[1,2', ("lines",)),
        ('{"shop":"a","m.ás":[],"l.i":[1,2', ("lines",)),
        ('{"shop":"a","positions":[],"m.\\u00e1s":[1,2', ("más",)),
    ],
)
def test_what_lost_its_end_is_named_whatever_its_key_is(text: str, lost: tuple[str, ...]) -> None:
    salvaged = salvage_record(text, Aliased)
    assert salvaged is not None
    assert salvaged.lost == lost


class Moved(BaseModel):
    """As a class has them after a field was renamed, with a value that follows from others."""

    old: Annotated[list[int], Field(alias="new")] = []
    new: Annotated[list[int], Field(alias="newest")] = []

    @computed_field
    def count(self) -> int:
        return len(self.old)


def test_a_key_stands_for_its_alias_first_and_what_is_computed_is_not_lost() -> None:
    salvaged = salvage_record('{"newest":[3],"new":[1,2', Moved)
    assert salvaged is not None
    assert salvaged.record == {"old": [1], "new": [3], "count": 1}
    assert salvaged.lost == ("old",)
