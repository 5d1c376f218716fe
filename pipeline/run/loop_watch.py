"""Owns the end of a worker whose event loop stands still: nothing else in the process could say so."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Callable

__all__ = ["LoopWatch", "end_process"]

logger = logging.getLogger(__name__)

_TICKS = 10


def end_process() -> None:
    """Ends this process at once, threads and all; its shard is done again elsewhere."""
    faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr)
    os._exit(1)


class LoopWatch:
    """A thread that expects a sign of life from an event loop, and acts when there is none for too long.

    A thread that was itself not run (a stopped machine) does not count as silence: time is added up tick by tick.
    """

    def __init__(self, silence_s: float, act: Callable[[], None] = end_process) -> None:
        """Needs a running event loop.

        Args:
            silence_s: how long the loop may stand still.
            act: what to do then; called in the thread.
        """
        self._silence_s = silence_s
        self._act = act
        self._beats = 0
        self._closed = threading.Event()
        self._task = asyncio.get_running_loop().create_task(self._beat())
        threading.Thread(target=self._watch, name="loop-watch", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._task.cancel()

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            await asyncio.sleep(self._silence_s / _TICKS / 2)

    def _watch(self) -> None:
        silent_ticks, seen = 0, self._beats
        # A loop that has ended has taken its tasks along, and does not stand still.
        while not self._closed.wait(self._silence_s / _TICKS) and not self._task.done():
            silent_ticks = silent_ticks + 1 if seen == self._beats else 0
            seen = self._beats
            if silent_ticks >= _TICKS:
                logger.error("the event loop has stood still for %g s", self._silence_s)
                self._act()
                return
