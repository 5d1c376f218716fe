"""Owns the addition: a run's parts against its plan, one footer after the other, and whether it adds up.

What is held grows with the number of shards, not with what they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from pipeline.core.document import Plan, Shard
from pipeline.core.outcome import Cause, Status
from pipeline.report.documents import ProblemDocument
from pipeline.report.model import Balance, MissingShard, ShardCounts, StatusCounts
from pipeline.report.times import Phases
from pipeline.storage.footer import PartFooter

__all__ = ["PROBLEMS", "Books", "FoundPart", "books_of"]

PROBLEMS = 10
"""Documents that a report names at most."""
PLACES = 100
"""Pieces of a missing shard that are named at most."""


@dataclass(frozen=True, slots=True)
class FoundPart:
    """A part as it was found: its footer, or why it has none."""

    shard_id: str
    """From the object's name."""
    footer: PartFooter | None
    reason: str = ""


@dataclass(slots=True)
class Sums:
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
    phases: Phases = field(default_factory=Phases)
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
        self.phases.add(footer)
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
class Books:
    """The plan on one side, the parts found on the other.

    What does not add up is said in `balance`, never left out: parts that cannot be read, that no shard of the plan
    stands for, that hold another number of rows than planned, or that are of another run.
    """

    plan: Plan
    places: Mapping[str, tuple[int, Shard]]
    """Index in the plan and shard, by shard id."""
    sums: Sums = field(default_factory=Sums)
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

    @property
    def ordered(self) -> tuple[ShardCounts, ...]:
        """The parts that count, in the order of the plan."""
        return tuple(sorted(self.shards.values(), key=lambda shard: shard.position))

    @property
    def missing(self) -> tuple[MissingShard, ...]:
        """The shards without one."""
        return tuple(
            MissingShard(
                shard_id=shard_id,
                position=position,
                documents=shard.rows,
                places=_places(shard),
                reason=self.unreadable.get(shard_id, "no part"),
            )
            for shard_id, position, shard in self._without_part()
        )

    @property
    def balance(self) -> Balance:
        """Documents in against outcomes out."""
        is_twice = len(self.places) != len(self.plan.shards)
        counted = self.shards.values()
        return Balance(
            documents_planned=self.plan.rows,
            outcomes=StatusCounts(**{status.value: sum(shard.of(status) for shard in counted) for status in Status}),
            documents_missing=sum(shard.rows for _, _, shard in self._without_part()),
            documents_unplanned=self.unplanned,
            problems=(*self.problems, "the plan holds a shard twice") if is_twice else tuple(self.problems),
        )

    @property
    def is_complete(self) -> bool:
        """Whether every planned document has exactly one outcome, and no object of the input was left out."""
        return self.is_complete_by(self.balance)

    def is_complete_by(self, balance: Balance) -> bool:
        """The same, by a balance of these books."""
        return balance.is_balanced and not self.plan.left_out

    def _without_part(self) -> Iterator[tuple[str, int, Shard]]:
        for shard_id, (position, shard) in self.places.items():
            if shard_id not in self.shards:
                yield shard_id, position, shard


def books_of(plan: Plan, parts: Iterable[FoundPart]) -> Books:
    """The books of a run.

    Args:
        plan: the frozen plan.
        parts: every part under the run's prefix, each once.
    """
    books = Books(plan, {shard.shard_id: (position, shard) for position, shard in enumerate(plan.shards)})
    for part in parts:
        books.enter(part)
    return books


def _places(shard: Shard) -> tuple[str, ...]:
    places = [
        f"{piece.uri} row group {piece.row_group} rows {piece.row_start}..{piece.row_stop - 1}"
        for piece in shard.pieces[:PLACES]
    ]
    if len(shard.pieces) > PLACES:
        places.append(f"and {len(shard.pieces) - PLACES} more")
    return tuple(places)


def _added(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(left, right, fillvalue=0))
