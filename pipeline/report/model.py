"""The report as a value: what report.json holds, field by field.  It computes nothing beyond sums of its own fields.

`Report.model_json_schema()` is the documented schema; `report_version` rises when a field changes its meaning or goes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from pipeline.core.outcome import Cause, Status
from pipeline.report.documents import FieldScore, KnownAnswersUse, ProblemDocument, ShownDocument, UnreadableInput
from pipeline.report.values import Count, Seconds, Value

__all__ = [
    "REPORT_VERSION",
    "Balance",
    "CauseCount",
    "Distribution",
    "EngineTime",
    "FieldCount",
    "MissingShard",
    "Pause",
    "PhaseTime",
    "RatePoint",
    "Report",
    "ShardCounts",
    "SpanCounts",
    "StatusCounts",
    "Submission",
    "TokenTotals",
]

REPORT_VERSION = 1


class StatusCounts(Value):
    """Documents by status."""

    valid: Count = 0
    closed: Count = 0
    truncated: Count = 0
    invalid: Count = 0
    failed: Count = 0

    @property
    def documents(self) -> int:
        return self.valid + self.closed + self.truncated + self.invalid + self.failed

    @property
    def records(self) -> int:
        return self.valid + self.closed

    def of(self, status: Status) -> int:
        """Documents with this status."""
        count: int = getattr(self, status.value)
        return count


class Balance(Value):
    """Documents in against outcomes out."""

    documents_planned: Count
    outcomes: StatusCounts
    documents_missing: Count
    """Planned documents of shards that have no readable part."""
    documents_unplanned: Count = 0
    """Rows of parts that no shard of the plan stands for."""
    problems: tuple[str, ...] = ()
    """One line for each thing that does not add up; a shard that is merely missing is not among them."""

    @property
    def difference(self) -> int:
        """Planned documents less outcomes less missing ones; not 0 when a part holds too few or too many rows."""
        return self.documents_planned - self.outcomes.documents - self.documents_missing

    @property
    def is_balanced(self) -> bool:
        """Whether every planned document has exactly one outcome, as far as footers tell."""
        return not (self.difference or self.documents_missing or self.documents_unplanned or self.problems)


class CauseCount(Value):
    """Documents by status and cause; the cause is null for `valid`."""

    status: Status
    cause: Cause | None
    documents: Count


class ShardCounts(StatusCounts):
    """One part, in the order of the plan."""

    shard_id: str
    position: Count
    """Index in the plan."""
    documents_planned: Count
    started_at: datetime
    finished_at: datetime
    output_tokens: Count
    attempt: str
    engine: str

    @property
    def duration_s(self) -> float:
        return max(0.0, (self.finished_at - self.started_at).total_seconds())

    @property
    def share_lost(self) -> float:
        """Share of the outcomes that hold no record, from 0 to 1."""
        return (self.documents - self.records) / self.documents if self.documents else 0.0


class MissingShard(Value):
    """A planned shard without a readable part, and the documents it stands for, named by where they are."""

    shard_id: str
    position: Count
    """Index in the plan."""
    documents: Count
    places: tuple[str, ...]
    """`<uri> row group <n> rows <first>..<last>`, rows counted from 0 within the row group, both ends included."""
    reason: str = "no part"


class TokenTotals(Value):
    """Sums over all parts, in tokens: of each document its prompt once, and the tokens that were kept.  What further
    requests for it said again, as on an `escalate` ladder, is not among them."""

    prompt_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    """Prompt tokens that the prefix cache served."""

    @property
    def prefix_cache_hit_rate(self) -> float | None:
        """Share of the prompt tokens that the prefix cache served, from 0 to 1; None without prompt tokens."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


class Distribution(Value):
    """A histogram over fixed bins: bin `i` counts values in `[edges[i], edges[i + 1])`, the last one all above."""

    edges: tuple[int, ...] = ()
    """Lower ends of the bins, rising; as many as there are counts."""
    counts: tuple[Count, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.counts)


class RatePoint(Value):
    """Work done in one stretch of the run, each shard's work spread evenly between its start and its end."""

    at: datetime
    """Start of the stretch."""
    active_s: Seconds
    """Start of the stretch on a clock that runs only while some shard is worked on."""
    length_s: Seconds
    documents_per_s: Annotated[float, Field(ge=0)]
    output_tokens_per_s: Annotated[float, Field(ge=0)]


class Pause(Value):
    """A time without any shard in work, such as the one between two submissions."""

    from_at: datetime
    active_s: Seconds
    length_s: Seconds


class PhaseTime(Value):
    """Seconds spent in one phase, summed over documents, whose times overlap."""

    phase: str
    seconds: Seconds
    is_engine: bool
    """Whether the engine, not this system, spends them."""
    documents: Count = 0
    """Documents that it was measured for; 0 where it was not measured."""

    @property
    def ms_per_document(self) -> float | None:
        """Milliseconds of one document; None where it was not measured."""
        return 1000 * self.seconds / self.documents if self.documents else None


class EngineTime(Value):
    """Wall time of the engines, added up, each counted from its first request to the end of its last commit."""

    wall_s: Seconds = 0.0
    request_wall_s: Seconds = 0.0
    """The same, but to the end of each engine's last request: the steady state, without the last commit."""
    busy_s: Seconds = 0.0
    """With at least one request in the engine."""
    documents: Count = 0
    """Documents of the shards that it was measured for; those of a submission that was killed are not among them."""
    submissions_left_out: Count = 0
    """Submissions that have not written down what their engines did, or not so that it can be read."""

    @property
    def busy_share(self) -> float | None:
        """Share of the wall time in which the engine had work, from 0 to 1; None where it was not measured."""
        return self.busy_s / self.wall_s if self.wall_s else None

    @property
    def steady_share(self) -> float | None:
        """The same of the time up to each engine's last request."""
        return self.busy_s / self.request_wall_s if self.request_wall_s else None


class FieldCount(Value):
    """How many closed documents were bent in this field: by the budget, by the end put to a repetition, or by what a
    cut-off generation lost."""

    field: str
    documents: Count


class SpanCounts(Value):
    """Extractive values: all of them, of these the ones that stand at several places, and those of no length."""

    grounded: Count = 0
    ambiguous: Count = 0
    empty: Count = 0

    @property
    def single(self) -> int:
        """Values that are text and stand at one place."""
        return max(0, self.grounded - self.ambiguous - self.empty)


class Submission(Value):
    """One start of the run, as its driver wrote it down."""

    submission_id: str
    entries: dict[str, JsonValue]
    """Who started it and when, versions, exit."""


class Report(Value):
    """What became of a run's documents, derived from its parts' footers, its plan and its submissions alone."""

    report_version: Literal[1] = 1
    generated_at: datetime
    name: str
    """The job's name."""
    fingerprint: str
    output_uri: str
    balance: Balance
    is_complete: bool
    """Whether every planned document has exactly one outcome, and no input object was left out of the plan."""
    counts: tuple[CauseCount, ...]
    """In the order of the statuses, within one by falling number."""
    shards_planned: Count
    shards: tuple[ShardCounts, ...]
    missing: tuple[MissingShard, ...]
    worst_shards: tuple[str, ...]
    """Ids of the shards with the largest share of documents without a record, worst first; then of closed ones."""
    tokens: TokenTotals
    output_tokens: Distribution
    slack_tokens: Distribution
    rate: tuple[RatePoint, ...]
    pauses: tuple[Pause, ...]
    active_s: Seconds
    """Time with at least one shard in work."""
    phases: tuple[PhaseTime, ...]
    wall_s: Seconds
    """The shards' wall times added up; engines work side by side, so it may exceed `active_s`."""
    engine: EngineTime = EngineTime()
    """All zero where no submission has written down what its engines did."""
    shaped_fields: tuple[FieldCount, ...]
    spans: SpanCounts
    problems: tuple[ProblemDocument, ...]
    unreadable: tuple[UnreadableInput, ...]
    spec: dict[str, JsonValue]
    """The effective spec, every default written out."""
    submissions: tuple[Submission, ...]
    scores: tuple[FieldScore, ...] = ()
    known_answers: KnownAnswersUse | None = None
    """Null where there are no scores."""
    shown: tuple[ShownDocument, ...] = ()
    """A few documents with extractive values, each marked where it stands."""

    @property
    def documents_per_s(self) -> float:
        """Over the time with a shard in work; 0 where there was none."""
        return self.balance.outcomes.documents / self.active_s if self.active_s else 0.0

    def shard(self, shard_id: str) -> ShardCounts:
        """The counts of one shard that has a part.

        Raises:
            KeyError: no part stands for it.
        """
        for shard in self.shards:
            if shard.shard_id == shard_id:
                return shard
        raise KeyError(shard_id)
