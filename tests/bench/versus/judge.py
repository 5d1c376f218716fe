"""The one judge of all contenders: what counts as whole, as valid, and as closed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

__all__ = ["Answer", "Judgement", "is_valid", "judged"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a contender stored for one document.  `is_marked` says that it calls the record shaped by the budget."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of all documents: texts that are whole JSON; those that the record type takes, without a mark and with one."""

    complete: int
    valid: int
    closed: int


def judged(answers: Iterable[Answer], record: type[BaseModel]) -> Judgement:
    """Holds every text against JSON and against the record type, whoever wrote it."""
    complete = valid = closed = 0
    for answer in answers:
        complete += _is_json(answer.text)
        if is_valid(answer.text, record):
            valid += not answer.is_marked
            closed += answer.is_marked
    return Judgement(complete, valid, closed)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_valid(text: str, record: type[BaseModel]) -> bool:
    """Whether the text is JSON that the record type takes."""
    try:
        record.model_validate_json(text)
    except ValidationError:
        return False
    return True
