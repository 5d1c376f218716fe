"""Tells a silent engine from a busy one.  Knows nothing of what the engine is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pipeline.core.errors import EngineDeadError

__all__ = ["Watchdog"]

T = TypeVar("T")

_TICKS = 20


class Watchdog:
    """Counts how long an engine that has requests has made no progress.

    Silence is added up tick by tick, at most one tick at a time, so that an event loop that was itself held up does
    not count as an engine that was silent.
    """

    def __init__(self, silence_s: float) -> None:
        """
        Args:
            silence_s: with requests in flight and no progress for so long, the engine is taken for dead.
        """
        self._silence_s = silence_s
        self._progress = 0
        self._in_flight = 0
        self._verdict: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name="engine-watchdog")

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def progress(self) -> None:
        """The engine did something for a request."""
        self._progress += 1

    def condemn(self, reason: str) -> None:
        """The engine is dead for another reason; every request in flight ends with it."""
        if not self._verdict.done():
            self._verdict.set_result(reason)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits the work of one request.

        Raises:
            EngineDeadError: the engine fell silent or was condemned, before or while waiting.
        """
        if self._verdict.done():
            work.close()
            raise EngineDeadError(self._verdict.result())
        task = asyncio.create_task(work)
        with self._counted():
            try:
                watched: list[asyncio.Future[Any]] = [task, self._verdict]
                await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                if task.done():
                    return task.result()
                raise EngineDeadError(self._verdict.result())
            finally:
                if not task.done():
                    task.cancel()

    def close(self) -> None:
        self._task.cancel()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._in_flight += 1
        self._progress += self._in_flight == 1
        try:
            yield
        finally:
            self._in_flight -= 1

    async def _run(self) -> None:
        tick_s = self._silence_s / _TICKS
        silent_ticks, seen = 0, self._progress
        with suppress(asyncio.CancelledError):
            while not self._verdict.done():
                await asyncio.sleep(tick_s)
                silent_ticks = silent_ticks + 1 if self._in_flight and seen == self._progress else 0
                seen = self._progress
                if silent_ticks >= _TICKS:
                    self.condemn(f"no progress for {self._silence_s:g} s with {self._in_flight} requests in flight")
