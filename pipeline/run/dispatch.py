"""Owns who works on what: a state machine over shards and workers that knows neither Ray nor a clock.

Work is pulled.  A worker has one task at a time, and a second one to prefetch while there is plenty, unless it would
hold more text than its share of all that is left, which others would wait for at the end.  A task that was running when
its worker died is a suspect: it runs alone from then on, so that the next death names the guilty one.

When nothing waits and a worker is idle, it gets a task that has fallen behind on another one, and the first to commit
counts (Dean and Ghemawat, "MapReduce", 2004, section 3.6, "Backup Tasks"); idle workers beyond the open tasks are not
needed any more.  An event costs the logarithm of the number of delayed tasks at most; where a worker is idle, the
number of those that have been long at a task; where a shard is given up, that of what waits.

    waiting ──► running ──► done
       ▲           ├──► delayed (failed) ──► waiting          until attempts run out ──► given up
       │           └──► suspect (its worker died), alone ──► ... ──► divided ──► leaves ──► merge ──► done
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterable, Mapping

from pipeline.core.document import Shard
from pipeline.core.errors import RecordmillError
from pipeline.run.bisection import Bisection
from pipeline.run.holdings import Holdings
from pipeline.run.pace import Pace
from pipeline.run.task import Assignment, Merge, Task
from pipeline.run.waiting import Entry, Line

__all__ = ["Dispatcher"]

REFUSALS_AT_MOST = 8
"""Workers that one call of `assign` finds to hold their share, before it leaves the others to the next call."""
DEATHS_BEFORE_DIVIDING = 2
"""A whole shard is divided after so many; a half of it after one; a single document is given up after so many."""
BACKOFF_FIRST_S = 1.0
BACKOFF_MOST_S = 60.0


class Dispatcher:
    """The state of one submission's work."""

    def __init__(
        self,
        shards: Mapping[str, Shard],
        *,
        attempts_per_shard: int,
        text_bytes: Mapping[str, int] | None = None,
        halves_present: Iterable[str] = (),
        rng: random.Random | None = None,
    ) -> None:
        """Args:
        shards: pending shards by id, in the order to work in: see `plan.longest_first`.
        attempts_per_shard: failures (not deaths) after which a shard is given up.
        text_bytes: of each shard, for how long it takes; None where rows have to say it, as in `waiting.Entry.size`.
        halves_present: ids of halves that an earlier submission has stored.
        rng: jitter for the waits between attempts.
        """
        self._waiting = Line(
            Entry(Task(shard_id, shard, shard_id), shard.rows if text_bytes is None else text_bytes[shard_id])
            for shard_id, shard in shards.items()
        )
        self._held = Holdings()
        self._suspects: deque[Entry] = deque()
        self._delayed: list[tuple[float, int, Entry]] = []
        self._bisections: dict[str, Bisection] = {}
        self._attempts_per_shard = attempts_per_shard
        self._halves_present = frozenset(halves_present)
        self._rng = rng or random.Random()
        self._tickets = 0
        self._now = 0.0
        self._pace = Pace()
        self._open = len(self._waiting)
        self.done: set[str] = set()
        self.given_up: dict[str, RecordmillError] = {}

    @property
    def is_finished(self) -> bool:
        """Whether every shard is done or given up."""
        return self._open == 0

    @property
    def open_tasks(self) -> int:
        """Tasks that are not finished, whether a worker holds them or not."""
        return self._held.tasks + len(self._waiting) + len(self._suspects) + len(self._delayed)

    @property
    def documents_in_halves(self) -> int:
        """Documents whose outcomes are known, of divided shards that are not put together yet."""
        return sum(
            bisection.settled_rows
            for root_id, bisection in self._bisections.items()
            if root_id not in self.done and root_id not in self.given_up
        )

    def running(self, worker_id: str) -> tuple[str, ...]:
        """Ids of the tasks a worker holds."""
        return tuple(self._held.workers[worker_id].running)

    def failures_in_a_row(self, worker_id: str) -> int:
        """Attempts that failed on a worker since its last success; 0 of one that is gone."""
        worker = self._held.workers.get(worker_id)
        return 0 if worker is None else worker.failures_in_a_row

    def add_worker(self, worker_id: str) -> None:
        """A worker is ready for work."""
        self._held.add(worker_id)

    def next_due(self) -> float | None:
        """When the first delayed task may run, on the caller's clock; None when nothing waits for time."""
        return self._delayed[0][0] if self._delayed else None

    def assign(self, now: float, workers_coming: int = 0) -> list[Assignment]:
        """What to hand out now.  Suspects go to idle workers, alone; every worker gets a first task before a second.

        Args:
            now: in seconds, on the caller's clock.
            workers_coming: those that have room and start, and will want their share.
        """
        self._now = now
        while self._delayed and self._delayed[0][0] <= now:
            entry = heapq.heappop(self._delayed)[2]
            if entry.is_suspect:
                self._suspects.append(entry)
            else:
                self._waiting.add_failed(entry)
        held, assigned = self._held, []
        while held.idle and (self._suspects or self._waiting):
            worker_id = next(iter(held.idle))
            is_suspect = bool(self._suspects)
            entry = self._suspects.popleft() if is_suspect else self._waiting.take()
            assigned.append(self._hand(worker_id, entry, is_alone=is_suspect))
        refusals = min(REFUSALS_AT_MOST, len(held.busy))
        while len(held.busy) > len(self._suspects) and self._waiting and len(self._waiting) >= len(held.workers):
            if not refusals:
                break
            worker_id = next(iter(held.busy))
            if self._would_exceed_share(worker_id, len(held.workers) + workers_coming):
                refusals -= 1
                held.defer(worker_id)
            else:
                assigned.append(self._hand(worker_id, self._waiting.take(), is_alone=False))
        while held.idle and (late := self._fallen_behind()) is not None:
            assigned.append(self._hand(next(iter(held.idle)), late, is_alone=False))
        return assigned

    def _would_exceed_share(self, worker_id: str, workers: int) -> bool:
        """Whether one task more would be more than the worker's share of all that is left."""
        own = sum(entry.size for entry in self._held.workers[worker_id].running.values()) + self._waiting.first.size
        return own * workers > self._waiting.size + self._held.size

    def _fallen_behind(self) -> Entry | None:
        """A task of the worker that has been at one for the longest time, of those at which it is unusually long."""
        for worked_s, entries in self._held.longest_first(self._now):
            if not self._pace.is_late(0, worked_s):
                return None  # nor are those after it, which began later
            if not self._pace.is_late(entries[0].size, worked_s):
                continue
            for entry in entries:
                if entry.holders == 1 and not entry.deaths and entry.task.is_planned and self._is_owed(entry):
                    return entry
        return None

    def unneeded(self) -> tuple[str, ...]:
        """Idle workers beyond one for each open task, which may yet fail or fall behind."""
        idle = self._held.idle
        return tuple(idle)[: max(0, len(idle) - self.open_tasks)]

    def finished(self, worker_id: str, task_id: str, *, is_ours: bool = True) -> str | None:
        """A worker committed a task's rows, or found them committed; returns the planned shard's id if that is done.

        Args:
            is_ours: whether it committed them; what it found committed says nothing of how long a task takes.
        """
        self._held.workers[worker_id].failures_in_a_row = 0
        self._waiting.is_outage = False
        entry, worked_s = self._held.take(worker_id, task_id, self._now)
        if worked_s is not None and entry.task.is_planned and is_ours:
            self._pace.add(entry.size, worked_s)
        if entry.task.is_half:
            self._settle_leaf(entry, is_crashed=False)
            return None
        self._close(entry.task.root_id)
        self.done.add(entry.task.root_id)
        return entry.task.root_id

    def failed(self, worker_id: str, task_id: str, error: RecordmillError, now: float) -> str:
        """An attempt failed and its worker lives; returns the planned shard's id."""
        entry, _ = self._held.take(worker_id, task_id, self._now)
        self._held.workers[worker_id].failures_in_a_row += 1
        if self._is_open(entry):
            self._count_failure(entry, error, now)
        return entry.task.root_id

    def lost(self, worker_id: str, error: RecordmillError, now: float) -> tuple[str, ...]:
        """A worker is gone; returns the ids of the tasks it held.  Each is a suspect."""
        worker = self._held.remove(worker_id)
        for entry in worker.running.values():
            if not self._is_open(entry):
                continue
            if entry.task.merge is not None:
                self._count_failure(entry, error, now)
            else:
                entry.deaths += 1
                self._judge(entry, now)
        return tuple(worker.running)

    def released(self, worker_id: str) -> tuple[str, ...]:
        """A worker was taken away by the driver, not by what it ran: its tasks go back to the front, unsuspected."""
        worker = self._held.remove(worker_id)
        for entry in filter(self._is_open, reversed(worker.running.values())):
            if entry.is_suspect:
                self._suspects.appendleft(entry)
            else:
                self._waiting.put_first(entry)
        return tuple(worker.running)

    def _is_open(self, entry: Entry) -> bool:
        """Whether nobody else has the task, and its shard is neither done nor given up."""
        return not entry.holders and self._is_owed(entry)

    def _is_owed(self, entry: Entry) -> bool:
        return entry.task.root_id not in self.done and entry.task.root_id not in self.given_up

    def _judge(self, entry: Entry, now: float) -> None:
        """What follows from a death: another try alone, a division, or the end for a single document."""
        task = entry.task
        is_single = task.shard.rows == 1
        allowed = 1 if task.is_half and not is_single else DEATHS_BEFORE_DIVIDING
        if entry.deaths < allowed:
            self._delay(entry, entry.deaths, now)
        elif is_single:
            self._settle_leaf(entry, is_crashed=True)
        else:
            bisection = self._bisection(task)
            for half_id, half in bisection.divide(task.task_id):
                half_entry = Entry(Task(half_id, half, task.root_id, before=bisection.before(half_id)))
                if half_id in self._halves_present:
                    self._settle_leaf(half_entry, is_crashed=False)
                else:
                    self._suspects.append(half_entry)

    def _settle_leaf(self, entry: Entry, *, is_crashed: bool) -> None:
        task = entry.task
        bisection = self._bisection(task)
        bisection.settle(task.task_id, is_crashed=is_crashed)
        if bisection.is_settled and task.root_id not in self.given_up:
            merge = Merge(bisection.leaves)
            self._waiting.put_first(Entry(Task(f"{task.root_id}-merge", bisection.root, task.root_id, merge)))

    def _bisection(self, task: Task) -> Bisection:
        if task.root_id not in self._bisections:
            self._bisections[task.root_id] = Bisection(task.shard, task.root_id)
        return self._bisections[task.root_id]

    def _count_failure(self, entry: Entry, error: RecordmillError, now: float) -> None:
        entry.failures += 1
        self._waiting.is_outage = True
        if entry.failures < self._attempts_per_shard:
            self._delay(entry, entry.failures, now)
        else:
            self._close(entry.task.root_id)
            self.given_up[entry.task.root_id] = error
            self._suspects = deque(filter(self._is_open, self._suspects))
            self._delayed = [delayed for delayed in self._delayed if self._is_open(delayed[2])]
            heapq.heapify(self._delayed)

    def _close(self, root_id: str) -> None:
        if root_id not in self.done and root_id not in self.given_up:
            self._open -= 1

    def _delay(self, entry: Entry, times: int, now: float) -> None:
        wait_s = min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2.0 ** (times - 1)) * self._rng.uniform(0.5, 1.5)
        self._tickets += 1
        heapq.heappush(self._delayed, (now + wait_s, self._tickets, entry))

    def _hand(self, worker_id: str, entry: Entry, *, is_alone: bool) -> Assignment:
        self._held.hand(worker_id, entry, self._now, is_alone=is_alone)
        entry.attempts += 1
        return Assignment(worker_id, entry.task, entry.attempts)
