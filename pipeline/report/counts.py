"""From the footers of a run's parts and its plan to the report: pure addition, and the check that it adds up.

Footers are taken one after the other, so that what is held grows with the number of shards, not with what they hold.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, zip_longest
from typing import TypeVar

from pydantic import JsonValue

from pipeline.core.document import Plan, Shard
from pipeline.core.outcome import Cause, Status
from pipeline.report.documents import FieldScore, ProblemDocument, UnreadableInput
from pipeline.report.model import (
    Balance,
    CauseCount,
    Distribution,
    FieldCount,
    MissingShard,
    PhaseTime,
    Report,
    ShardCounts,
    SpanCounts,
    StatusCounts,
    Submission,
    TokenTotals,
)
from pipeline.report.timeline import Work, timeline
from pipeline.storage.footer import PartFooter

__all__ = ["FoundPart", "make_report"]

_Key = TypeVar("_Key")

PROBLEMS = 10
"""Documents that a report names at most."""
WORST_SHARDS = 10
PLACES = 100
"""Pieces of a missing shard that are named at most."""

PHASES = {
    "queue": True,
    "prompt": False,
    "prefill": True,
    "decode": True,
    "mask": False,
    "parse": False,
    "encode": False,
}
"""The footers' timings, in the order a document passes them, and whether the engine spends them."""


@dataclass(frozen=True, slots=True)
class FoundPart:
    """A part as it was found: its footer, or why it has none."""

    shard_id: str
    """From the object's name."""
    footer: PartFooter | None
    reason: str = ""


@dataclass(slots=True)
class _Sums:
    """What grows while footers are added."""

    counts: Counter[tuple[Status, Cause | None]] = field(default_factory=Counter)
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    output_bins: tuple[int, ...] = ()
    slack_bins: tuple[int, ...] = ()
    shaped: Counter[str] = field(default_factory=Counter)
    grounded: int = 0
    ambiguous: int = 0
    empty: int = 0
    seconds: Counter[str] = field(default_factory=Counter)
    wall_s: float = 0.0
    candidates: dict[tuple[Status, Cause], list[ProblemDocument]] = field(default_factory=dict)

    def add(self, footer: PartFooter) -> None:
        self.counts.update(footer.by_cause())
        self.prompt_tokens += footer.tokens.prompt
        self.output_tokens += footer.tokens.output
        self.cached_tokens += footer.tokens.cached
        self.output_bins = _added(self.output_bins, footer.output_tokens_histogram)
        self.slack_bins = _added(self.slack_bins, footer.slack_tokens_histogram)
        self.shaped.update(footer.shaped_fields)
        self.grounded += footer.spans.grounded
        self.ambiguous += footer.spans.ambiguous
        self.empty += footer.spans.empty
        for phase in PHASES:
            self.seconds[phase] += getattr(footer.timings_s, phase)
        self.wall_s += footer.timings_s.wall
        for problem in footer.problems:
            kept = self.candidates.setdefault((problem.status, problem.cause), [])
            if len(kept) < PROBLEMS:
                kept.append(
                    ProblemDocument(
                        document_id=problem.document_id,
                        shard_id=footer.shard_id,
                        status=problem.status,
                        cause=problem.cause,
                    )
                )


@dataclass(slots=True)
class _Books:
    """The plan on one side, the parts found on the other."""

    plan: Plan
    places: Mapping[str, tuple[int, Shard]]
    sums: _Sums = field(default_factory=_Sums)
    shards: dict[str, ShardCounts] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    unplanned: int = 0
    problems: list[str] = field(default_factory=list)

    def enter(self, part: FoundPart) -> None:
        """Counts one part, or says why it cannot be counted."""
        footer = part.footer
        if footer is None:
            self.unreadable[part.shard_id] = part.reason
            self.problems.append(f"the part of shard {part.shard_id} cannot be read: {part.reason}")
        elif footer.shard_id != part.shard_id:
            self.problems.append(f"the part named for shard {part.shard_id} holds shard {footer.shard_id}")
        elif part.shard_id in self.shards:
            self.problems.append(f"shard {part.shard_id} has two parts")
        elif part.shard_id not in self.places:
            self.unplanned += footer.rows
            self.problems.append(f"shard {part.shard_id} is not in the plan, but has a part with {footer.rows:,} rows")
        else:
            self._count(footer)

    def _count(self, footer: PartFooter) -> None:
        position, shard = self.places[footer.shard_id]
        if footer.rows != shard.rows:
            self.problems.append(
                f"the part of shard {footer.shard_id} holds {footer.rows:,} rows; the plan has {shard.rows:,}"
            )
        if footer.fingerprint != self.plan.fingerprint:
            self.problems.append(
                f"the part of shard {footer.shard_id} is of another run: its fingerprint is {footer.fingerprint}"
            )
        self.sums.add(footer)
        self.shards[footer.shard_id] = ShardCounts(
            shard_id=footer.shard_id,
            position=position,
            documents_planned=shard.rows,
            started_at=footer.started_at,
            finished_at=footer.finished_at,
            output_tokens=footer.tokens.output,
            attempt=footer.attempt,
            engine=footer.engine,
            **{status.value: footer.of(status) for status in Status},
        )

    def missing(self) -> Iterator[MissingShard]:
        for shard_id, (position, shard) in self.places.items():
            if shard_id not in self.shards:
                reason = self.unreadable.get(shard_id, "no part")
                yield MissingShard(
                    shard_id=shard_id, position=position, documents=shard.rows, places=_places(shard), reason=reason
                )


def make_report(
    plan: Plan,
    parts: Iterable[FoundPart],
    *,
    output_uri: str,
    generated_at: datetime,
    spec: Mapping[str, JsonValue] | None = None,
    submissions: Sequence[Submission] = (),
    scores: tuple[FieldScore, ...] = (),
) -> Report:
    """The report of a run.

    What does not add up is said in `balance`, never left out: parts that cannot be read, that no shard of the plan
    stands for, that hold another number of rows than planned, or that are of another run.

    Args:
        plan: the frozen plan.
        parts: every part under the run's prefix, each once.
        output_uri: the run's prefix.
        generated_at: now, with its UTC offset.
        spec: the stored effective spec.
        submissions: in the order of their ids.
        scores: against known answers, where there are any.
    """
    books = _Books(plan, {shard.shard_id: (position, shard) for position, shard in enumerate(plan.shards)})
    for part in parts:
        books.enter(part)
    sums = books.sums
    shards = tuple(sorted(books.shards.values(), key=lambda shard: shard.position))
    missing = tuple(books.missing())
    balance = _balance(books, shards, missing)
    line = timeline([Work(item.started_at, item.finished_at, item.documents, item.output_tokens) for item in shards])
    stored = dict(spec or {})
    return Report(
        generated_at=generated_at,
        name=_name(stored, output_uri),
        fingerprint=plan.fingerprint,
        output_uri=output_uri,
        balance=balance,
        is_complete=balance.is_balanced and not plan.left_out,
        counts=_counts(sums.counts),
        shards_planned=len(plan.shards),
        shards=shards,
        missing=missing,
        worst_shards=_worst(shards),
        tokens=TokenTotals(
            prompt_tokens=sums.prompt_tokens, output_tokens=sums.output_tokens, cached_tokens=sums.cached_tokens
        ),
        output_tokens=_distribution(sums.output_bins),
        slack_tokens=_distribution(sums.slack_bins),
        rate=line.points,
        pauses=line.pauses,
        active_s=line.active_s,
        phases=tuple(
            PhaseTime(phase=phase, seconds=sums.seconds[phase], is_engine=is_engine)
            for phase, is_engine in PHASES.items()
            if sums.seconds[phase]
        ),
        wall_s=sums.wall_s,
        shaped_fields=tuple(FieldCount(field=name, documents=rows) for name, rows in _ranked(sums.shaped)),
        spans=SpanCounts(grounded=sums.grounded, ambiguous=sums.ambiguous, empty=sums.empty),
        problems=_chosen(sums.candidates),
        unreadable=tuple(
            UnreadableInput(
                uri=item.uri, size_bytes=item.size_bytes, reason=item.unreadable.removeprefix(item.uri).lstrip(": ")
            )
            for item in plan.objects
            if item.unreadable is not None
        ),
        spec=stored,
        submissions=tuple(submissions),
        scores=scores,
    )


def _balance(books: _Books, shards: Sequence[ShardCounts], missing: Sequence[MissingShard]) -> Balance:
    problems = list(books.problems)
    if len(books.places) != len(books.plan.shards):
        problems.append("the plan holds a shard twice")
    return Balance(
        documents_planned=books.plan.rows,
        outcomes=StatusCounts(**{status.value: sum(shard.of(status) for shard in shards) for status in Status}),
        documents_missing=sum(gone.documents for gone in missing),
        documents_unplanned=books.unplanned,
        problems=tuple(problems),
    )


def _name(spec: Mapping[str, JsonValue], output_uri: str) -> str:
    name = spec.get("name")
    return name if isinstance(name, str) else output_uri.rstrip("/").rsplit("/", 1)[-1]


def _places(shard: Shard) -> tuple[str, ...]:
    places = [
        f"{piece.uri} row group {piece.row_group} rows {piece.row_start}..{piece.row_stop - 1}"
        for piece in shard.pieces[:PLACES]
    ]
    if len(shard.pieces) > PLACES:
        places.append(f"and {len(shard.pieces) - PLACES} more")
    return tuple(places)


def _counts(counts: Counter[tuple[Status, Cause | None]]) -> tuple[CauseCount, ...]:
    return tuple(
        CauseCount(status=status, cause=cause, documents=rows)
        for status in Status
        for cause, rows in _ranked({cause: rows for (of, cause), rows in counts.items() if of is status})
    )


def _ranked(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))


def _worst(shards: Sequence[ShardCounts]) -> tuple[str, ...]:
    troubled = [shard for shard in shards if shard.documents != shard.valid]
    ranked = heapq.nsmallest(
        WORST_SHARDS,
        troubled,
        key=lambda shard: (-shard.share_lost, -shard.closed / shard.documents, shard.position),
    )
    return tuple(shard.shard_id for shard in ranked)


def _added(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(left, right, fillvalue=0))


def _distribution(bins: tuple[int, ...]) -> Distribution:
    """Footers count by `int.bit_length`: bin 0 is the value 0, bin k is `[2**(k - 1), 2**k)`."""
    return Distribution(edges=tuple(0 if index == 0 else 2 ** (index - 1) for index in range(len(bins))), counts=bins)


def _chosen(candidates: Mapping[tuple[Status, Cause], list[ProblemDocument]]) -> tuple[ProblemDocument, ...]:
    """One of each cause, then a second of each, and so on."""
    order = {status: index for index, status in enumerate(Status)}
    ranked = sorted(candidates.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    rounds = zip_longest(*(documents for _, documents in ranked))
    return tuple([document for document in chain.from_iterable(rounds) if document is not None][:PROBLEMS])
