"""Owns the Ray side of the driver: actors as workers, their answers as events, and every wait for one bounded.

Ray's errors become ours here, by type.  Nothing is decided here.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import ray
import ray.exceptions
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from pipeline.core.errors import ClusterError, EngineDeadError, EngineError, EngineStartError, RecordmillError
from pipeline.core.sections import ClusterSpec, LimitsSpec
from pipeline.run.capacity import engines_that_fit, missing, need_of
from pipeline.run.last_words import last_words
from pipeline.run.messages import (
    Event,
    Failed,
    Finished,
    Lost,
    Placed,
    Setup,
    StartFailed,
    Summary,
    Unplaced,
    WorkerReady,
)
from pipeline.run.task import Assignment
from pipeline.run.worker import Worker

__all__ = ["RayCluster", "folder_of_workers", "ray_connection"]

logger = logging.getLogger(__name__)

GET_S = 30.0
"""For an answer that Ray says is there."""
START_GRACE_S = 60.0
LISTEN_EVERY_S = 2.0
OBJECT_STORE_BYTES = 256 * 1024 * 1024
"""Of a local run: it holds the guide and nothing that grows."""


@contextmanager
def ray_connection(address: str | None) -> Iterator[bool]:
    """Connects to a cluster, or starts one on this machine; yields whether it is this machine's own.

    Args:
        address: a Ray address, `auto` inside `ray job submit`, or None for a cluster of this run alone.

    Raises:
        ClusterError: there is no cluster at the address, or none could be started.
    """
    is_local = address is None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.WARNING}
    if is_local:
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    try:
        ray.init(address="local" if is_local else address, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError, ray.exceptions.RayError) as error:
        where = "on this machine" if is_local else f"at {address}"
        raise ClusterError(f"no Ray cluster {where}: {type(error).__name__}: {error}") from error
    try:
        yield is_local
    finally:
        ray.shutdown()


def folder_of_workers(base: Path) -> str:
    """Where a worker finds the job's folder: at the same path as the driver, or in its machine's copy.

    Ray makes copies where the job has a working directory to send (`ray job submit --working-dir`); a worker of such a
    job works in its machine's.  Without one, a worker works wherever its machine's Ray was started.
    """
    return "." if ray.get_runtime_context().runtime_env.get("working_dir") else str(base.resolve())


@dataclass(slots=True)
class _Actor:
    handle: Any
    places: PlacementGroup | None = None
    """Of the engine's ranks, where it has several."""
    machine: str = "a machine that is not known"
    """Where it has its place."""
    is_ready: bool = False
    documents: dict[str, int] = field(default_factory=dict)
    """Of each task that it holds, those done, as last heard."""


@dataclass(frozen=True, slots=True)
class _Call:
    worker_id: str
    kind: Literal["hello", "start", "attempt", "listen"]
    task_id: str
    deadline: float


class RayCluster:
    """Workers as Ray actors.  They are never restarted by Ray, nor their calls repeated: the driver does both."""

    def __init__(
        self, cluster: ClusterSpec, limits: LimitsSpec, setup: Setup, guide: bytes | None, *, is_local: bool
    ) -> None:
        """Args:
        setup: what every worker is told.
        guide: the guide's bytes, broadcast through the object store; each machine keeps one copy.
        is_local: whether the cluster is this run's own, and so can never grow.
        """
        self._need = need_of(cluster, setup.spec.model)
        self._wait_s = cluster.wait_s
        self._limits = limits
        self._is_local = is_local
        self._setup = ray.put(setup)
        self._guide = None if guide is None else ray.put(np.frombuffer(guide, np.uint8))
        self._actor_class = ray.remote(
            num_cpus=self._need.cpus,
            num_gpus=self._need.gpus if self._need.ranks == 1 else 0,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=16,
        )(Worker)
        self._actors: dict[str, _Actor] = {}
        self._calls: dict[Any, _Call] = {}
        self._numbers = itertools.count(1)
        self._listened_at = 0.0

    def fits(self) -> int:
        """How many workers the cluster's machines hold."""
        return engines_that_fit(_machines(), self._need)

    def start_worker(self, concurrency: int) -> str:
        """See `driver.Cluster`."""
        worker_id = f"w{next(self._numbers)}"
        places = self._places()
        actor_class = self._actor_class
        if places is not None:
            # The worker takes no GPU itself: vLLM puts a process of its own into each place.
            actor_class = actor_class.options(scheduling_strategy=PlacementGroupSchedulingStrategy(places, 0, True))
        handle = actor_class.remote(self._setup, concurrency)
        now = time.monotonic()
        self._actors[worker_id] = _Actor(handle, places)
        wait_s = 0.0 if self._is_local and not self.fits() else self._wait_s
        self._calls[handle.hello.remote()] = _Call(worker_id, "hello", "", now + wait_s)
        return worker_id

    def _places(self) -> PlacementGroup | None:
        """Room for the ranks of one engine, on as few machines as there are; None where it has but one rank."""
        return placement_group(self._need.bundles, strategy="PACK") if self._need.ranks > 1 else None

    def submit(self, assignment: Assignment) -> None:
        """See `driver.Cluster`."""
        actor = self._actors[assignment.worker_id]
        actor.documents[assignment.task.task_id] = 0
        # Two tasks share a worker, so one may wait for the other.
        deadline = time.monotonic() + 2 * self._limits.shard_s + self._limits.engine_silence_s + START_GRACE_S
        reference = actor.handle.attempt.remote(assignment.task, assignment.attempt)
        self._calls[reference] = _Call(assignment.worker_id, "attempt", assignment.task.task_id, deadline)

    def kill(self, worker_id: str) -> None:
        """See `driver.Cluster`."""
        actor = self._actors.pop(worker_id, None)
        if actor is not None:
            self._calls = {ref: call for ref, call in self._calls.items() if call.worker_id != worker_id}
            ray.kill(actor.handle, no_restart=True)
            if actor.places is not None:
                remove_placement_group(actor.places)

    def close(self) -> None:
        """Ends every worker."""
        for worker_id in list(self._actors):
            self.kill(worker_id)

    def documents_working(self) -> dict[str, int]:
        """See `driver.Cluster`."""
        done: dict[str, int] = {}
        for actor in self._actors.values():
            for task_id, documents in actor.documents.items():
                done[task_id] = max(documents, done.get(task_id, 0))
        return done

    def wait(self, timeout_s: float) -> list[Event]:
        """See `driver.Cluster`."""
        self._listen()
        if not self._calls:
            time.sleep(timeout_s)
            return []
        ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=timeout_s, fetch_local=True)
        if ready:
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0, fetch_local=True)
        events = [event for ref in ready if (event := self._answered(ref)) is not None]
        return events + self._overdue()

    def _listen(self) -> None:
        """Asks ready workers how far they are; one that does not answer in time is lost."""
        now = time.monotonic()
        if now - self._listened_at < max(LISTEN_EVERY_S, len(self._actors) / 100):
            return
        self._listened_at = now
        listening = {call.worker_id for call in self._calls.values() if call.kind == "listen"}
        for worker_id, actor in self._actors.items():
            if actor.is_ready and worker_id not in listening:
                deadline = now + self._limits.engine_silence_s + START_GRACE_S
                self._calls[actor.handle.documents_working.remote()] = _Call(worker_id, "listen", "", deadline)

    def _answered(self, reference: Any) -> Event | None:
        call = self._calls.pop(reference, None)
        if call is None:
            return None
        machine = self._actors[call.worker_id].machine
        try:
            answer = ray.get(reference, timeout=GET_S)
        except ray.exceptions.RayTaskError as error:
            return self._gave_out(call, ClusterError(f"worker {call.worker_id}: {_first_line(error.cause)}"))
        except ray.exceptions.OutOfMemoryError:
            return self._gave_out(
                call, EngineDeadError(f"the worker's machine, {machine}, ran out of memory"), is_memory=True
            )
        except ray.exceptions.RayActorError as error:
            died = EngineDeadError(f"the worker on {machine} died: {last_words(error, is_local=self._is_local)}")
            return self._gave_out(call, died, is_preempted=bool(error.preempted))
        except ray.exceptions.RayError as error:
            words = last_words(error, is_local=self._is_local)
            return self._gave_out(call, ClusterError(f"Ray lost an answer of the worker on {machine}: {words}"))
        return self._said(call, answer)

    def _said(self, call: _Call, answer: object) -> Event | None:
        """What a worker's own answer means; `RecordmillError` values are failures."""
        actor = self._actors[call.worker_id]
        match call.kind:
            case "listen":
                heard = answer if isinstance(answer, dict) else {}
                # An attempt's own answer may come after one that does not know it any more.
                actor.documents = {name: max(done, heard.get(name, 0)) for name, done in actor.documents.items()}
                return None
            case "hello":
                deadline = time.monotonic() + self._limits.engine_start_s + START_GRACE_S
                self._calls[actor.handle.start.remote(self._guide)] = _Call(call.worker_id, "start", "", deadline)
                actor.machine = str(answer)
                return Placed(call.worker_id, actor.machine)
            case "start":
                if isinstance(answer, RecordmillError):
                    return self._gave_out(call, answer)
                actor.is_ready = True
                return WorkerReady(call.worker_id, str(answer))
            case "attempt":
                actor.documents.pop(call.task_id, None)
                if isinstance(answer, Summary):
                    return Finished(call.worker_id, answer)
                if isinstance(answer, EngineDeadError) or not isinstance(answer, RecordmillError):
                    error = answer if isinstance(answer, RecordmillError) else EngineError("no answer of ours")
                    return self._gave_out(call, error)
                return Failed(call.worker_id, call.task_id, answer)

    def _gave_out(
        self, call: _Call, error: RecordmillError, *, is_memory: bool = False, is_preempted: bool = False
    ) -> Event:
        """Ends a worker that cannot go on, and says so once, however many of its calls were open."""
        was_ready = self._actors[call.worker_id].is_ready
        self.kill(call.worker_id)
        if was_ready:
            return Lost(call.worker_id, error, is_memory, is_preempted)
        return StartFailed(call.worker_id, error)

    def _overdue(self) -> list[Event]:
        now = time.monotonic()
        events: list[Event] = []
        for call in [call for call in self._calls.values() if call.deadline < now]:
            if call.worker_id not in self._actors:
                continue
            match call.kind:
                case "hello":
                    reason = missing(_machines(), self._need)
                    self.kill(call.worker_id)
                    events.append(Unplaced(call.worker_id, reason))
                case "start":
                    late = EngineStartError(f"the engine was not ready after {self._limits.engine_start_s:g} s")
                    events.append(self._gave_out(call, late))
                case "attempt" | "listen":
                    machine = self._actors[call.worker_id].machine
                    error = EngineDeadError(f"the worker on {machine} does not answer any more")
                    events.append(self._gave_out(call, error))
        return events


def _machines() -> list[dict[str, float]]:
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _first_line(error: object) -> str:
    text = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {text[0][:200]}"
