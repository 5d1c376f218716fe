"""The watchdog: silence with requests in flight, and nothing else, makes an engine dead."""

from __future__ import annotations

import asyncio
import time

import pytest

from pipeline.core.errors import EngineDeadError
from pipeline.engine.watchdog import Watchdog


async def test_silence_with_requests_in_flight_ends_all_of_them() -> None:
    watchdog = Watchdog(0.1)
    work = [watchdog.guard(asyncio.sleep(60)) for _ in range(3)]
    results = await asyncio.gather(*work, return_exceptions=True)
    assert [type(result) for result in results] == [EngineDeadError] * 3
    assert watchdog.in_flight == 0
    with pytest.raises(EngineDeadError):
        await watchdog.guard(asyncio.sleep(60))


async def test_an_idle_engine_is_not_silent() -> None:
    watchdog = Watchdog(0.1)
    await asyncio.sleep(0.4)
    assert await watchdog.guard(asyncio.sleep(0, "served")) == "served"
    watchdog.close()


async def test_progress_on_any_request_keeps_all_alive() -> None:
    watchdog = Watchdog(0.3)
    waiting = asyncio.create_task(watchdog.guard(asyncio.sleep(60)))
    for _ in range(40):
        watchdog.progress()
        await asyncio.sleep(0.02)
    assert await watchdog.guard(asyncio.sleep(0, "served")) == "served"
    waiting.cancel()
    watchdog.close()


async def test_an_event_loop_that_was_held_up_is_not_an_engine_that_was_silent() -> None:
    watchdog = Watchdog(0.4)
    waiting = asyncio.create_task(watchdog.guard(asyncio.sleep(60)))
    for _ in range(3):
        await asyncio.sleep(0.05)
        time.sleep(0.6)
        # The watchdog looks before it is told of progress.
        await asyncio.sleep(0.05)
        watchdog.progress()
    await asyncio.sleep(0.05)
    assert await watchdog.guard(asyncio.sleep(0, "served")) == "served"
    waiting.cancel()
    watchdog.close()


async def test_a_cancelled_request_cancels_its_work() -> None:
    watchdog = Watchdog(60)
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiting = asyncio.create_task(watchdog.guard(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait_for(ended.wait(), 5)
    assert watchdog.in_flight == 0
    watchdog.close()


async def test_an_error_of_the_work_comes_through() -> None:
    watchdog = Watchdog(60)

    async def work() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        await watchdog.guard(work())
    watchdog.close()
