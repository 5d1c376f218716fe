"""What masks take: measured around the fill of a batch, and told with the statistics of each step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm")

from vllm.v1.metrics.stats import SchedulerStats

from pipeline.engine import scheduler
from pipeline.engine.scheduler import MeasuredAsyncScheduler, MeasuredScheduler, _Measured
from pipeline.engine.vllm_args import scheduler_name
from pipeline.engine.vllm_progress import EngineCounters

pytestmark = pytest.mark.slow


class Played:
    """A scheduler whose batches take two of the clock's seconds; None for one of no guided request."""

    log_stats = True

    def get_grammar_bitmask(self, scheduler_output: Any) -> str | None:
        CLOCK.now += 2 * 10**9
        return f"bits of {scheduler_output}" if scheduler_output else None

    def make_stats(self) -> SchedulerStats | None:
        return SchedulerStats(num_running_reqs=3) if self.log_stats else None


class MeasuredPlayed(_Measured, Played):
    pass


CLOCK = SimpleNamespace(now=0, perf_counter_ns=lambda: CLOCK.now)


def test_the_time_of_every_batch_arrives_at_the_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "time", CLOCK)
    played, counters = MeasuredPlayed(), EngineCounters()
    assert played.get_grammar_bitmask("a") == "bits of a"
    CLOCK.now += 10**9
    played.get_grammar_bitmask("b")
    assert played.get_grammar_bitmask("") is None
    counters.step(played.make_stats(), None)
    assert (counters.mask_s, counters.running) == (4, 3)
    counters.step(SchedulerStats(), None)
    counters.step(SimpleNamespace(kv_cache_usage=0, num_running_reqs=0, num_waiting_reqs=0), None)
    assert counters.mask_s == 4
    played.log_stats = False
    assert played.make_stats() is None


@pytest.mark.parametrize(("is_async", "chosen"), [(False, MeasuredScheduler), (True, MeasuredAsyncScheduler)])
def test_only_an_engine_of_ours_measures(is_async: bool, chosen: type) -> None:
    """vLLM's own stat loggers would take the time for a stage of fetching."""
    assert scheduler_name(is_async=is_async, is_measured=True) == f"{chosen.__module__}.{chosen.__name__}"
    assert "Guided" in scheduler_name(is_async=is_async)
