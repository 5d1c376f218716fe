"""Compiling without the collector of cycles."""

from __future__ import annotations

import gc
import threading
from contextlib import ContextDecorator

__all__ = ["collector_paused"]


class _CollectorPaused(ContextDecorator):
    """Counts who is inside, in all threads: the collector goes on when the last one leaves, if it was on before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._was_enabled:
                gc.enable()


collector_paused = _CollectorPaused()
"""No search for cycles inside, in the whole process.

Automata are hundreds of thousands of tuples without a cycle among them, and looking for one took two to three times as
long as making them.
"""
