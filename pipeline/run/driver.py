"""Owns the loop of one submission: hand out, listen, replace, stop.  It decides nothing that `dispatch` or `fleet` can.

What a cluster is, it knows by a protocol alone, so the loop can be run against a simulated one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, assert_never

from pipeline.core.errors import (
    ClusterError,
    EngineDeadError,
    EngineStartError,
    InterruptedRunError,
    LimitReachedError,
    RecordmillError,
    StorageError,
)
from pipeline.report.use import EngineUse
from pipeline.run.dispatch import Dispatcher
from pipeline.run.fleet import Fleet
from pipeline.run.ledger import Ledger, StopRule
from pipeline.run.messages import Event, Failed, Finished, Lost, Placed, StartFailed, Unplaced, WorkerReady
from pipeline.run.progress import Phase, Progress, Snapshot
from pipeline.run.stop import StopFlag
from pipeline.run.task import Assignment

__all__ = ["Cluster", "Driver"]

logger = logging.getLogger(__name__)

TICK_S = 0.25
REPORT_EVERY_S = 0.5
FIT_EVERY_S = 10.0


class Cluster(Protocol):
    """Workers by id, on whatever runs them.  No call blocks for longer than it says."""

    def fits(self) -> int:
        """How many workers the cluster has room for, those that run included."""

    def start_worker(self, concurrency: int) -> str:
        """Asks for a worker; an event tells what became of it."""

    def submit(self, assignment: Assignment) -> None:
        """Hands a task to a ready worker."""

    def kill(self, worker_id: str) -> None:
        """Ends a worker at once; no event of it follows."""

    def wait(self, timeout_s: float) -> list[Event]:
        """What happened, as soon as something did; empty after the time."""

    def documents_working(self) -> dict[str, int]:
        """Of each task that a worker holds, the documents done, as last heard."""


@dataclass(slots=True)
class _Lasts:
    report_at: float = float("-inf")
    fit_at: float = float("-inf")
    start_error: RecordmillError | None = None
    trouble: RecordmillError | None = None
    """What the last worker died of, or why it did not start."""
    unplaced: str | None = None
    """Why the last worker that was asked for found no room, unless one has made room since."""


class Driver:
    """Works through the pending shards of a ledger."""

    def __init__(
        self,
        run: str,
        ledger: Ledger,
        dispatcher: Dispatcher,
        fleet: Fleet,
        cluster: Cluster,
        *,
        stop_rule: StopRule,
        stop: StopFlag,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:
        run: the job's name, for the log.
        clock: seconds, rising.
        """
        self._run = run
        self._ledger = ledger
        self._dispatcher = dispatcher
        self._fleet = fleet
        self._cluster = cluster
        self._stop_rule = stop_rule
        self._stop = stop
        self._progress = progress
        self._clock = clock
        self._started_at = clock()
        self._last = _Lasts()
        self._coming: set[str] = set()
        """Workers that have found room and are not ready."""
        self._concurrency: dict[str, int] = {}
        """Of each worker that was ever asked for."""
        self.use = EngineUse()
        """Of all engines, up to their last commits."""

    def run(self) -> None:
        """Returns when every pending shard is committed or given up.

        Raises:
            InterruptedRunError: it was told to stop.
            LimitReachedError: `limits.stop_if_valid_below` stopped it.
            StorageError: the store gave out, for every attempt at one shard.
            ClusterError, EngineError: no worker could be had or kept.
            VerificationError: a part contradicts the plan.
        """
        while not self._dispatcher.is_finished:
            self._check_stop()
            self._grow()
            for assignment in self._dispatcher.assign(self._clock(), len(self._coming)):
                self._cluster.submit(assignment)
                self._log("started", assignment.task.task_id, assignment.worker_id, f"attempt={assignment.attempt}")
            for worker_id in self._dispatcher.unneeded():
                self._dismiss(worker_id)
            events = self._cluster.wait(self._patience_s())
            for event in events:
                self._handle(event)
            # When all of them are heard: one that is replaced may have said more than that it failed.
            for worker_id in dict.fromkeys(event.worker_id for event in events if isinstance(event, Failed)):
                self._replace_failing(worker_id)
            self._report("extract")
        self._report("extract", is_last=True)

    def _check_stop(self) -> None:
        if self._stop.reason is not None:
            raise InterruptedRunError(f"run {self._run} was stopped by {self._stop.reason}")
        tally = self._ledger.sample_tally
        if (verdict := self._stop_rule.verdict(tally.documents, tally.records)) is not None:
            raise LimitReachedError(f"run {self._run}: {verdict}")

    def _patience_s(self) -> float:
        due = self._dispatcher.next_due()
        return TICK_S if due is None else max(0.0, min(TICK_S, due - self._clock()))

    def _grow(self) -> None:
        """Asks for the workers that are missing, and gives up where there is no hope."""
        fleet, now = self._fleet, self._clock()
        # Where the job says how many, those are asked for first, so that an autoscaler makes room for them.
        if now - self._last.fit_at >= FIT_EVERY_S and (fleet.most is None or fleet.ready):
            self._last.fit_at = now
            fleet.has_room(self._cluster.fits())
        if (reason := fleet.reason_to_give_up()) is not None:
            if self._last.start_error is not None and not fleet.has_worked:
                raise self._last.start_error
            raise EngineDeadError(f"run {self._run}: {reason}; the last: {self._last.trouble}")
        if fleet.ready == 0 and fleet.starting == 0 and self._last.unplaced is not None:
            raise ClusterError(self._last.unplaced)
        for _ in range(fleet.to_start(self._dispatcher.open_tasks)):
            fleet.starting += 1
            self._concurrency[self._cluster.start_worker(fleet.concurrency)] = fleet.concurrency

    def _handle(self, event: Event) -> None:
        match event:
            case Placed():
                self._coming.add(event.worker_id)
                logger.info("run=%s worker=%s placed on %s", self._run, event.worker_id, event.machine)
            case WorkerReady():
                self._coming.discard(event.worker_id)
                self._fleet.started()
                self._dispatcher.add_worker(event.worker_id)
                logger.info("run=%s worker=%s ready engine=%s", self._run, event.worker_id, event.engine)
            case Unplaced():
                self._fleet.unplaced(len(self._coming))
                self._last.unplaced = event.reason
                logger.warning("run=%s worker=%s not placed: %s", self._run, event.worker_id, event.reason)
            case StartFailed():
                self._start_failed(event)
            case Finished():
                self._finished(event)
            case Failed():
                self._failed(event)
            case Lost():
                self._lost(event)
            case _:
                assert_never(event)

    def _start_failed(self, event: StartFailed) -> None:
        wanted = self._fleet.wanted
        self._coming.discard(event.worker_id)
        self._fleet.start_failed()
        if self._fleet.wanted < wanted:
            logger.warning("run=%s goes on with %d workers: the others do not start", self._run, self._fleet.wanted)
        self._last.unplaced = None
        self._last.start_error = self._last.trouble = event.error
        logger.error("run=%s worker=%s did not start: %s", self._run, event.worker_id, event.error)
        if isinstance(event.error, EngineStartError) and self._fleet.cannot_start:
            raise event.error

    def _finished(self, event: Finished) -> None:
        summary = event.summary
        root_id = self._dispatcher.finished(event.worker_id, summary.task_id, is_ours=summary.is_ours)
        self._fleet.progressed()
        if root_id is not None:
            self._ledger.commit(root_id, summary.tally)
        use = summary.use
        self.use = self.use.plus(use)
        outcomes = " ".join(f"{status}={count}" for status, count in summary.tally.by_status().items() if count)
        self._log(
            "committed" if summary.is_ours else "found committed",
            summary.task_id,
            event.worker_id,
            f"{outcomes} wall_s={summary.wall_s:.1f} put_s={use.put_s:.2f} "
            f"engine_wall_s={use.wall_s:.1f} engine_busy_s={use.busy_s:.1f}",
        )

    def _failed(self, event: Failed) -> None:
        """Retries, unless the store gave out."""
        logger.warning(
            "run=%s shard=%s worker=%s failed error=%s", self._run, event.task_id, event.worker_id, event.error
        )
        root_id = self._dispatcher.failed(event.worker_id, event.task_id, event.error, self._clock())
        if isinstance(event.error, StorageError) and (
            root_id in self._dispatcher.given_up or not event.error.retryable
        ):
            raise event.error

    def _replace_failing(self, worker_id: str) -> None:
        """Ends a worker that fails again and again, for another to come."""
        if self._fleet.must_replace(self._dispatcher.failures_in_a_row(worker_id)):
            self._cluster.kill(worker_id)
            self._dispatcher.released(worker_id)
            self._fleet.retired()
            self._last.unplaced = None
            logger.warning("run=%s worker=%s replaced: its attempts fail", self._run, worker_id)

    def _dismiss(self, worker_id: str) -> None:
        """Gives back what a worker holds of the cluster, while others finish."""
        self._cluster.kill(worker_id)
        self._dispatcher.released(worker_id)
        self._fleet.dismissed()
        self._last.unplaced = None
        logger.info("run=%s worker=%s dismissed: there is nothing left for it", self._run, worker_id)

    def _lost(self, event: Lost) -> None:
        before = self._fleet.concurrency
        out_of_memory_at = self._concurrency[event.worker_id] if event.is_memory else None
        self._fleet.lost(out_of_memory_at=out_of_memory_at, is_preempted=event.is_preempted)
        self._last.trouble = event.error
        self._last.unplaced = None
        if event.is_preempted:
            tasks = self._dispatcher.released(event.worker_id)
        else:
            tasks = self._dispatcher.lost(event.worker_id, event.error, self._clock())
        logger.warning(
            "run=%s worker=%s lost tasks=%s error=%s", self._run, event.worker_id, ",".join(tasks), event.error
        )
        if self._fleet.concurrency < before:
            logger.warning("run=%s starts workers with concurrency %d from now on", self._run, self._fleet.concurrency)

    def _log(self, what: str, task_id: str, worker_id: str, rest: str) -> None:
        logger.info("run=%s shard=%s worker=%s %s %s", self._run, task_id, worker_id, what, rest)

    def _report(self, phase: Phase, *, is_last: bool = False) -> None:
        now = self._clock()
        if is_last or now - self._last.report_at >= REPORT_EVERY_S:
            self._last.report_at = now
            self._progress(self.snapshot(phase))

    def _documents_working(self) -> int:
        """Documents done in shards that are not committed: the same ones, until these are."""
        working, done = self._cluster.documents_working(), self._dispatcher.done
        return self._dispatcher.documents_in_halves + sum(
            documents for task_id, documents in working.items() if task_id not in done
        )

    def snapshot(self, phase: Phase) -> Snapshot:
        """The run as it stands."""
        ledger = self._ledger
        return Snapshot(
            phase=phase,
            shards_planned=len(ledger.shards),
            shards_done=ledger.shards_done,
            documents_planned=ledger.documents_planned,
            documents=ledger.documents,
            documents_working=self._documents_working(),
            engines_ready=self._fleet.ready,
            engines_wanted=min(self._fleet.wanted, max(self._fleet.ready, self._dispatcher.open_tasks)),
            tally=ledger.tally,
            elapsed_s=self._clock() - self._started_at,
            documents_at_start=ledger.documents_at_start,
        )
