"""Owns what an engine's wall time went into, as its worker sees it: sums that are taken once, and so add up."""

from __future__ import annotations

import time
from collections.abc import Callable

from pipeline.report.use import EngineUse

__all__ = ["UseClock"]


class UseClock:
    """The time of one engine, told of every request's start and end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._in_flight = 0
        self._first_at: float | None = None
        self._since = self._last_at = 0.0
        self._busy_s = 0.0
        self._taken = EngineUse()

    def enter(self) -> None:
        """A request begins."""
        if not self._in_flight:
            self._since = self._clock()
            if self._first_at is None:
                self._first_at = self._since
        self._in_flight += 1

    def leave(self) -> None:
        """A request has ended, however."""
        self._in_flight -= 1
        if not self._in_flight:
            self._last_at = self._clock()
            self._busy_s += self._last_at - self._since

    def take(self) -> EngineUse:
        """What was not taken yet.  Shards overlap in an engine; what one takes, the next one does not."""
        if self._first_at is None:
            return EngineUse()
        now, before = self._clock(), self._taken
        last_at = now if self._in_flight else self._last_at
        busy_s = self._busy_s + (now - self._since if self._in_flight else 0.0)
        self._taken = EngineUse(now - self._first_at, last_at - self._first_at, busy_s)
        return EngineUse(
            self._taken.wall_s - before.wall_s,
            self._taken.request_wall_s - before.request_wall_s,
            self._taken.busy_s - before.busy_s,
        )
