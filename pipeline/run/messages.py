"""Owns what crosses between the driver and its workers: small picklable values, never rows of documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.core.errors import RecordmillError
from pipeline.core.spec import JobSpec
from pipeline.engine.base import Engine
from pipeline.report.use import EngineUse
from pipeline.run.ledger import Tally

__all__ = [
    "EngineContext",
    "EngineFactory",
    "Event",
    "Failed",
    "Finished",
    "Lost",
    "Placed",
    "Setup",
    "StartFailed",
    "Summary",
    "Unplaced",
    "WorkerReady",
]


@dataclass(frozen=True, slots=True)
class EngineContext:
    """What an engine is started from, on the worker's machine."""

    spec: JobSpec
    guides: Mapping[str, str]
    """Path of each guide's file, by fingerprint; empty where the job has none."""


EngineFactory = Callable[[EngineContext], Awaitable[Engine]]
"""Starts an engine in a worker.  It must be picklable by name."""


@dataclass(frozen=True, slots=True)
class Setup:
    """All a worker needs to know, the guide's bytes apart."""

    spec: JobSpec
    base: str
    """The job's folder, where the machine has it."""
    record_digest: str
    """Of the record model's JSON Schema, by which a worker knows that it has imported another class."""
    template: str | None
    """The prompt template's text."""
    fingerprint: str
    """Of the run."""
    guide_fingerprint: str | None
    submission_id: str
    factory: EngineFactory
    schema: pa.Schema
    """Of every part."""
    import_paths: tuple[str, ...] = ()
    """The driver's `sys.path`, for workers on its own machine: what it imported is what they import."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a worker says of a finished task."""

    task_id: str
    tally: Tally
    is_ours: bool
    """Whether this attempt's object is the one that stands."""
    wall_s: float
    use: EngineUse = field(default_factory=EngineUse)
    """Of the engine, since the summary before."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A worker that was asked for has found room, and starts its engine."""

    worker_id: str
    machine: str
    """Its address and the worker's process there, for people."""


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker's engine serves; `engine` is its name."""

    worker_id: str
    engine: str


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The cluster had no room for a worker in time."""

    worker_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class StartFailed:
    """A worker that was asked for is gone before its engine served."""

    worker_id: str
    error: RecordmillError


@dataclass(frozen=True, slots=True)
class Finished:
    """A task's rows are committed, by this worker or another."""

    worker_id: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt failed; its worker lives."""

    worker_id: str
    task_id: str
    error: RecordmillError


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker that was ready is gone, and what it was doing with it."""

    worker_id: str
    error: RecordmillError
    is_memory: bool = False
    """Whether its machine ran out of memory."""
    is_preempted: bool = False
    """Whether its machine was taken away, so that nothing it ran is to blame."""


Event = Placed | WorkerReady | Unplaced | StartFailed | Finished | Failed | Lost
