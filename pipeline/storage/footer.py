"""What a part says of itself: counts, totals and timings of one shard, small enough to add up over a whole run.

It holds no text of documents or records: of rows that went wrong, a few ids.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from pipeline.core.outcome import RECORD_STATUSES, Cause, Outcome, Status
from pipeline.storage.values import well_formed

__all__ = ["NO_CAUSE", "PartFooter", "Problem", "SpanCounts", "Timings", "TokenTotals", "histogram", "part_footer"]

NO_CAUSE = "none"
"""Stands for the cause of `valid` in the counts."""

_PROBLEMS = 3
_ID_CHARACTERS = 200
_INDEX = re.compile(r"\[\d+\]")


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Timings(_Value):
    """Seconds by stage, summed over documents (they overlap); `wall` is the attempt's own length.  0: not measured.

    `encode` is the table alone, `mask` is not written, since an engine spends it for all its requests together, and the
    put cannot stand in what is put: a submission's entry has all three.
    """

    queue: float = 0.0
    prompt: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    mask: float = 0.0
    parse: float = 0.0
    encode: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Timings) -> Timings:
        return Timings(**{name: getattr(self, name) + getattr(other, name) for name in Timings.model_fields})


class TokenTotals(_Value):
    """Tokens by kind; `cached` is the share of `prompt` that the prefix cache served."""

    prompt: int = 0
    output: int = 0
    cached: int = 0


class SpanCounts(_Value):
    """Extractive values: all that stand in their document, those at several places, those of no length."""

    grounded: int = 0
    ambiguous: int = 0
    empty: int = 0


class Problem(_Value):
    """A row without a record, to look up."""

    document_id: str | None
    status: Status
    cause: Cause


class PartFooter(_Value):
    """The counts of one part.

    Histograms count rows by `int.bit_length` of the tokens: bin 0 is zero tokens, bin k is [2^(k-1), 2^k).

    Raises:
        ValueError: the counts do not add up to `rows`.
    """

    version: Literal[1] = 1
    shard_id: str
    fingerprint: str
    attempt: str
    engine: str
    rows: int
    counts: Mapping[Status, Mapping[str, int]]
    """Rows by status and cause; a status without rows is left out."""
    tokens: TokenTotals = TokenTotals()
    output_tokens_histogram: tuple[int, ...] = ()
    slack_tokens_histogram: tuple[int, ...] = ()
    shaped_fields: Mapping[str, int] = {}
    """Rows by field that the budget shaped; indices are left out of the paths, as in `items[].amount`."""
    spans: SpanCounts = SpanCounts()
    timings_s: Timings = Timings()
    started_at: dt.datetime
    finished_at: dt.datetime
    problems: tuple[Problem, ...] = ()
    """The first few."""

    @model_validator(mode="after")
    def _balanced(self) -> Self:
        counted = sum(self.of(status) for status in Status)
        if counted != self.rows:
            raise ValueError(f"{self.rows} rows, but the counts add up to {counted}")
        return self

    def of(self, status: Status) -> int:
        """Rows with this status."""
        return sum(self.counts.get(status, {}).values())

    def by_cause(self) -> dict[tuple[Status, Cause | None], int]:
        """Rows by status and cause."""
        return {
            (status, None if cause == NO_CAUSE else Cause(cause)): rows
            for status, causes in self.counts.items()
            for cause, rows in causes.items()
        }


def part_footer(
    outcomes: Sequence[Outcome],
    *,
    shard_id: str,
    fingerprint: str,
    attempt: str,
    engine: str,
    started_at: dt.datetime,
    finished_at: dt.datetime,
    timings_s: Timings | None = None,
    cached_tokens: int = 0,
) -> PartFooter:
    """The footer of a part with these rows.

    Args:
        outcomes: the rows as stored: what `storable` gave.
        shard_id: see `Shard.shard_id`.
        fingerprint: the run's.
        attempt: the attempt's id.
        engine: what generated, and in which version.
        started_at: when the attempt began, with its UTC offset.
        finished_at: when its last outcome was there.
        timings_s: zero where not measured.
        cached_tokens: prompt tokens that the prefix cache served.
    """
    shaped = Counter(
        name for outcome in outcomes for name in {_INDEX.sub("[]", path) for path in outcome.shaped_fields}
    )
    spans = [span for outcome in outcomes for span in outcome.spans]
    return PartFooter(
        shard_id=shard_id,
        fingerprint=fingerprint,
        attempt=attempt,
        engine=engine,
        rows=len(outcomes),
        counts=_counts((outcome.status, outcome.cause) for outcome in outcomes),
        tokens=TokenTotals(
            prompt=sum(outcome.prompt_tokens or 0 for outcome in outcomes),
            output=sum(outcome.output_tokens or 0 for outcome in outcomes),
            cached=cached_tokens,
        ),
        output_tokens_histogram=histogram(outcome.output_tokens for outcome in outcomes),
        slack_tokens_histogram=histogram(outcome.slack_tokens for outcome in outcomes),
        shaped_fields=dict(sorted(shaped.items())),
        spans=SpanCounts(
            grounded=len(spans),
            ambiguous=sum(span.is_ambiguous for span in spans),
            empty=sum(span.start == span.end for span in spans),
        ),
        timings_s=Timings() if timings_s is None else timings_s,
        started_at=started_at,
        finished_at=finished_at,
        problems=_problems(outcomes),
    )


def histogram(values: Iterable[int | None]) -> tuple[int, ...]:
    """Counts by `int.bit_length`, up to the last bin that holds any; None is not counted."""
    bins = Counter(value.bit_length() for value in values if value is not None)
    return tuple(bins[index] for index in range(max(bins, default=-1) + 1))


def _counts(pairs: Iterable[tuple[Status, Cause | None]]) -> dict[Status, dict[str, int]]:
    counted = Counter(pairs)
    return {
        status: {
            NO_CAUSE if cause is None else cause.value: number
            for (of, cause), number in sorted(counted.items(), key=lambda item: str(item[0][1]))
            if of is status
        }
        for status in Status
        if any(of is status for of, _ in counted)
    }


def _problems(outcomes: Sequence[Outcome]) -> tuple[Problem, ...]:
    found: list[Problem] = []
    for outcome in outcomes:
        if outcome.status not in RECORD_STATUSES and outcome.cause is not None and len(found) < _PROBLEMS:
            name = None if outcome.document_id is None else well_formed(outcome.document_id[:_ID_CHARACTERS])
            found.append(Problem(document_id=name, status=outcome.status, cause=outcome.cause))
    return tuple(found)
