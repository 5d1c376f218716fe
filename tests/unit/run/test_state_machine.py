"""Plan, commit, crash, resume, with lost answers and zombies: nothing is lost, nothing doubled, no part rewritten."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pydantic import BaseModel

from pipeline.core.document import InputObject, Plan, Shard
from pipeline.core.errors import EngineDeadError, StorageError
from pipeline.core.outcome import Outcome, Status
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.run.attempt import Work
from pipeline.run.commit import Committer
from pipeline.run.dispatch import Dispatcher
from pipeline.run.fingerprint import Identity
from pipeline.run.intake import Row, rows_of
from pipeline.run.ledger import Ledger, Tally
from pipeline.run.plan import StoredPlan, make_shards, write_plan
from pipeline.run.task import Assignment, Task
from pipeline.run.verify import verify_parts
from pipeline.run.worker import Worker
from pipeline.storage.arrow import record_schema
from pipeline.storage.documents import DocumentReader, list_input
from pipeline.storage.footer import Timings
from pipeline.storage.layout import RunLayout, shard_id_of
from pipeline.storage.parts import read_part
from tests.stores import MemoryStore, Trouble

FINGERPRINT = "0123456789abcdef"
INPUT = InputSpec(uri="s3://b/in/")
LAYOUT = RunLayout("s3://b/run[1]/")


class Note(BaseModel):
    text: str


@dataclass
class _Driver:
    """One submission: its ledger, its dispatcher, and what its workers hold."""

    number: int
    ledger: Ledger
    dispatcher: Dispatcher
    held: list[Assignment] = field(default_factory=list)
    now: float = 0.0
    workers: int = 0
    living: set[str] = field(default_factory=set)


class _PlayedWork:
    """`ShardWork` without an engine: every document is its own record."""

    def __init__(self, machine: Runs, *, may_stand: bool) -> None:
        self._machine = machine
        self._may_stand = may_stand

    def rows(self, shard: Shard, before: Shard | None) -> Iterable[Row]:
        return rows_of(shard, self._machine.reader.read, document_bytes=1000, before=before)

    async def run(self, shard: Shard, attempt: str, timeout_s: float, before: Shard | None = None) -> Work:
        """Fails the test where the shard was committed before its worker began."""
        own = {LAYOUT.part(shard.shard_id), LAYOUT.half(shard.shard_id)}
        assert self._may_stand or not own & self._machine.store.objects.keys()
        outcomes = tuple(
            row.content
            if isinstance(row.content, Outcome)
            else Outcome(row.content.document_id, Status.VALID, record={"text": row.content.text})
            for row in self.rows(shard, before)
        )
        now = datetime.now(UTC)
        return Work(outcomes, Timings(), 0, now, now)


def _attempt(driver: _Driver, assignment: Assignment) -> str:
    return f"{driver.number}.{assignment.task.task_id}.{assignment.attempt}"


class Runs(RuleBasedStateMachine):
    """Submissions of one run, one after the other and side by side."""

    @initialize(
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
        shard_rows=st.integers(1, 6),
        poison=st.sets(st.integers(0, 12), max_size=2),
    )
    def start(self, sizes: list[int], shard_rows: int, poison: set[int]) -> None:
        """A run over a few objects; documents in `poison` kill the worker that decodes them."""
        self.poison = {f"d{number}" for number in poison}
        self.struck: set[str | None] = set()
        self.store = MemoryStore()
        number = 0
        for index, size in enumerate(sizes):
            rows = [{"document_id": f"d{number + row}", "text": f"text {number + row}"} for row in range(size)]
            number += size
            sink = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist(rows), sink, row_group_size=4)
            self.store.put(f"s3://b/in/{index}.parquet", sink.getvalue().to_pybytes())
        self.shard_rows = shard_rows
        self.drivers: list[_Driver] = []
        self.zombies: list[tuple[Task, str]] = []
        self.first_writer: dict[str, str | None] = {}
        self.submissions = 0
        self.committer = Committer(self.store, LAYOUT, record_schema(Note), FINGERPRINT, "played")
        self.reader = DocumentReader(self.store, INPUT, LimitsSpec())
        self.submit()

    @rule(more_rows=st.integers(0, 2))
    def submit(self, more_rows: int = 0) -> None:
        """Another submission of the same job starts, whatever the others do.

        `more_rows`: it would divide the input in another way, had no plan stood.
        """
        if len(self.drivers) == 2:
            return
        objects: tuple[InputObject, ...] = list_input(self.store, INPUT)
        first = Plan(FINGERPRINT, objects, make_shards(objects, self.shard_rows))
        own = Plan(FINGERPRINT, objects, make_shards(objects, self.shard_rows + more_rows))
        made = StoredPlan(own if self.submissions else first, Identity({}))
        self.plan = write_plan(self.store, LAYOUT, made, attempt=f"s{self.submissions}").plan
        assert self.plan == first
        ledger = Ledger(self.plan, self._parts())
        dispatcher = Dispatcher(
            ledger.pending(),
            attempts_per_shard=1000,
            halves_present=[item.uri[-24:-8] for item in self.store.list_prefix(LAYOUT.halves_prefix)],
            rng=random.Random(0),
        )
        self.drivers.append(_Driver(self.submissions, ledger, dispatcher))
        self.submissions += 1

    @precondition(lambda self: self.drivers)
    @rule(which=st.integers(0, 1), workers=st.integers(1, 3))
    def hand_out(self, which: int, workers: int) -> None:
        driver = self.drivers[which % len(self.drivers)]
        while len(driver.living) < workers:
            driver.workers += 1
            driver.living.add(f"{driver.number}w{driver.workers}")
            driver.dispatcher.add_worker(f"{driver.number}w{driver.workers}")
        driver.now += 100
        driver.held += driver.dispatcher.assign(driver.now)

    @precondition(lambda self: any(driver.held for driver in self.drivers))
    @rule(pick=st.integers(0, 20), trouble=st.sampled_from([None, "before", "after", "lost"]), is_late=st.booleans())
    def work(self, pick: int, trouble: str | None, is_late: bool) -> None:
        """A worker does what it was handed; the store may give out before or after the put.

        `is_late`: another worker may have put the same part since this one looked whether it stands.
        """
        driver, assignment = self._picked(pick)
        if self._dies(assignment.task):
            self._lose(driver, assignment, is_zombie=False)
            return
        if trouble is not None:
            self.store.troubles = [Trouble("put_if_absent", when=trouble)]  # type: ignore[arg-type]
        try:
            tally = self._carry_out(assignment.task, _attempt(driver, assignment), is_late=is_late)
        except StorageError as error:
            driver.dispatcher.failed(assignment.worker_id, assignment.task.task_id, error, driver.now)
        else:
            root_id = driver.dispatcher.finished(assignment.worker_id, assignment.task.task_id)
            if root_id is not None:
                driver.ledger.commit(root_id, tally)
        finally:
            self.store.troubles = []

    @precondition(lambda self: any(driver.held for driver in self.drivers))
    @rule(pick=st.integers(0, 20), is_written=st.booleans(), is_zombie=st.booleans())
    def kill_worker(self, pick: int, is_written: bool, is_zombie: bool) -> None:
        """A worker dies, perhaps after its put; or is taken for dead and goes on."""
        driver, assignment = self._picked(pick)
        if is_written and not self._dies(assignment.task):
            self._carry_out(assignment.task, _attempt(driver, assignment))
        self.struck |= {row.content.document_id for row in self._rows(assignment.task.shard)}
        self._lose(driver, assignment, is_zombie=is_zombie)

    @precondition(lambda self: self.zombies)
    @rule(pick=st.integers(0, 20), is_late=st.booleans())
    def zombie_works(self, pick: int, is_late: bool) -> None:
        task, attempt = self.zombies.pop(pick % len(self.zombies))
        if not self._dies(task):
            self._carry_out(task, attempt, is_late=is_late)

    @precondition(lambda self: self.drivers)
    @rule(which=st.integers(0, 1), is_zombie=st.booleans())
    def kill_driver(self, which: int, is_zombie: bool) -> None:
        driver = self.drivers.pop(which % len(self.drivers))
        if is_zombie:
            self.zombies += [(held.task, _attempt(driver, held)) for held in driver.held]

    @invariant()
    def what_is_committed_is_right_and_stays(self) -> None:
        if not hasattr(self, "store"):
            return
        for uri, item in self.store.objects.items():
            if shard_id_of(uri) is not None:
                assert self.first_writer.setdefault(uri, item.attempt) == item.attempt
        for driver in self.drivers:
            assert {shard_id for shard_id in driver.ledger.shards if shard_id not in driver.ledger.pending()} <= set(
                self._parts()
            )

    def teardown(self) -> None:
        """Whatever happened, one more submission completes the run."""
        if not hasattr(self, "store"):
            return
        self.drivers = []
        self.submit()
        (driver,) = self.drivers
        while not driver.dispatcher.is_finished:
            self.hand_out(0, 2)
            while driver.held:
                self.work(0, None, False)
        assert driver.ledger.is_complete
        self.what_is_committed_is_right_and_stays()
        checked = verify_parts(
            self.store, LAYOUT, StoredPlan(self.plan, Identity({})), self.reader.read, document_bytes=999
        )
        assert [problem for problem in checked.problems if "report.json" not in problem] == []
        ids = Counter(
            document.document_id
            for shard in self.plan.shards
            for piece in shard.pieces
            for document in self.reader.read(piece)
        )
        assert sum(ids.values()) == len(ids) == checked.documents_found
        stored = [
            row
            for item in self.store.list_prefix(LAYOUT.parts_prefix)
            for row in read_part(self.store, item.uri).to_pylist()
        ]
        crashed = {row["_document_id"] for row in stored if row["_status"] != "valid"}
        assert crashed <= (self.poison | self.struck) & ids.keys()

    def _dies(self, task: Task) -> bool:
        return task.merge is None and any(
            not isinstance(row.content, Outcome) and row.content.document_id in self.poison
            for row in self._rows(task.shard)
        )

    def _lose(self, driver: _Driver, assignment: Assignment, *, is_zombie: bool) -> None:
        lost = [assignment, *(held for held in driver.held if held.worker_id == assignment.worker_id)]
        driver.held = [held for held in driver.held if held.worker_id != assignment.worker_id]
        if is_zombie:
            self.zombies += [(held.task, _attempt(driver, held)) for held in lost]
        driver.living.remove(assignment.worker_id)
        driver.dispatcher.lost(assignment.worker_id, EngineDeadError("killed"), driver.now)

    def _picked(self, pick: int) -> tuple[_Driver, Assignment]:
        holding = [driver for driver in self.drivers if driver.held]
        driver = holding[pick % len(holding)]
        return driver, driver.held.pop(pick % len(driver.held))

    def _parts(self) -> list[str]:
        found = (shard_id_of(item.uri) for item in self.store.list_prefix(LAYOUT.parts_prefix))
        return [shard_id for shard_id in found if shard_id is not None]

    def _rows(self, shard: Shard) -> list[Row]:
        return list(rows_of(shard, self.reader.read, document_bytes=1000))

    def _carry_out(self, task: Task, attempt: str, *, is_late: bool = False) -> Tally:
        """What the worker itself does, over a played engine."""
        settings: Any = SimpleNamespace(spec=SimpleNamespace(limits=LimitsSpec()))
        worker: Any = Worker(settings, 1)
        worker._committer = self.committer
        if is_late:  # it looks, and then another one is quicker
            committer = self.committer
            worker._committer = SimpleNamespace(
                standing=lambda task: None, commit=committer.commit, merge=committer.merge
            )
        worker._work = _PlayedWork(self, may_stand=is_late)
        worker._metrics = SimpleNamespace(shard_committed=lambda wall_s: None)
        return asyncio.run(worker._attempt(task, attempt)).tally


TestRuns = Runs.TestCase
TestRuns.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
