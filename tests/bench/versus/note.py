"""A small record, for measuring the pipeline where the model costs next to nothing."""

from __future__ import annotations

from typing import Annotated, Literal

import pyarrow as pa
from pydantic import BaseModel, Field

__all__ = ["Note", "notes"]

_SUBJECTS = ("invoice", "delivery", "return", "password", "meeting", "licence", "refund", "visit")
_STATES = ("is late", "was lost", "came twice", "is settled", "needs an answer", "is wrong by 12.50")


class Note(BaseModel):
    """What a short note is about."""

    kind: Annotated[Literal["order", "complaint", "question", "other"], Field(description="What the writer wants")]
    urgent: Annotated[bool, Field(description="Whether it cannot wait")]
    priority: Annotated[int, Field(ge=1, le=9, description="1 is the most important")]
    subject: Annotated[str, Field(min_length=1, max_length=24, description="What it is about")]
    tags: Annotated[list[Literal["money", "parcel", "account", "people"]], Field(max_length=3, description="Topics")]


def notes(count: int) -> pa.Table:
    """Invented notes of one line: `document_id`, `text`."""
    texts = [
        f"Note {number}: the {_SUBJECTS[number % len(_SUBJECTS)]} of customer {number % 911} "
        f"{_STATES[number // 7 % len(_STATES)]}."
        for number in range(count)
    ]
    return pa.table({"document_id": [f"n{number:06}" for number in range(count)], "text": texts})
