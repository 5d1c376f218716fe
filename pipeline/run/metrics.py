"""Owns what a monitoring system is told of a run: the names, units and tags of its metrics, and when they move.

Ray carries them: every machine serves those of its own processes to Prometheus, with `ray_` before the name and
`_total` after a counter's.  `infra/grafana/recordmill.json` draws them.  Nothing in the run depends on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ray.util.metrics import Counter, Gauge, Histogram

from pipeline.engine.base import Completion, Engine, EngineMetrics, Request
from pipeline.report.use import EngineUse
from pipeline.run.ledger import Tally
from pipeline.run.progress import Progress, Snapshot
from pipeline.run.use import UseClock

__all__ = ["METRICS", "MeteredEngine", "Metric", "WorkerMetrics", "with_metrics"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; every one has the tag `run`, the job's name, beside its own."""

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    description: str
    tags: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    """Of a histogram: the upper ends of its bins."""

    @property
    def exported(self) -> str:
        """The name that Prometheus sees; a histogram's is followed by `_bucket`, `_count` or `_sum`."""
        return f"ray_{self.name}_total" if self.kind == "counter" else f"ray_{self.name}"


DOCUMENTS = Metric("counter", "recordmill_documents", "Documents whose outcome is committed", tags=("status", "cause"))
PLANNED = Metric("gauge", "recordmill_documents_planned", "Documents of the run's plan")
COMMITTED = Metric("gauge", "recordmill_documents_committed", "Those with an outcome, of earlier submissions too")
ENGINES = Metric("gauge", "recordmill_engines", "Engines by state: ready, and wanted in all", tags=("state",))
TOKENS = Metric("counter", "recordmill_tokens", "Tokens by kind: prompt, cached (a part of prompt), output", ("kind",))
IN_FLIGHT = Metric("gauge", "recordmill_requests_in_flight", "Requests in one engine")
IDLE = Metric("counter", "recordmill_engine_idle_seconds", "Seconds an engine had no request since its first one")
SHARD = Metric(
    "histogram",
    "recordmill_shard_seconds",
    "Seconds from a shard's first document to its commit",
    boundaries=(1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0),
)

METRICS = (DOCUMENTS, PLANNED, COMMITTED, ENGINES, TOKENS, IN_FLIGHT, IDLE, SHARD)
"""All of them."""


class _Meter:
    """One metric of one run in this process."""

    def __init__(self, metric: Metric, run: str) -> None:
        self._kind = metric.kind
        keys = ("run", *metric.tags)
        made: Any
        match metric.kind:
            case "counter":
                made = Counter(metric.name, metric.description, keys)
            case "gauge":
                made = Gauge(metric.name, metric.description, keys)
            case "histogram":
                made = Histogram(metric.name, metric.description, list(metric.boundaries), keys)
        self._made = made.set_default_tags({"run": run})

    def tell(self, value: float, tags: Mapping[str, str] | None = None) -> None:
        """Adds to a counter, sets a gauge, puts a value into a histogram."""
        match self._kind:
            case "counter":
                if value > 0:
                    self._made.inc(value, tags=tags)
            case "gauge":
                self._made.set(value, tags=tags)
            case "histogram":
                self._made.observe(value, tags=tags)


def with_metrics(progress: Progress, run: str) -> Progress:
    """A progress that tells the driver's metrics what it is told, and then `progress`.  Needs Ray to be up."""
    driver = _DriverMetrics(run)

    def both(snapshot: Snapshot) -> None:
        driver(snapshot)
        progress(snapshot)

    return both


class _DriverMetrics:
    """The driver's metrics; counters rise by what the tally has gained since the last snapshot."""

    def __init__(self, run: str) -> None:
        self._documents = _Meter(DOCUMENTS, run)
        self._planned = _Meter(PLANNED, run)
        self._committed = _Meter(COMMITTED, run)
        self._engines = _Meter(ENGINES, run)
        self._told = Tally()

    def __call__(self, snapshot: Snapshot) -> None:
        for (status, cause), count in snapshot.tally.counts.items():
            gained = count - self._told.counts.get((status, cause), 0)
            self._documents.tell(gained, {"status": status.value, "cause": "none" if cause is None else cause.value})
        self._told = snapshot.tally
        self._planned.tell(snapshot.documents_planned)
        self._committed.tell(snapshot.documents)
        self._engines.tell(snapshot.engines_ready, {"state": "ready"})
        self._engines.tell(snapshot.engines_wanted, {"state": "wanted"})


class WorkerMetrics:
    """The metrics of one worker that do not belong to its engine."""

    def __init__(self, run: str) -> None:
        self._shard = _Meter(SHARD, run)

    def shard_committed(self, wall_s: float) -> None:
        self._shard.tell(wall_s)


class MeteredEngine:
    """An engine whose requests are counted."""

    def __init__(self, engine: Engine, run: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.use = UseClock(clock)
        self._engine = engine
        self._clock = clock
        self._mask_s = 0.0
        self._in_flight = 0
        self._idle_since: float | None = None
        self._tokens = _Meter(TOKENS, run)
        self._flying = _Meter(IN_FLIGHT, run)
        self._idle = _Meter(IDLE, run)

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def max_model_len(self) -> int:
        return self._engine.max_model_len

    async def generate(self, request: Request) -> Completion:
        """See `Engine.generate`."""
        self._enter()
        try:
            completion = await self._engine.generate(request)
        finally:
            self._leave()
        self._tokens.tell(len(request.prompt_ids), {"kind": "prompt"})
        self._tokens.tell(completion.cached_tokens, {"kind": "cached"})
        self._tokens.tell(len(completion.token_ids), {"kind": "output"})
        return completion

    def tell_idle(self) -> None:
        """Counts the time without a request up to now; called now and then, so that an idle engine is seen as one."""
        if self._idle_since is not None:
            now = self._clock()
            self._idle.tell(now - self._idle_since)
            self._idle_since = now

    def metrics(self) -> EngineMetrics:
        return self._engine.metrics()

    def take_use(self) -> EngineUse:
        """What the engine's time went into that was not taken yet; masks take 0 where they are not measured."""
        total = self._engine.metrics().values.get("mask_s", 0.0)
        taken, self._mask_s = total - self._mask_s, total
        return replace(self.use.take(), mask_s=taken)

    async def close(self) -> None:
        await self._engine.close()

    def _enter(self) -> None:
        self.use.enter()
        self.tell_idle()
        self._idle_since = None
        self._in_flight += 1
        self._flying.tell(self._in_flight)

    def _leave(self) -> None:
        self.use.leave()
        self._in_flight -= 1
        self._flying.tell(self._in_flight)
        if not self._in_flight:
            self._idle_since = self._clock()
