"""A run at the scale it is meant for, on a made-up clock: `python -m tests.bench.simulation --documents 10000000`.

Everything that plans and drives is the real code: shards from row groups, the plan's file, the ledger, the dispatcher,
the fleet, the driver's loop.  The cluster and its time are simulated: engines start, work, fall behind, fail, die and
are taken away as the `Weather` says, drawn from a seed.  Each size runs in a process of its own, so that its peak of
memory is its own.  Prints, for each size: time and memory of planning, the share of the engines' time that was useful,
CPU time of the driver for each shard, and how long it takes to see what is left of a run that is half done.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import logging
import math
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipeline.core.document import InputObject, Plan
from pipeline.core.errors import EngineDeadError, EngineError
from pipeline.core.outcome import Status
from pipeline.run.dispatch import Dispatcher
from pipeline.run.driver import Driver, StopFlag
from pipeline.run.fingerprint import Identity
from pipeline.run.fleet import Fleet
from pipeline.run.ledger import Ledger, StopRule, Tally
from pipeline.run.messages import Event, Failed, Finished, Lost, Summary, WorkerReady
from pipeline.run.plan import StoredPlan, make_shards, parse_plan, render_plan
from pipeline.run.task import Assignment, Task
from pipeline.storage.layout import RunLayout, shard_id_of
from tests.bench.heading import print_heading

ROWS_OF_GROUP = 100
GROUPS_OF_OBJECT = 100
DEFAULT_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


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


@dataclass(frozen=True, slots=True)
class Figures:
    """One size.  Seconds of this process unless named otherwise; bytes."""

    documents: int
    row_groups: int
    engines: int
    shards: int
    plan_s: float
    plan_file_bytes: int
    plan_peak_bytes: int
    resume_s: float
    driver_cpu_s: float
    peak_bytes: int
    simulated_s: float
    useful_share: float
    """Of the engines' time from ready to the end: spent on the attempt that counts."""
    attempts: int
    lost_engines: int
    failed_attempts: int


@dataclass(slots=True)
class _Engine:
    work_s: dict[str, float] = field(default_factory=dict)
    """Of the tasks it holds."""
    ready_at: float | None = None
    busy_until: float = 0.0


class WeatherCluster:
    """As `driver.Cluster`.  An engine works on its tasks one after the other."""

    def __init__(self, weather: Weather, seed: int) -> None:
        self.weather = weather
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
        self._at(self.now + self._rng.uniform(*self.weather.start_s), "ready", worker_id)
        return worker_id

    def submit(self, assignment: Assignment) -> None:
        weather, rng = self.weather, self._rng
        engine, task = self._engines[assignment.worker_id], assignment.task
        self.attempts += 1
        factor = rng.lognormvariate(-(weather.spread**2) / 2, weather.spread)
        if rng.random() < weather.straggler:
            factor *= weather.straggler_factor
        work_s = weather.document_s * task.shard.rows * factor
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
        engine = self._engines.pop(worker_id, None)
        if engine is not None and engine.ready_at is not None:
            self.alive_s += self.now - engine.ready_at

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
        if what == "ready":
            engine.ready_at = engine.busy_until = self.now
            return WorkerReady(worker_id, "simulated")
        assert task is not None
        if what == "die":
            self.lost_engines += 1
            self.kill(worker_id)
            return Lost(worker_id, EngineDeadError("it died"), False)
        work_s = engine.work_s.pop(task.task_id)
        if what == "fail":
            self.failed_attempts += 1
            return Failed(worker_id, task.task_id, EngineError("it failed"))
        if task.task_id not in self._done:
            self._done.add(task.task_id)
            self.useful_s += work_s
        return Finished(worker_id, Summary(task.task_id, Tally({(Status.VALID, None): task.shard.rows}), True, 1.0))

    def _wave(self) -> list[Event]:
        self._next_wave(self.now)
        taken = [name for name in self._engines if self._rng.random() < self.weather.wave_share]
        ready = [name for name in taken if self._engines[name].ready_at is not None]
        for name in ready:
            self.kill(name)
        self.lost_engines += len(ready)
        return [Lost(name, EngineDeadError("its machine was taken away"), False, True) for name in ready]

    def _next_wave(self, now: float) -> None:
        if self.weather.waves_an_hour:
            self._at(now + self._rng.expovariate(self.weather.waves_an_hour / 3600), "wave", "")

    def _at(self, when: float, what: str, worker_id: str, task: Task | None = None) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), what, worker_id, task))


def measure(documents: int, engines: int, shard_rows: int, weather: Weather, seed: int) -> Figures:
    """One run of one size in this process."""
    started = time.perf_counter()
    objects = _objects(documents)
    plan = Plan("0" * 16, objects, make_shards(objects, shard_rows))
    data = render_plan(StoredPlan(plan, Identity({})))
    plan_s = time.perf_counter() - started
    plan_peak = _peak_bytes()

    layout = RunLayout("s3://bench/run/")
    half = [layout.part(shard.shard_id) for shard in plan.shards[::2]]
    started = time.perf_counter()
    again = parse_plan(data, source="plan.json").plan
    left = Ledger(again, [name for uri in half if (name := shard_id_of(uri)) is not None]).pending()
    resume_s = time.perf_counter() - started
    assert len(left) == len(plan.shards) - len(half)
    del again, left, half, data

    ledger = Ledger(plan)
    cluster = WeatherCluster(weather, seed)
    driver = Driver(
        "simulated",
        ledger,
        Dispatcher(ledger.pending(), attempts_per_shard=5, rng=random.Random(seed)),
        Fleet(engines, most=engines),
        cluster,
        stop_rule=StopRule(None, 1),
        stop=StopFlag(),
        progress=lambda snapshot: None,
        clock=cluster.clock,
    )
    cpu = time.process_time()
    driver.run()
    cpu_s = time.process_time() - cpu
    cluster.close()
    assert ledger.is_complete
    assert ledger.documents == documents
    return Figures(
        documents=documents,
        row_groups=sum(len(item.row_group_rows) for item in objects),
        engines=engines,
        shards=len(plan.shards),
        plan_s=plan_s,
        plan_file_bytes=len(render_plan(StoredPlan(plan, Identity({})))),
        plan_peak_bytes=plan_peak,
        resume_s=resume_s,
        driver_cpu_s=cpu_s,
        peak_bytes=_peak_bytes(),
        simulated_s=cluster.now,
        useful_share=cluster.useful_s / cluster.alive_s,
        attempts=cluster.attempts,
        lost_engines=cluster.lost_engines,
        failed_attempts=cluster.failed_attempts,
    )


def _objects(documents: int) -> tuple[InputObject, ...]:
    groups = -(-documents // ROWS_OF_GROUP)
    objects = []
    for start in range(0, groups, GROUPS_OF_OBJECT):
        count = min(GROUPS_OF_OBJECT, groups - start)
        rows = [ROWS_OF_GROUP] * count
        if start + count == groups:
            rows[-1] = documents - (groups - 1) * ROWS_OF_GROUP
        uri = f"s3://documents/all/part-{start:07}.parquet"
        objects.append(InputObject(uri, f"etag-{start}", 40_000 * count, tuple(rows), (40_000,) * count))
    return tuple(objects)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every size in a process of its own; print a table, and draw it where a file is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulation", description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=list(DEFAULT_SIZES))
    parser.add_argument("--documents-per-engine", type=int, default=10_000, help="sets the number of engines")
    parser.add_argument("--shard-rows", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--calm", action="store_true", help="no failures, deaths, spot losses or stragglers")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--plot", type=Path, help="draw the growth of each figure into this SVG file")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    weather = Weather(straggler=0, failure=0, death=0, waves_an_hour=0) if chosen.calm else Weather()
    if chosen.one:
        (documents,) = chosen.documents
        engines = max(1, documents // chosen.documents_per_engine)
        print(json.dumps(asdict(measure(documents, engines, chosen.shard_rows, weather, chosen.seed))))
        return 0
    logging.disable(logging.WARNING)  # every engine that is lost is a line
    print_heading("simulation", arguments)
    print(weather)
    rest = ["--documents-per-engine", str(chosen.documents_per_engine), "--shard-rows", str(chosen.shard_rows)]
    rest += ["--seed", str(chosen.seed), *(["--calm"] if chosen.calm else [])]
    found = []
    for documents in chosen.documents:
        command = [sys.executable, "-m", "tests.bench.simulation", "--one", "--documents", str(documents), *rest]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(Figures(**json.loads(done.stdout)))
    Console(width=160).print(_table(found))
    print(_growth(found))
    if chosen.plot:
        _draw(found, chosen.plot)
    if chosen.out:
        chosen.out.write_text(json.dumps([asdict(item) for item in found], indent=2))
    return 0


def _table(found: Sequence[Figures]) -> Table:
    table = Table(title="the driver's own code on a simulated cluster", title_justify="left")
    columns = ("documents", "shards", "engines", "plan", "plan file", "plan peak", "resume", "driver CPU", "a shard")
    for name in (*columns, "peak", "wall", "useful", "lost engines", "failed", "attempts"):
        table.add_column(name, justify="right")
    for item in found:
        table.add_row(
            f"{item.documents:,}",
            f"{item.shards:,}",
            f"{item.engines:,}",
            f"{item.plan_s:.2f} s",
            f"{item.plan_file_bytes / 1e6:.2f} MB",
            f"{item.plan_peak_bytes / 1e6:.0f} MB",
            f"{item.resume_s:.2f} s",
            f"{item.driver_cpu_s:.1f} s",
            f"{1e6 * item.driver_cpu_s / item.shards:.0f} µs",
            f"{item.peak_bytes / 1e6:.0f} MB",
            f"{item.simulated_s:,.0f} s",
            f"{item.useful_share:.1%}",
            f"{item.lost_engines:,}",
            f"{item.failed_attempts:,}",
            f"{item.attempts:,}",
        )
    return table


def _growth(found: Sequence[Figures]) -> str:
    """How each grows with the number of documents: the exponent between the two largest sizes; 1 is linear."""
    if len(found) < 2:
        return ""
    small, large = found[-2], found[-1]
    step = math.log(large.documents / small.documents)
    pairs = {
        "plan time": (small.plan_s, large.plan_s),
        "resume": (small.resume_s, large.resume_s),
        "driver CPU": (small.driver_cpu_s, large.driver_cpu_s),
        "peak memory": (small.peak_bytes, large.peak_bytes),
    }
    return "growth, as a power of the documents: " + ", ".join(
        f"{name} {math.log(after / before) / step:.2f}" for name, (before, after) in pairs.items()
    )


def _draw(found: Sequence[Figures], path: Path) -> None:
    """Each figure over the number of documents, both axes logarithmic, beside a line that is linear."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot

    sizes = [item.documents for item in found]
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    series = {
        "plan": [item.plan_s for item in found],
        "resume": [item.resume_s for item in found],
        "driver CPU, whole run": [item.driver_cpu_s for item in found],
    }
    for name, values in series.items():
        times.plot(sizes, values, marker="o", label=name)
    last = series["driver CPU, whole run"][-1]
    times.plot(sizes, [last * size / sizes[-1] for size in sizes], linestyle=":", color="gray", label="linear")
    times.set(title="time", ylabel="seconds")
    memory.plot(sizes, [item.peak_bytes / 1e6 for item in found], marker="o", label="driver, peak")
    memory.plot(sizes, [item.plan_file_bytes / 1e6 for item in found], marker="o", label="plan file")
    memory.set(title="size", ylabel="MB")
    for axes in (times, memory):
        axes.set(xscale="log", yscale="log", xlabel="documents")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(main())
