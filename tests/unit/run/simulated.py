"""A cluster on a made-up clock: workers that take time, die, fail and run out of memory as told."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.core.document import Piece, Shard
from pipeline.core.errors import EngineDeadError, EngineError, RecordmillError
from pipeline.core.outcome import Cause, Status
from pipeline.run.dispatch import Dispatcher
from pipeline.run.driver import Driver
from pipeline.run.fleet import Fleet
from pipeline.run.ledger import Ledger, StopRule, Tally
from pipeline.run.messages import Event, Failed, Finished, Lost, Placed, StartFailed, Summary, Unplaced, WorkerReady
from pipeline.run.progress import Snapshot
from pipeline.run.stop import StopFlag
from pipeline.run.task import Assignment, Task

Row = tuple[str, int, int]


def rows(shard: Shard) -> list[Row]:
    return [(p.uri, p.row_group, row) for p in shard.pieces for row in range(p.row_start, p.row_stop)]


def shard_of(number: int, size: int) -> Shard:
    return Shard((Piece(f"s3://b/{number}.parquet", "e", 0, 0, size),))


@dataclass
class Faults:
    """What goes wrong."""

    poison: set[Row] = field(default_factory=set)
    """Rows that kill the worker whenever it reaches them."""
    recordless: set[Row] = field(default_factory=set)
    """Rows that give no record."""
    death: float = 0.0
    """Chance that a worker dies in a task."""
    failure: float = 0.0
    """Chance that a task fails and its worker lives."""
    error: Callable[[], RecordmillError] = lambda: EngineError("a failure")
    start: float = 0.0
    """Chance that a worker does not start."""
    start_error: Callable[[], RecordmillError] = lambda: EngineError("no start")
    bad_starts: frozenset[str] = frozenset()
    """Workers that do not start."""
    bad_workers: frozenset[str] = frozenset()
    """Workers on which every task fails."""
    memory_deaths: int = 0
    """Deaths of the first tasks that are for want of memory."""
    preemptions: int = 0
    """Workers whose machine is taken away in the first tasks."""
    is_found: bool = False
    """Whether another driver has committed every task before this one comes to it."""


class SimulatedCluster:
    """As `driver.Cluster`."""

    def __init__(self, room: int, faults: Faults, seed: int = 0, row_s: float = 0.01, start_s: float = 5.0) -> None:
        self.now = 0.0
        self.room = room
        self.taken_by_others = 0
        self.refuse_s = start_s
        self.faults = faults
        self.rng = random.Random(seed)
        self.row_s = row_s
        self.start_s = start_s
        self.queues: dict[str, list[Task]] = {}
        self.busy_until: dict[str, float] = {}
        self.begun: dict[tuple[str, str], float] = {}
        self.events: list[tuple[float, int, str, Callable[[], Event]]] = []
        self.numbers = itertools.count()
        self.refused: dict[str, Event] = {}
        self.parts: dict[str, list[tuple[Row, bool]]] = {}
        self.halves: dict[str, list[tuple[Row, bool]]] = {}
        self.attempts: dict[str, int] = {}
        self.started: list[int] = []
        self.alone: list[tuple[str, int]] = []
        self.stop_at: tuple[float, StopFlag] | None = None

    def clock(self) -> float:
        return self.now

    def fits(self) -> int:
        return self.room + self.taken_by_others

    def start_worker(self, concurrency: int) -> str:
        worker_id = f"w{len(self.started)}"
        self.started.append(concurrency)
        if len(self.queues) >= self.room:
            self._refuse(Unplaced(worker_id, "no room"))
        elif worker_id in self.faults.bad_starts or self.rng.random() < self.faults.start:
            self._refuse(StartFailed(worker_id, self.faults.start_error()))
        else:
            self.queues[worker_id] = []
            self.busy_until[worker_id] = self.now
            self._at(self.now, worker_id, lambda: Placed(worker_id, "simulated"))
            self._at(self.now + self.start_s, worker_id, lambda: WorkerReady(worker_id, "simulated"))
        return worker_id

    def submit(self, assignment: Assignment) -> None:
        task, worker_id = assignment.task, assignment.worker_id
        self.attempts[task.task_id] = self.attempts.get(task.task_id, 0) + 1
        self.queues[worker_id].append(task)
        start = max(self.now, self.busy_until[worker_id])
        self.begun[worker_id, task.task_id] = start
        planned = rows(task.shard) if task.merge is None else []
        dies_at = next((index for index, row in enumerate(planned) if row in self.faults.poison), None)
        if planned and dies_at is None and self.rng.random() < self.faults.death:
            dies_at = self.rng.randrange(len(planned))
        is_memory = bool(planned) and self.faults.memory_deaths > 0
        if is_memory:
            self.faults.memory_deaths -= 1
            dies_at = 0
        is_preempted = bool(planned) and not is_memory and self.faults.preemptions > 0
        if is_preempted:
            self.faults.preemptions -= 1
            dies_at = 0
        end = start + self.row_s * ((len(planned) if dies_at is None else dies_at) + 1)
        self.busy_until[worker_id] = end
        if dies_at is not None:
            self._at(end, worker_id, lambda: self._die(worker_id, is_memory, is_preempted))
        elif worker_id in self.faults.bad_workers or self.rng.random() < self.faults.failure:
            self._at(end, worker_id, lambda: self._fail(worker_id, task))
        else:
            self._at(end, worker_id, lambda: self._finish(worker_id, task))

    def kill(self, worker_id: str) -> None:
        self.queues.pop(worker_id, None)

    def wait(self, timeout_s: float) -> list[Event]:
        if self.stop_at is not None and self.now >= self.stop_at[0]:
            self.stop_at[1].set("SIGTERM")
        if not self.events or self.events[0][0] > self.now + timeout_s:
            self.now += max(timeout_s, 0.001)
            return []
        self.now, _, worker_id, happen = heapq.heappop(self.events)
        if worker_id in self.queues:
            happened = [happen()]
            while self.events and self.events[0][0] == self.now and self.events[0][2] == worker_id in self.queues:
                happened.append(heapq.heappop(self.events)[3]())
            return happened
        event = self.refused.pop(worker_id, None)
        return [] if event is None else [event]

    def documents_working(self) -> dict[str, int]:
        done: dict[str, int] = {}
        for worker_id, tasks in self.queues.items():
            for task in tasks:
                came = min(task.shard.rows, int((self.now - self.begun[worker_id, task.task_id]) / self.row_s))
                if task.merge is None:
                    done[task.task_id] = max(came, done.get(task.task_id, 0))
        return done

    def _at(self, when: float, worker_id: str, happen: Callable[[], Event]) -> None:
        heapq.heappush(self.events, (when, next(self.numbers), worker_id, happen))

    def _refuse(self, event: Unplaced | StartFailed) -> None:
        self.refused[event.worker_id] = event
        self._at(self.now + self.refuse_s, event.worker_id, lambda: event)

    def _die(self, worker_id: str, is_memory: bool, is_preempted: bool) -> Event:
        self.alone.append((worker_id, len(self.queues[worker_id])))
        self.kill(worker_id)
        return Lost(worker_id, EngineDeadError("it died"), is_memory, is_preempted)

    def _fail(self, worker_id: str, task: Task) -> Event:
        self.queues[worker_id].remove(task)
        return Failed(worker_id, task.task_id, self.faults.error())

    def _finish(self, worker_id: str, task: Task) -> Event:
        self.queues[worker_id].remove(task)
        if task.merge is None:
            content = [(row, row not in self.faults.recordless) for row in rows(task.shard)]
        else:
            content = []
            for leaf in task.merge.leaves:
                content += [(row, False) for row in rows(leaf.shard)] if leaf.is_crashed else self.halves[leaf.shard_id]
        (self.halves if task.is_half else self.parts).setdefault(
            task.task_id if task.is_half else task.root_id, content
        )
        lived = sum(is_valid for _, is_valid in content)
        counts = {(Status.VALID, None): lived, (Status.FAILED, Cause.ENGINE_CRASH): len(content) - lived}
        tally = Tally({k: n for k, n in counts.items() if n})
        return Finished(worker_id, Summary(task.task_id, tally, not self.faults.is_found, 1.0))


@dataclass
class Simulation:
    """One submission on a simulated cluster."""

    cluster: SimulatedCluster
    ledger: Ledger
    dispatcher: Dispatcher
    fleet: Fleet
    driver: Driver
    snapshots: list[Snapshot]
    stop: StopFlag


def simulate(
    ledger: Ledger,
    cluster: SimulatedCluster,
    *,
    engines: int | None = None,
    attempts: int = 3,
    stop_rule: StopRule | None = None,
) -> Simulation:
    snapshots: list[Snapshot] = []
    stop = StopFlag()
    dispatcher = Dispatcher(
        ledger.pending(), attempts_per_shard=attempts, halves_present=cluster.halves, rng=random.Random(1)
    )
    fleet = Fleet(engines or 1, most=engines)
    driver = Driver(
        "simulated",
        ledger,
        dispatcher,
        fleet,
        cluster,
        stop_rule=stop_rule or StopRule(None, 1),
        stop=stop,
        progress=snapshots.append,
        clock=cluster.clock,
    )
    return Simulation(cluster, ledger, dispatcher, fleet, driver, snapshots, stop)
