"""Outcomes: what became of a document.  Statuses and causes are listed here and nowhere else."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RECORD_STATUSES", "Cause", "FoundSpan", "Outcome", "Status"]


class Status(enum.StrEnum):
    """Exactly one for each document."""

    VALID = "valid"
    """Satisfies the model; no budget bent it."""
    CLOSED = "closed"
    """Satisfies the model, but the token budget shaped it, or it was salvaged from a cut-off generation."""
    TRUNCATED = "truncated"
    """The generation ran out of tokens before the record was complete; the text is in `_raw`."""
    INVALID = "invalid"
    """Complete, but not JSON or refused by the model's own validators."""
    FAILED = "failed"
    """No completion."""


RECORD_STATUSES = frozenset({Status.VALID, Status.CLOSED})
"""The statuses whose rows hold a record."""


class Cause(enum.StrEnum):
    """Why a document is not plainly `valid`."""

    BUDGET = "budget"
    """closed: the budget shaped the record; truncated: it cut the record off."""
    RUNAWAY = "runaway"
    """A list, string or number was repeating itself and was ended (closed) or stopped (truncated)."""
    SALVAGED = "salvaged"
    """closed: only the whole items and fields of a cut-off generation were kept."""
    NOT_JSON = "not_json"
    """invalid: unguided text that is not JSON."""
    VALIDATOR = "validator"
    """invalid: JSON that the model refuses."""
    NOT_STORABLE = "not_storable"
    """invalid: a value that its Arrow column cannot hold, such as an integer beyond 64 bits."""
    NULL_TEXT = "null_text"
    """The document's text is null."""
    EMPTY = "empty"
    """The document is empty or white space."""
    TOO_LONG = "too_long"
    """The prompt leaves no room in the model's context for the least record."""
    NULL_ID = "null_id"
    """The document's id is null."""
    DUPLICATE_ID = "duplicate_id"
    """Another document of the same shard has this id; the first one is kept."""
    UNREADABLE = "unreadable"
    """The row group that holds the document cannot be read."""
    NO_SPAN = "no_span"
    """A required extractive field has no candidate in the document."""
    REFUSED = "refused"
    """The engine refused the request."""
    ENGINE_CRASH = "engine_crash"
    """The document brought the engine down each time it was tried, alone at the end."""


@dataclass(frozen=True, slots=True)
class FoundSpan:
    """Where an extractive value stands in its document: characters `[start, end)` of the original text."""

    field: str
    """Path of the field, as `items[2].amount`."""
    start: int
    end: int
    is_ambiguous: bool = False
    """Whether the same value stands at several places; `start` is then the first."""
    copied: str | None = None
    """What was copied, where the record class's own validators made another value of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of a part.

    `record` holds the model's fields as Python values (`model_dump()`), and is None unless `status` is one of
    `RECORD_STATUSES`.  Token counts are of the last generation kept; `budget_tokens` is the most it could have used,
    `slack_tokens` what was left when it ended.
    """

    document_id: str | None
    status: Status
    cause: Cause | None = None
    detail: str | None = None
    record: Mapping[str, Any] | None = None
    raw: str | None = None
    """The generation's text; kept for every status that holds no record."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    budget_tokens: int | None = None
    slack_tokens: int | None = None
    shaped_fields: tuple[str, ...] = ()
    spans: tuple[FoundSpan, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Input columns passed through by name."""

    def __post_init__(self) -> None:
        if (self.record is not None) != (self.status in RECORD_STATUSES):
            raise ValueError(f"an outcome with status {self.status} and record {self.record is not None}")
        if (self.cause is None) != (self.status is Status.VALID):
            raise ValueError(f"an outcome with status {self.status} and cause {self.cause}")
