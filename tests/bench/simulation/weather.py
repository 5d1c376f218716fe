"""The simulated cluster: engines that start, work, fall behind, fail, die and are taken away, drawn from a seed."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.core.document import Shard
from pipeline.core.errors import EngineDeadError, EngineError
from pipeline.core.outcome import Status
from pipeline.run.ledger import Tally
from pipeline.run.messages import Event, Failed, Finished, Lost, Placed, Summary, WorkerReady
from pipeline.run.task import Assignment, Task

__all__ = ["Weather", "WeatherCluster"]


@dataclass(frozen=True, slots=True)
class Weather:
    """What engines do, and what befalls them.  Times in seconds; chances for each shard, waves for each hour."""

    document_s: float = 0.2
    """Mean time of one document in one engine, many being in flight at once."""
    spread: float = 0.25
    """Sigma of the log-normal factor on a shard's time."""
    straggler: float = 0.01
    straggler_factor: float = 5.0
    start_s: tuple[float, float] = (90.0, 240.0)
    """An engine's start, uniform."""
    failure: float = 0.002
    death: float = 0.001
    waves_an_hour: float = 4.0
    """Spot losses: a Poisson process of waves, each of which takes a share of the engines at once."""
    wave_share: float = 0.05


@dataclass(slots=True)
class _Engine:
    work_s: dict[str, float] = field(default_factory=dict)
    """Of the tasks it holds."""
    ready_at: float | None = None
    busy_until: float = 0.0


class WeatherCluster:
    """As `driver.Cluster`.  An engine works on its tasks one after the other."""

    def __init__(self, weather: Weather, seed: int, mean_s: Callable[[Shard], float] | None = None) -> None:
        """Args:
        mean_s: what a shard takes an engine on average; else as its rows say.
        """
        self.weather = weather
        self._mean_s = mean_s or (lambda shard: weather.document_s * shard.rows)
        self.finished_at = 0.0
        """When the last shard was committed."""
        self._spans: list[tuple[float, float]] = []
        """When each engine that was not lost was ready, and when it had done all it was given."""
        self.now = 0.0
        self.useful_s = self.alive_s = 0.0
        self._done: set[str] = set()
        self.attempts = self.lost_engines = self.failed_attempts = 0
        self._rng = random.Random(seed)
        self._engines: dict[str, _Engine] = {}
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, str, str, Task | None]] = []
        self._next_wave(0.0)

    def clock(self) -> float:
        return self.now

    def fits(self) -> int:
        return len(self._engines)

    def start_worker(self, concurrency: int) -> str:
        worker_id = f"w{next(self._numbers)}"
        self._engines[worker_id] = _Engine()
        self._at(self.now, "placed", worker_id)
        self._at(self.now + self._rng.uniform(*self.weather.start_s), "ready", worker_id)
        return worker_id

    def submit(self, assignment: Assignment) -> None:
        weather, rng = self.weather, self._rng
        engine, task = self._engines[assignment.worker_id], assignment.task
        self.attempts += 1
        factor = rng.lognormvariate(-(weather.spread**2) / 2, weather.spread)
        if rng.random() < weather.straggler:
            factor *= weather.straggler_factor
        work_s = self._mean_s(task.shard) * factor
        start = max(self.now, engine.busy_until)
        what, draw = "finish", rng.random()
        if task.merge is None and draw < weather.death:
            what, work_s = "die", work_s * rng.random()
        elif draw < weather.death + weather.failure:
            what, work_s = "fail", work_s * rng.random()
        engine.work_s[task.task_id] = work_s
        engine.busy_until = start + work_s
        self._at(start + work_s, what, assignment.worker_id, task)

    def kill(self, worker_id: str) -> None:
        engine = self._engines.get(worker_id)
        if engine is not None and engine.ready_at is not None:
            self._spans.append((engine.ready_at, engine.busy_until))
        self._end(worker_id)

    def _end(self, worker_id: str) -> None:
        engine = self._engines.pop(worker_id, None)
        if engine is not None and engine.ready_at is not None:
            self.alive_s += self.now - engine.ready_at

    @property
    def idle_s(self) -> float:
        """Engine-seconds between the end of each engine's work and the last commit, given back meanwhile or not."""
        return sum(max(0.0, self.finished_at - max(spans)) for spans in self._spans)

    @property
    def doubled_s(self) -> float:
        """Engine-seconds of attempts that do not count, where no engine is lost and none waits before the end."""
        alive_s = sum(max(0.0, self.finished_at - ready) for ready, _ in self._spans)
        return max(0.0, alive_s - self.idle_s - self.useful_s)

    def wait(self, timeout_s: float) -> list[Event]:
        until = self.now + timeout_s
        while self._events and self._events[0][0] <= until:
            self.now, _, what, worker_id, task = heapq.heappop(self._events)
            if what == "wave":
                if events := self._wave():
                    return events
            elif worker_id in self._engines:
                return [self._happened(what, worker_id, task)]
        self.now = max(self.now, until)
        return []

    def documents_working(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        for worker_id in list(self._engines):
            self.kill(worker_id)

    def _happened(self, what: str, worker_id: str, task: Task | None) -> Event:
        engine = self._engines[worker_id]
        if what == "placed":
            return Placed(worker_id, "simulated")
        if what == "ready":
            engine.ready_at = engine.busy_until = self.now
            return WorkerReady(worker_id, "simulated")
        assert task is not None
        if what == "die":
            self.lost_engines += 1
            self._end(worker_id)
            return Lost(worker_id, EngineDeadError("it died"), False)
        work_s = engine.work_s.pop(task.task_id)
        if what == "fail":
            self.failed_attempts += 1
            return Failed(worker_id, task.task_id, EngineError("it failed"))
        if task.task_id not in self._done:
            self._done.add(task.task_id)
            self.finished_at = self.now
            self.useful_s += work_s
        return Finished(worker_id, Summary(task.task_id, Tally({(Status.VALID, None): task.shard.rows}), True, 1.0))

    def _wave(self) -> list[Event]:
        self._next_wave(self.now)
        taken = [name for name in self._engines if self._rng.random() < self.weather.wave_share]
        ready = [name for name in taken if self._engines[name].ready_at is not None]
        for name in ready:
            self._end(name)
        self.lost_engines += len(ready)
        return [Lost(name, EngineDeadError("its machine was taken away"), False, True) for name in ready]

    def _next_wave(self, now: float) -> None:
        if self.weather.waves_an_hour:
            self._at(now + self._rng.expovariate(self.weather.waves_an_hour / 3600), "wave", "")

    def _at(self, when: float, what: str, worker_id: str, task: Task | None = None) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what, worker_id, task))
