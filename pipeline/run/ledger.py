"""Owns the arithmetic of a run: which planned shards have a part, and whether the outcomes add up.

Pure.  What is committed is what is listed under `parts/`; nothing else is remembered from one submission to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.core.document import Plan, Shard
from pipeline.core.errors import VerificationError
from pipeline.core.outcome import RECORD_STATUSES, Cause, Status

__all__ = ["Ledger", "StopRule", "Tally"]

Counts = Mapping[tuple[Status, Cause | None], int]


@dataclass(frozen=True, slots=True)
class Tally:
    """Outcomes by status and cause."""

    counts: Counts = field(default_factory=dict)
    prompt_tokens: int = 0
    output_tokens: int = 0

    @property
    def documents(self) -> int:
        """valid + closed + truncated + invalid + failed."""
        return sum(self.counts.values())

    @property
    def records(self) -> int:
        return sum(number for (status, _), number in self.counts.items() if status in RECORD_STATUSES)

    def of(self, status: Status) -> int:
        return sum(number for (found, _), number in self.counts.items() if found is status)

    def by_status(self) -> dict[Status, int]:
        """Every status, those without outcomes too."""
        return {status: self.of(status) for status in Status}

    def plus(self, other: Tally) -> Tally:
        total = Counter(self.counts)
        total.update(other.counts)
        return Tally(dict(total), self.prompt_tokens + other.prompt_tokens, self.output_tokens + other.output_tokens)


class Ledger:
    """A plan against the parts present."""

    def __init__(self, plan: Plan, present: Iterable[str] = ()) -> None:
        """Args:
        plan: the run's shards.
        present: ids of the parts that are listed when the submission starts.
        """
        self.shards: dict[str, Shard] = {shard.shard_id: shard for shard in plan.shards}
        if len(self.shards) != len(plan.shards):
            raise VerificationError(f"the plan holds {len(plan.shards) - len(self.shards)} shards twice")
        self.documents_planned = plan.rows
        self._committed: set[str] = set(present) & self.shards.keys()
        self.documents_at_start = sum(self.shards[shard_id].rows for shard_id in self._committed)
        self.documents = self.documents_at_start
        self.tally = Tally()
        """Of the shards that this submission saw committed."""
        self.sample: frozenset[str] | None = None
        """Ids of the shards that speak for all where the order of work does not; None where any do."""
        self.sample_tally = Tally()
        """As `tally`, of the sample alone."""

    @property
    def shards_done(self) -> int:
        return len(self._committed)

    @property
    def is_complete(self) -> bool:
        return len(self._committed) == len(self.shards)

    def pending(self) -> dict[str, Shard]:
        """Planned shards without a part, by id, in the plan's order."""
        return {shard_id: shard for shard_id, shard in self.shards.items() if shard_id not in self._committed}

    def commit(self, shard_id: str, tally: Tally) -> None:
        """A shard's part stands.

        Raises:
            VerificationError: no such shard is planned, or its outcomes are not one a row.
        """
        shard = self.shards.get(shard_id)
        if shard is None:
            raise VerificationError(f"part {shard_id} belongs to no planned shard")
        if tally.documents != shard.rows:
            raise VerificationError(f"part {shard_id} holds {tally.documents} outcomes for {shard.rows} documents")
        if shard_id not in self._committed:
            self._committed.add(shard_id)
            self.documents += shard.rows
            self.tally = self.tally.plus(tally)
            if self.sample is None or shard_id in self.sample:
                self.sample_tally = self.sample_tally.plus(tally)

    def reconcile(self, listed: Iterable[str]) -> tuple[str, ...]:
        """Planned shards that are missing from a fresh listing of the parts, in the plan's order."""
        present = set(listed)
        return tuple(shard_id for shard_id in self.shards if shard_id not in present)


@dataclass(frozen=True, slots=True)
class StopRule:
    """`limits.stop_if_valid_below`, looked at from `after_documents` of the ledger's sample on."""

    valid_below: float | None
    after_documents: int

    def verdict(self, documents: int, records: int) -> str | None:
        """Why to stop, in a sentence; None to go on."""
        if self.valid_below is None or documents < self.after_documents:
            return None
        share = records / documents
        if share >= self.valid_below:
            return None
        return (
            f"{records} of {documents} documents ({share:.1%}) gave a record; "
            f"limits.stop_if_valid_below is {self.valid_below:.1%}"
        )
