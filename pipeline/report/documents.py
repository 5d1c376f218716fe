"""What the report says of single documents: those to look at, those shown with their values, known answers."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from pipeline.core.outcome import Cause, Status
from pipeline.report.values import Count, Value

__all__ = [
    "FieldScore",
    "KnownAnswersUse",
    "Mismatch",
    "ProblemDocument",
    "ShownDocument",
    "ShownSpan",
    "UnreadableInput",
]


class ProblemDocument(Value):
    """One document to look at."""

    document_id: str | None
    shard_id: str
    status: Status
    cause: Cause | None
    detail: str | None = None
    raw: str | None = None
    """The generation's text, cut at a bound."""
    raw_chars: Count | None = None
    """Characters of the whole text; null when it was not kept."""

    @property
    def is_raw_cut(self) -> bool:
        return self.raw is not None and self.raw_chars is not None and self.raw_chars > len(self.raw)


class UnreadableInput(Value):
    """An input object whose footer could not be read when the run was planned; its documents are not in the plan."""

    uri: str
    size_bytes: Count
    reason: str


class Mismatch(Value):
    """One value that differs from the known answer, after normalising."""

    document_id: str
    value: str | None
    """What the record holds; null when it holds nothing or there is no record."""
    gold: str


class FieldScore(Value):
    """One field against its known answers.  Documents without a record count as wrong, never as left out."""

    field: str
    gold_column: str
    kind: Literal["text", "number", "date"]
    answered: Count
    """Documents of the run with a known answer for this field."""
    with_record: Count
    """Those of them that have a record."""
    with_value: Count
    """Those of them whose record holds a value for the field."""
    exact: Count
    """Values written character for character as the answer is."""
    normalised: Count
    """Values equal to the answer as dates, numbers or folded text; includes the exact ones."""
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def exact_share(self) -> float | None:
        """`exact / answered`; None without answers."""
        return self.exact / self.answered if self.answered else None

    @property
    def normalised_share(self) -> float | None:
        """`normalised / answered`; None without answers."""
        return self.normalised / self.answered if self.answered else None


class KnownAnswersUse(Value):
    """What of a table of known answers was not used: no score counts it."""

    unused_columns: tuple[str, ...] = ()
    """Columns that no field of the record is named like."""
    ids: Count = 0
    """Documents with known answers."""
    ids_unmatched: Count = 0
    """Those of them that have no outcome in this run."""
    unmatched: tuple[str, ...] = ()
    """The first few of these."""
    ids_repeated: Count = 0
    """Ids that stand in more than one row; the last row counts."""


class ShownSpan(Value):
    """Where an extractive value stands in its document, in characters."""

    field: str
    start: Count
    end: Count
    is_ambiguous: bool = False
    """Whether the same value stands at several places; this is the first."""


class ShownDocument(Value):
    """A document beside its record."""

    document_id: str | None
    shard_id: str
    status: Status
    cause: Cause | None
    text: str
    """The document's text, cut at a bound."""
    text_chars: Count
    """Characters of the whole text."""
    record: dict[str, JsonValue]
    spans: tuple[ShownSpan, ...]
