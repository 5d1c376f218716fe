"""Owns the commit: from a shard's outcomes to the one object that holds them, put once, never overwritten.

Whatever answer is lost on the way, the object that stands is the truth, and its footer says what is in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from pipeline.core.document import Piece, Shard
from pipeline.core.errors import VerificationError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.run.attempt import Work
from pipeline.run.bisection import Leaf
from pipeline.run.intake import Row
from pipeline.run.ledger import Tally
from pipeline.run.task import Task
from pipeline.storage.arrow import outcomes_table, storable
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import PartFooter, Timings, encode_part, merge_parts, part_footer, read_footer, read_part
from pipeline.storage.store import Store

__all__ = ["Commit", "Committer", "tally_of"]

ReadRows = Callable[[Shard, Shard | None], Iterable[Row]]


def tally_of(footer: PartFooter) -> Tally:
    """The counts of a part's footer."""
    return Tally(footer.by_cause(), footer.tokens.prompt, footer.tokens.output)


@dataclass(frozen=True, slots=True)
class Commit:
    """What stands now for a task, and what it took to put it there."""

    tally: Tally
    is_ours: bool
    encode_s: float
    put_s: float


@dataclass(frozen=True, slots=True)
class Committer:
    """Writes the parts of one run, and the halves of shards that are being divided."""

    store: Store
    layout: RunLayout
    schema: pa.Schema
    fingerprint: str
    engine: str

    def standing(self, task: Task) -> Tally | None:
        """The counts of what is committed for a task, or None.

        Raises:
            VerificationError: what stands belongs to another run, or does not hold the task's rows.
        """
        uri = self._uri(task)
        if self.store.head(uri) is None:
            return None
        footer = read_footer(self.store, uri)
        self._check(footer, task, uri)
        return tally_of(footer)

    def commit(self, task: Task, work: Work, attempt: str) -> Commit:
        """Puts a shard's outcomes.

        Raises:
            StorageError: the store gave out.
            VerificationError: the encoded part is not what was put in.
        """
        started = time.perf_counter()
        outcomes = [storable(outcome, self.schema) for outcome in work.outcomes]
        table = outcomes_table(outcomes, self.schema, attempt=attempt, engine=self.engine)
        footer = part_footer(
            outcomes,
            shard_id=task.task_id,
            fingerprint=self.fingerprint,
            attempt=attempt,
            engine=self.engine,
            started_at=work.started_at,
            finished_at=work.finished_at,
            timings_s=_with_encode(work.timings_s, time.perf_counter() - started),
            cached_tokens=work.cached_tokens,
        )
        return self._put(task, table, footer, attempt, started)

    def merge(self, task: Task, attempt: str, read_rows: ReadRows) -> Commit:
        """Puts the part of a divided shard, made of its halves and of the documents that crashed the engine.

        Raises:
            StorageError, VerificationError: as `commit`.
        """
        if task.merge is None:
            raise ValueError(f"task {task.task_id} is no merge")
        started = time.perf_counter()
        pieces = []
        before: tuple[Piece, ...] = ()
        for leaf in task.merge.leaves:
            pieces.append(self._leaf(leaf, Shard(before) if before else None, attempt, read_rows))
            before += leaf.shard.pieces
        table, footer = merge_parts(pieces, shard_id=task.root_id, attempt=attempt)
        return self._put(task, table, footer, attempt, started)

    def _leaf(self, leaf: Leaf, before: Shard | None, attempt: str, read_rows: ReadRows) -> tuple[pa.Table, PartFooter]:
        if not leaf.is_crashed:
            uri = self.layout.half(leaf.shard_id)
            return read_part(self.store, uri), read_footer(self.store, uri)
        outcomes = [_crashed(row) for row in read_rows(leaf.shard, before)]
        now = datetime.now(UTC)
        footer = part_footer(
            outcomes,
            shard_id=leaf.shard_id,
            fingerprint=self.fingerprint,
            attempt=attempt,
            engine=self.engine,
            started_at=now,
            finished_at=now,
        )
        return outcomes_table(outcomes, self.schema, attempt=attempt, engine=self.engine), footer

    def _put(self, task: Task, table: pa.Table, footer: PartFooter, attempt: str, started: float) -> Commit:
        """Args:
        started: when the table was begun.
        """
        uri = self._uri(task)
        if footer.rows != task.shard.rows:
            raise VerificationError(f"{uri}: {footer.rows} outcomes for {task.shard.rows} documents")
        data = encode_part(table, footer)
        encoded = time.perf_counter()
        is_ours = self.store.put_if_absent(uri, data, attempt=attempt)
        put_s = time.perf_counter() - encoded
        standing = tally_of(footer) if is_ours else self.standing(task)
        if standing is None:
            raise VerificationError(f"{uri} was said to stand, and is not there")
        return Commit(standing, is_ours, encoded - started, put_s)

    def _uri(self, task: Task) -> str:
        return self.layout.half(task.task_id) if task.is_half else self.layout.part(task.root_id)

    def _check(self, footer: PartFooter, task: Task, uri: str) -> None:
        if footer.fingerprint != self.fingerprint:
            raise VerificationError(f"{uri} belongs to run {footer.fingerprint}, this is run {self.fingerprint}")
        if footer.rows != task.shard.rows:
            raise VerificationError(f"{uri} holds {footer.rows} outcomes for {task.shard.rows} documents")


def _with_encode(timings_s: Timings, encode_s: float) -> Timings:
    """The timings with the seconds that building the table took."""
    return timings_s.model_copy(update={"encode": encode_s})


def _crashed(row: Row) -> Outcome:
    """The outcome of a document that brought the engine down; what is wrong with it otherwise comes first."""
    if isinstance(row.content, Outcome):
        return row.content
    return Outcome(
        row.content.document_id,
        Status.FAILED,
        Cause.ENGINE_CRASH,
        "the engine died each time it was given this document, at last alone",
        extra=row.content.extra,
    )
