"""The long fault test: `python -m tests.soak --minutes 30 --faults 200 --seed 7`, or `make soak`.

Whole runs with the scripted engine, one after the other, under random faults: workers and drivers are killed, stalled
and doubled, engines fall silent, and the way to the store loses, delays, cuts and repeats.  A run is submitted until it
is complete; then the oracle looks at it.  Documents, runs, faults, their order and their times follow from the seed;
what a fault hits follows from where the run is at that time.  The exit code is 0 if nothing was lost, doubled or torn.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, cast, get_args

from ray.cluster_utils import Cluster

from demo.s3 import S3Server
from pipeline.core.errors import VerificationError
from pipeline.core.sections import S3Spec
from pipeline.core.spec import JobSpec
from pipeline.run.verify import verify
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import read_part
from tests.faults.driver import start_driver
from tests.faults.engines import CONTROL
from tests.faults.proxy import Fault, FaultProxy, Rule
from tests.integration.scripted import documents, job, put_parquet, store_of

OBJECT_STORE_BYTES = 80 * 1024 * 1024
TICK_S = 0.2
LOOK_EVERY_S = 1.0
SUBMISSIONS_AT_MOST = 100
SUBMISSION_S = 600.0
DOCUMENTS = (200, 600)
DRIVERS_AT_MOST = 2

Process = Literal["kill_worker", "kill_driver", "second_driver", "stall_worker", "freeze_engine"]
PROCESS: Sequence[Process] = get_args(Process)
NETWORK: dict[str, tuple[str, str]] = {
    "503": ("", ""),
    "500": ("", ""),
    "reset_before": ("", ""),
    "reset_after": ("", ""),
    "delay": ("", ""),
    "hang": ("GET", ""),
    "truncate": ("GET", r"\.parquet"),
    "409": ("PUT", "parts/"),
    "error200": ("PUT", "parts/"),
    "cut_upload": ("PUT", "parts/"),
    "hang_after": ("PUT", "parts/"),
}
"""Faults of the proxy, with the method and the path that each is for."""


@dataclass(frozen=True, slots=True)
class Order:
    """One fault: what, when (seconds since the last one), and a number that decides the rest."""

    kind: str
    after_s: float
    draw: int


@dataclass(slots=True)
class Figures:
    """What is printed in the end."""

    runs: int = 0
    submissions: Counter[int] = field(default_factory=Counter)
    """By exit code; negative for a signal."""
    planned: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not (self.lost or self.doubled or self.torn or self.problems)


def orders(seed: int, count: int, every_s: float) -> list[Order]:
    """The faults of a seed: half of them strike processes, half the way to the store."""
    draw = random.Random(seed)
    kinds = [draw.choice(PROCESS if number % 2 else list(NETWORK)) for number in range(count)]
    draw.shuffle(kinds)
    return [Order(kind, every_s * draw.uniform(0.3, 1.7), draw.randrange(1 << 30)) for kind in kinds]


@dataclass
class Soak:
    """The machines, the faults that are still to come, and what was found so far."""

    server: S3Server
    proxy: FaultProxy
    cluster: Cluster
    folder: Path
    pending: list[Order]
    figures: Figures = field(default_factory=Figures)
    due_at: float = 0.0
    stalled: list[tuple[float, int]] = field(default_factory=list)
    rules: list[tuple[str, Rule, int]] = field(default_factory=list)

    def one_run(self, number: int, seed: int) -> None:
        """Submits a run until it is complete, and looks at what it left."""
        draw = random.Random(f"{seed}-{number}")
        rows = documents(draw.randrange(*DOCUMENTS), start=1000 * number % 9000)
        prefix = self.server.bucket(f"soak-{number}")
        put_parquet(store_of(prefix, self.server.endpoint_url), f"{prefix}in/a.parquet", rows, row_group_rows=33)
        engine_log = self.folder / f"engine-{number}.log"
        spec = job(
            prefix,
            self.proxy.endpoint_url,
            model={"engine": {"log": str(engine_log), "token_s": 0.02}},
            limits={"engine_silence_s": 5},
            cluster={"engines": 2, "wait_s": 60},
        )
        etags: dict[str, set[str]] = {}
        with (self.folder / f"driver-{number}.log").open("a") as log:
            is_complete = any(self._submission(spec, engine_log, log, etags) == 0 for _ in range(SUBMISSIONS_AT_MOST))
        if not is_complete:
            self.figures.problems.append(f"run {number} is not complete after {SUBMISSIONS_AT_MOST} submissions")
        self._judge(spec, [row["document_id"] for row in rows], etags)

    def _submission(self, spec: JobSpec, engine_log: Path, log: IO[str], etags: dict[str, set[str]]) -> int:
        """The least exit code of the drivers that ran until none was left; 0 if one of them completed the run."""
        drivers = [self._driver(spec, log)]
        codes: list[int] = []
        started = looked = time.monotonic()
        while drivers:
            time.sleep(TICK_S)
            self._strike(spec, engine_log, log, drivers)
            if time.monotonic() - looked > LOOK_EVERY_S:
                looked = time.monotonic()
                self._look(spec, etags)
            if looked - started > SUBMISSION_S:
                self.figures.problems.append(f"{spec.output.uri}: a driver ran for more than {SUBMISSION_S:g} s")
                for driver in drivers:
                    driver.kill()
            ended = [driver for driver in drivers if driver.poll() is not None]
            drivers = [driver for driver in drivers if driver not in ended]
            codes += [driver.returncode for driver in ended]
        self.figures.submissions.update(codes)
        return 0 if 0 in codes else codes[0]

    def _driver(self, spec: JobSpec, log: IO[str]) -> subprocess.Popen[str]:
        factory = "tests.faults.engines:obedient"
        return start_driver(spec, address=self.cluster.address, factory=factory, errors=log)

    def _strike(self, spec: JobSpec, engine_log: Path, log: IO[str], drivers: list[subprocess.Popen[str]]) -> None:
        """Wakes who was stalled long enough, and carries out the next order if it is due and there is whom to hit."""
        now = time.monotonic()
        for _, pid in [item for item in self.stalled if item[0] <= now]:
            _signal(pid, signal.SIGCONT)
        self.stalled = [item for item in self.stalled if item[0] > now]
        if not self.pending or now < self.due_at:
            return
        order, draw = self.pending[0], random.Random(self.pending[0].draw)
        if order.kind in NETWORK:
            method, pattern = NETWORK[order.kind]
            count = 1 if order.kind.startswith("hang") else draw.randrange(1, 5)
            rule = Rule(cast(Fault, order.kind), method, pattern, count=count)
            self.proxy.rules.append(rule)
            self.rules.append((order.kind, rule, count))
        elif not self._strike_process(cast(Process, order.kind), draw, spec, engine_log, log, drivers):
            return
        else:
            self.figures.faults[order.kind] += 1
        self.pending.pop(0)
        self.due_at = now + order.after_s

    def _strike_process(
        self,
        kind: Process,
        draw: random.Random,
        spec: JobSpec,
        engine_log: Path,
        log: IO[str],
        drivers: list[subprocess.Popen[str]],
    ) -> bool:
        """Whether there was somebody to hit."""
        workers = _workers(engine_log)
        match kind:
            case "kill_driver":
                draw.choice(drivers).kill()
            case "second_driver":
                if len(drivers) >= DRIVERS_AT_MOST:
                    return False
                drivers.append(self._driver(spec, log))
            case "freeze_engine":
                if not workers:
                    return False
                (self.folder / "freeze").touch()
            case "kill_worker":
                return bool(workers) and _signal(draw.choice(workers), signal.SIGKILL)
            case "stall_worker":
                if not workers:
                    return False
                pid = draw.choice(workers)
                self.stalled.append((time.monotonic() + draw.uniform(1, 6), pid))
                return _signal(pid, signal.SIGSTOP)
        return True

    def _look(self, spec: JobSpec, etags: dict[str, set[str]]) -> None:
        """Remembers every version of every part that was ever seen."""
        store = store_of(spec.output.uri, self.server.endpoint_url)
        for item in store.list_prefix(RunLayout(spec.output.uri).parts_prefix):
            etags.setdefault(item.uri, set()).add(item.etag)

    def _judge(self, spec: JobSpec, planned: list[str], etags: dict[str, set[str]]) -> None:
        """The oracle."""
        figures = self.figures
        self._look(spec, etags)
        figures.runs += 1
        figures.planned += len(planned)
        rewritten = [uri for uri, versions in etags.items() if len(versions) > 1]
        figures.problems += [f"{uri} was rewritten" for uri in rewritten]
        found: Counter[str] = Counter()
        store = store_of(spec.output.uri, self.server.endpoint_url)
        for uri in etags:
            try:
                rows = read_part(store, uri).to_pylist()
            except VerificationError as error:
                figures.torn += 1
                figures.problems.append(str(error))
                continue
            found.update(row["_document_id"] for row in rows)
            figures.outcomes.update(f"{row['_status']} {row['_cause'] or ''}".strip() for row in rows)
            wrong = [row for row in rows if row["_status"] == "valid" and row["number"] != int(row["_document_id"][1:])]
            figures.problems += [f"{row['_document_id']} has the record of another document" for row in wrong]
        figures.lost += (Counter(planned) - found).total()
        figures.doubled += (found - Counter(planned)).total()
        checked = verify(spec.output.uri, S3Spec(endpoint_url=self.server.endpoint_url))
        figures.problems += checked.problems

    def finish(self) -> None:
        """Wakes all who are stalled, and counts the network's faults that some request met."""
        for _, pid in self.stalled:
            _signal(pid, signal.SIGCONT)
        self.figures.faults.update(kind for kind, rule, count in self.rules if rule.count != count)


def _workers(engine_log: Path) -> list[int]:
    """Process ids of workers that were at work lately and live."""
    if not engine_log.exists():
        return []
    lately = engine_log.read_text().splitlines()[-200:]
    return [pid for pid in sorted({json.loads(line)["pid"] for line in lately}) if _is_worker(pid)]


def _is_worker(pid: int) -> bool:
    try:
        return b"ray::" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _signal(pid: int, number: signal.Signals) -> bool:
    if not _is_worker(pid):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def soak(minutes: float, faults: int, seed: int, folder: Path) -> Figures:
    """Runs until every fault has struck or the time is up; the run that is under way then is completed."""
    with S3Server() as server, FaultProxy(server.endpoint_url, seed=seed) as proxy:
        os.environ.update(server.environment(), **{CONTROL: str(folder)})
        cluster = Cluster()
        try:
            cluster.add_node(num_cpus=4, object_store_memory=OBJECT_STORE_BYTES)
            state = Soak(server, proxy, cluster, folder, orders(seed, faults, 60 * minutes / faults))
            started = time.monotonic()
            for number in itertools.count():
                state.one_run(number, seed)
                said = f"run {number}: {state.figures.planned} documents, {faults - len(state.pending)} faults so far"
                print(f"{time.monotonic() - started:6.0f} s  {said}", flush=True)
                if not state.pending or time.monotonic() - started > 60 * minutes:
                    break
            state.finish()
            return state.figures
        finally:
            cluster.shutdown()


def _show(figures: Figures, seed: int, took_s: float) -> None:
    print(f"seed {seed}, {took_s / 60:.1f} minutes, {figures.runs} runs")
    print(f"documents planned  {figures.planned}")
    for name, counts in (("outcomes", figures.outcomes), ("submissions by exit code", figures.submissions)):
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in sorted(counts.items(), key=str)))
    named = ", ".join(f"{kind} {count}" for kind, count in sorted(figures.faults.items()) if count)
    print(f"faults that struck  {figures.faults.total()}: {named}")
    print(f"lost {figures.lost}, doubled {figures.doubled}, torn {figures.torn}")
    for problem in figures.problems:
        print(f"PROBLEM {problem}")


def main() -> int:
    """Parses the command line and prints the figures; the exit code says whether they are as they must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = random.randrange(1 << 16) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="recordmill-soak-"))
    print(f"seed {seed}; logs in {folder}", flush=True)
    started = time.monotonic()
    figures = soak(options.minutes, options.faults, seed, folder)
    _show(figures, seed, time.monotonic() - started)
    return 0 if figures.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
