"""What vLLM says of each of its steps: the watchdog's sign of life, and the counters of an engine.

vLLM tells stat loggers of every step, also when a request's output is wanted only at its end, so that no step of the
decode loop wakes the coroutine of each request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vllm.v1.metrics.loggers import PrometheusStatLogger

from pipeline.engine.wire import MASK_NS

__all__ = ["EngineCounters", "stat_logger"]


@dataclass(slots=True)
class EngineCounters:
    """Totals since the engine's start, and the last step's gauges.

    `steps` leaves out turns of the engine that did nothing for a request, as those in which every request that waits
    still waits for its guide: how many they are follows from the machine and not from the work.
    """

    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    preemptions: int = 0
    running: int = 0
    running_peak: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0
    kv_cache_usage_peak: float = 0.0
    mask_s: float = 0.0
    """Filling masks, where the scheduler is one of ours that measures it."""

    def step(self, scheduler: Any, iteration: Any) -> bool:
        """Adds one step up.

        Args:
            scheduler: vLLM's `SchedulerStats`, or None.
            iteration: vLLM's `IterationStats`, or None for a step that gave no output.

        Returns:
            Whether the step did anything for a request: gave tokens, or filled a part of the cache.
        """
        moved = False
        if iteration is not None:
            self.prompt_tokens += iteration.prompt_token_stats.total
            self.cached_tokens += iteration.prompt_token_stats.cached_tokens
            self.output_tokens += iteration.num_generation_tokens
            self.preemptions += iteration.num_preempted_reqs
            moved = True
        if scheduler is not None:
            moved |= scheduler.kv_cache_usage != self.kv_cache_usage
            self.kv_cache_usage = scheduler.kv_cache_usage
            self.running, self.waiting = scheduler.num_running_reqs, scheduler.num_waiting_reqs
            self.running_peak = max(self.running_peak, self.running)
            self.kv_cache_usage_peak = max(self.kv_cache_usage_peak, self.kv_cache_usage)
            stages = getattr(scheduler, "num_kv_fetch_reqs_by_stage", None) or {}
            self.mask_s = stages.get(MASK_NS, 0) / 1e9 or self.mask_s
        self.steps += moved
        return moved


def stat_logger(counters: EngineCounters, on_progress: Callable[[], None]) -> type[PrometheusStatLogger]:
    """A stat logger class for `AsyncLLM(stat_loggers=[...])`.

    It derives from vLLM's Prometheus logger, and sets nothing of it up, because vLLM adds that one to any list that
    has none: its histograms cost more a step than all of the rest, and clash when a process starts a second engine.
    """

    class _Counting(PrometheusStatLogger):  # type: ignore[misc]
        def __init__(self, vllm_config: Any, engine_indexes: list[int] | None = None) -> None:
            self.engine_indexes = engine_indexes

        def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
            if counters.step(scheduler_stats, iteration_stats):
                on_progress()

        def log_engine_initialized(self) -> None: ...

        def record_admission_rejection(self, reason: str) -> None: ...

        def record_sleep_state(self, sleep: int = 0, level: int = 0) -> None: ...

    return _Counting
