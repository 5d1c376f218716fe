"""Owns one attempt at one shard inside a worker: documents in, outcomes counted against what is owed, one commit.

Documents of the next shard enter the engine while the last ones of this shard finish: shards feed one after the other,
and share the slots.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pipeline.core.document import Shard
from pipeline.core.errors import EngineDeadError, RecordmillError, VerificationError
from pipeline.core.outcome import Outcome
from pipeline.run.extract import Extracted, Extractor, Prepared
from pipeline.run.generation import Usage
from pipeline.run.intake import KnownColumns, ReadPiece, Row, rows_of
from pipeline.storage.footer import Timings

__all__ = ["Lanes", "ShardWork", "Work"]

BATCH_ROWS = 64
BATCH_CHARACTERS = 4_000_000
_FIRST_ROWS = 2
_PREPARED_ROWS = 16
_PREPARED_CHARACTERS = 65_536
_WORKED_ON_A_WAITING = 8


class Lanes:
    """The slots of one engine, and whose turn it is to fill them.

    For every 8 documents that the engine works on, one more waits inside it: the place of one that ends is taken in the
    engine's next step, and not after a turn of ours.
    """

    def __init__(self, concurrency: int) -> None:
        """Args:
        concurrency: how many the engine works on at once.
        """
        self.slots = asyncio.Semaphore(concurrency + math.ceil(concurrency / _WORKED_ON_A_WAITING))
        self.turn = asyncio.Lock()
        self.outcomes: dict[str, dict[int, Outcome]] = {}
        """By shard id, what came of its documents so far; the worker takes it out when the attempt has ended."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a shard's documents came to, in the order of its rows."""

    outcomes: tuple[Outcome, ...]
    timings_s: Timings
    cached_tokens: int
    started_at: datetime
    finished_at: datetime


@dataclass(slots=True)
class _Sums:
    usage: Usage = field(default_factory=Usage)
    prompt_s: float = 0.0
    parse_s: float = 0.0

    def add(self, item: Extracted) -> None:
        self.usage = self.usage.added(item.usage)
        self.prompt_s += item.prompt_s
        self.parse_s += item.parse_s


class ShardWork:
    """Runs the documents of shards through one extractor."""

    def __init__(
        self,
        extractor: Extractor,
        read: ReadPiece,
        lanes: Lanes,
        reading: Executor,
        *,
        document_bytes: int,
        known: KnownColumns,
        allow_duplicates: bool = False,
    ) -> None:
        """Args:
        allow_duplicates: see `rows_of`.
        """
        self._extractor = extractor
        self._read = read
        self._lanes = lanes
        self._reading = reading
        self._document_bytes = document_bytes
        self._known = known
        self._allow_duplicates = allow_duplicates

    async def run(self, shard: Shard, attempt: str, timeout_s: float, before: Shard | None = None) -> Work:
        """The outcomes of a shard's rows.

        Args:
            shard: the rows.
            attempt: this attempt's id, which its requests' ids begin with.
            timeout_s: the most it may take from its turn on.
            before: see `rows_of`.

        Raises:
            EngineDeadError: the engine is gone, or the time was up.
            StorageError: the input cannot be read for a reason that may pass.
            VerificationError: rows are owed.
        """
        outcomes = self._lanes.outcomes[shard.shard_id] = {}
        sums = _Sums()
        try:
            async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group, self._lanes.turn:
                started_at, started = datetime.now(UTC), time.perf_counter()
                limit.reschedule(asyncio.get_running_loop().time() + timeout_s)
                await self._feed(shard, before, attempt, group, outcomes, sums)
        except TimeoutError:
            raise EngineDeadError(f"the shard took more than {timeout_s:g} s") from None
        except BaseExceptionGroup as errors:
            raise _gravest(errors) from errors
        if sorted(outcomes) != list(range(shard.rows)):
            raise VerificationError(f"shard {shard.shard_id}: {len(outcomes)} outcomes for {shard.rows} documents")
        timings_s = Timings(
            queue=sums.usage.queued_s,
            prompt=sums.prompt_s,
            prefill=sums.usage.prefill_s,
            decode=sums.usage.decode_s,
            parse=sums.parse_s,
            wall=time.perf_counter() - started,
        )
        ordered = tuple(outcomes[index] for index in range(shard.rows))
        return Work(ordered, timings_s, sums.usage.cached_tokens, started_at, datetime.now(UTC))

    def rows(self, shard: Shard, before: Shard | None) -> Iterator[Row]:
        """A shard's rows without extracting them; see `rows_of`.  Blocks."""
        return rows_of(
            shard,
            self._read,
            document_bytes=self._document_bytes,
            before=before,
            known=self._known,
            allow_duplicates=self._allow_duplicates,
        )

    async def _feed(
        self,
        shard: Shard,
        before: Shard | None,
        attempt: str,
        group: asyncio.TaskGroup,
        outcomes: dict[int, Outcome],
        sums: _Sums,
    ) -> None:
        """Starts a task for each document as soon as there is a slot, while the next few are read and prepared."""
        rows = _longest_first(self.rows(shard, before))
        # The first document of a shard waits for few others: the engine may have come free for it.
        coming = group.create_task(self._next(rows, _FIRST_ROWS))
        while few := await coming:
            coming = group.create_task(self._next(rows, _PREPARED_ROWS))
            for prepared in few:
                await self._lanes.slots.acquire()
                task = group.create_task(self._one(prepared, f"{attempt}-{prepared.row.index}", outcomes, sums))
                # Not in the task itself: one that is cancelled before its first step runs no `finally`.
                task.add_done_callback(lambda _: self._lanes.slots.release())

    async def _next(self, rows: Iterator[Row], most: int) -> list[Prepared]:
        """The next rows, `most` of them, with their prompts."""
        loop = asyncio.get_running_loop()
        few = await loop.run_in_executor(self._reading, _take, rows, most, _PREPARED_CHARACTERS)
        return await self._extractor.prepare(few) if few else []

    async def _one(self, prepared: Prepared, request_id: str, outcomes: dict[int, Outcome], sums: _Sums) -> None:
        extracted = await self._extractor.extract_prepared(prepared, request_id)
        outcomes[extracted.index] = extracted.outcome
        sums.add(extracted)


def _longest_first(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows by batches: so many that reading is no bottleneck, so few that long texts do not fill the memory.

    The longest of a batch comes first, so that at the end the engine does not wait for it alone.
    """
    while batch := _take(rows, BATCH_ROWS, BATCH_CHARACTERS):
        yield from sorted(batch, key=_characters, reverse=True)


def _take(rows: Iterator[Row], most: int, most_characters: int) -> list[Row]:
    """The next rows, `most` of them, or those with which there are `most_characters`."""
    taken: list[Row] = []
    characters = 0
    for row in rows:
        taken.append(row)
        characters += _characters(row)
        if len(taken) >= most or characters >= most_characters:
            break
    return taken


def _characters(row: Row) -> int:
    return 0 if isinstance(row.content, Outcome) else len(row.content.text or "")


def _gravest(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """One of several that ended a shard: an error that is not ours, else a dead engine, which explains all others."""
    leaves: list[BaseException] = []
    pending: list[BaseException] = [errors]
    while pending:
        item = pending.pop()
        if isinstance(item, BaseExceptionGroup):
            pending.extend(item.exceptions)
        else:
            leaves.append(item)
    foreign = [item for item in leaves if not isinstance(item, RecordmillError)]
    dead = [item for item in leaves if isinstance(item, EngineDeadError)]
    return (foreign or dead or leaves)[0]
