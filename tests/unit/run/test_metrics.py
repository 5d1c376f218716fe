"""What a run tells its monitoring: counters that rise by what is new, and idle time that is really idle."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

import pytest

from pipeline.core.errors import RequestRefusedError
from pipeline.core.outcome import Cause, Status
from pipeline.engine.base import Completion, EngineMetrics, Request
from pipeline.run import metrics
from pipeline.run.ledger import Tally
from pipeline.run.metrics import MeteredEngine, Metric, with_metrics
from pipeline.run.progress import Snapshot

Told = dict[str, dict[tuple[str, ...], list[float]]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Every value that is told, by metric and tags, instead of telling Ray."""
    values: Told = defaultdict(lambda: defaultdict(list))

    class Recorder:
        def __init__(self, metric: Metric, run: str) -> None:
            self.name = metric.name.removeprefix("recordmill_")

        def tell(self, value: float, tags: Mapping[str, str] | None = None) -> None:
            values[self.name][tuple((tags or {}).values())].append(value)

    monkeypatch.setattr(metrics, "_Meter", Recorder)
    return values


class HeldEngine:
    """Answers when it is let go."""

    name = "held"
    max_model_len = 100

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.values: dict[str, float] = {}

    async def generate(self, request: Request) -> Completion:
        await self.gate.wait()
        if request.request_id == "refused":
            raise RequestRefusedError("no")
        return Completion((1, 2, 3), "abc", "stop", cached_tokens=4)

    def metrics(self) -> EngineMetrics:
        return EngineMetrics(self.values)

    async def close(self) -> None:
        return None


def test_documents_are_counted_once_however_often_a_snapshot_comes(told: Told) -> None:
    seen: list[Snapshot] = []
    progress = with_metrics(seen.append, "run")
    first = Tally({(Status.VALID, None): 3})
    second = first.plus(Tally({(Status.VALID, None): 2, (Status.FAILED, Cause.EMPTY): 1}))
    for tally in (first, first, second):
        progress(Snapshot("extract", tally=tally, documents=tally.documents, documents_planned=6, engines_ready=1))
    assert sum(told["documents"]["valid", "none"]) == 5
    assert sum(told["documents"]["failed", "empty"]) == 1
    assert told["documents_committed"][()] == [3, 3, 6]
    assert told["engines"]["ready",] == [1, 1, 1]
    assert len(seen) == 3


async def test_an_engine_is_idle_between_requests_and_not_before_the_first_nor_during_any(told: Told) -> None:
    now = 100.0
    engine = HeldEngine()
    metered = MeteredEngine(engine, "run", clock=lambda: now)
    first = asyncio.create_task(metered.generate(Request("a", [1] * 5, 9)))
    second = asyncio.create_task(metered.generate(Request("refused", [1] * 5, 9)))
    await asyncio.sleep(0)
    now = 107.0
    engine.gate.set()
    await first
    with pytest.raises(RequestRefusedError):
        await second
    assert told["requests_in_flight"][()] == [1, 2, 1, 0]
    assert not told["engine_idle_seconds"]
    now = 109.0
    metered.tell_idle()
    now = 110.0
    await metered.generate(Request("b", [1] * 5, 9))
    assert told["engine_idle_seconds"][()] == [2.0, 1.0]
    assert {kind: sum(values) for (kind,), values in told["tokens"].items()} == {"prompt": 10, "cached": 8, "output": 6}


async def test_what_masks_took_is_taken_once_and_is_0_for_an_engine_that_does_not_say(told: Told) -> None:
    engine = HeldEngine()
    metered = MeteredEngine(engine, "run")
    assert metered.take_use().mask_s == 0
    engine.values["mask_s"] = 3.0
    assert metered.take_use().mask_s == 3
    assert metered.take_use().mask_s == 0
    engine.values["mask_s"] = 4.5
    assert metered.take_use().mask_s == 1.5
