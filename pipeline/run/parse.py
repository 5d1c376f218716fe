"""Owns what a generation's text is worth: from text to the model's record, or to the cause why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pipeline.core.outcome import Cause
from pipeline.run.record import USER_CODE_ERRORS
from pipeline.run.salvage import complete_prefixes

__all__ = ["Refusal", "Salvaged", "parse_record", "salvage_record", "strip_fence"]

_FENCE = re.compile(r"\s*```[a-zA-Z]*\n(.*?)(?:\n?```\s*)?", re.DOTALL)
_PROBLEMS_AT_MOST = 3
_DETAIL_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text gives no record: `not_json` or `validator`, and what the model's validators said."""

    cause: Cause
    detail: str


@dataclass(frozen=True, slots=True)
class Salvaged:
    """The record that the whole values of a cut-off text make."""

    record: Mapping[str, Any]
    text: str
    """The JSON that it was read from: what was written, up to the last whole value, and closed."""
    lost: tuple[str, ...]
    """Top-level fields that are missing or lost their end."""


def parse_record(text: str, model: type[BaseModel]) -> Mapping[str, Any] | Refusal:
    """The record that `text` holds as JSON, by field name and as Python values.

    Whatever the model's own validators raise refuses the record; it never reaches the caller.
    """
    instance = _validated(text, model)
    return instance if isinstance(instance, Refusal) else _dumped(instance)


def salvage_record(text: str, model: type[BaseModel]) -> Salvaged | None:
    """The record made of a cut-off text's complete values, or None where they do not satisfy the model."""
    fields = model.model_fields
    # A field may bear the alias of another one's name: what a key stands for is the alias first.
    names = {name: name for name in fields} | {key: name for name, info in fields.items() for key in _aliases(info)}
    for remainder in complete_prefixes(text):
        instance = _validated(remainder.text, model)
        if isinstance(instance, Refusal):
            continue
        record = _dumped(instance)
        if not isinstance(record, Refusal):
            cut_field = names.get(remainder.cut_at[0]) if remainder.cut_at else None
            given = instance.model_fields_set
            lost = tuple(name for name in record if name in fields and (name not in given or name == cut_field))
            return Salvaged(record, remainder.text, lost)
    return None


def _aliases(info: FieldInfo) -> Iterator[str]:
    """The keys, beside its name, that a field is read from."""
    alias = info.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else (alias or info.alias,)
    yield from (choice for choice in choices if isinstance(choice, str))


def _validated(text: str, model: type[BaseModel]) -> BaseModel | Refusal:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        # One that has a place is about the text in a `Json` field, not about the record's own.
        is_json = all(problem["type"] != "json_invalid" or problem["loc"] for problem in problems)
        shown = "; ".join(_shown(problem) for problem in problems[:_PROBLEMS_AT_MOST])
        if len(problems) > _PROBLEMS_AT_MOST:
            shown += f"; and {len(problems) - _PROBLEMS_AT_MOST} more"
        return Refusal(Cause.VALIDATOR if is_json else Cause.NOT_JSON, shown[:_DETAIL_CHARACTERS])
    except USER_CODE_ERRORS as error:
        return _raised("a validator", error)


def _dumped(instance: BaseModel) -> Mapping[str, Any] | Refusal:
    try:
        return instance.model_dump(by_alias=False)
    except USER_CODE_ERRORS as error:
        return _raised("a serializer", error)


def _raised(what: str, error: Exception) -> Refusal:
    return Refusal(Cause.VALIDATOR, f"{what} raised {type(error).__name__}: {error}"[:_DETAIL_CHARACTERS])


def _shown(problem: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else str(problem["msg"])


def strip_fence(text: str) -> str:
    """Unguided text without white space and the Markdown fence that chat models put around JSON."""
    fenced = _FENCE.fullmatch(text)
    return (fenced[1] if fenced else text).strip()
