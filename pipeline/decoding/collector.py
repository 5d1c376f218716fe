"""Compiling without the collector of cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


class _Pauses:
    """How many there are now, in all threads, and whether the collector goes on after the last one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._was_enabled = False

    def begin(self) -> None:
        with self._lock:
            if not self._count:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count and self._was_enabled:
                gc.enable()


_PAUSES = _Pauses()


@contextmanager
def collector_paused() -> Iterator[None]:
    """No search for cycles inside, in the whole process.

    Automata are hundreds of thousands of tuples without a cycle among them, and looking for one took two to three
    times as long as making them.
    """
    _PAUSES.begin()
    try:
        yield
    finally:
        _PAUSES.end()
