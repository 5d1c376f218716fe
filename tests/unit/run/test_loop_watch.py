"""A worker whose event loop stands still is ended, and no other."""

from __future__ import annotations

import asyncio
import queue
import threading
from types import SimpleNamespace

import pytest

from pipeline.run import loop_watch


class Ticks:
    """What a watch waits on, with the test in the place of a clock."""

    def __init__(self) -> None:
        self._waits: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ends: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def wait(self, _: float) -> bool:
        self._waits.put(None)
        return self._ends.get()

    def set(self) -> None:
        self._ends.put(True)

    def settle(self) -> None:
        """Returns when the last tick has been acted on, and the next is awaited."""
        self._waits.get(timeout=30)

    def tick(self) -> None:
        self._ends.put(False)


async def test_a_loop_that_stands_still_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, noticed, sleep = Ticks(), threading.Event(), asyncio.sleep
    monkeypatch.setattr(loop_watch, "threading", SimpleNamespace(Event=lambda: ticks, Thread=threading.Thread))
    monkeypatch.setattr(asyncio, "sleep", lambda _: sleep(0))
    watch = loop_watch.LoopWatch(1.0, noticed.set)
    for _ in range(30):
        ticks.settle()
        await asyncio.sleep(0)  # the loop lives
        ticks.tick()
    for _ in range(9):
        ticks.settle()
        ticks.tick()
    ticks.settle()
    assert not noticed.is_set()
    ticks.tick()
    assert noticed.wait(30)
    watch.close()


def test_a_loop_that_has_ended_is_not_taken_for_one_that_stands_still() -> None:
    before, noticed = set(threading.enumerate()), threading.Event()

    async def watched() -> loop_watch.LoopWatch:
        return loop_watch.LoopWatch(0.2, noticed.set)

    asyncio.run(watched())
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()
    assert not noticed.is_set()
