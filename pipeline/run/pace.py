"""Owns how long a task usually takes for its size, and so which one has fallen behind.  Pure."""

from __future__ import annotations

__all__ = ["BEHIND", "FINISHED_BEFORE_JUDGING", "Pace"]

BEHIND = 2.0
"""A task has fallen behind when it takes so many times as long as its size lets expect."""
FINISHED_BEFORE_JUDGING = 8


class Pace:
    """Times and sizes of the tasks that finished.  A size is bytes of text, or rows where those are unknown."""

    def __init__(self) -> None:
        self._finished = 0
        self._worked_s = 0.0
        self._size = 0

    def add(self, size: int, worked_s: float) -> None:
        """A task finished."""
        self._finished += 1
        self._worked_s += worked_s
        self._size += size

    def is_late(self, size: int, elapsed_s: float) -> bool:
        """Whether a task takes unusually long; a short one may take as long as the mean, for what every task costs."""
        if self._finished < FINISHED_BEFORE_JUDGING:
            return False
        longer = max(1.0, size * self._finished / self._size) if self._size else 1.0
        return elapsed_s > BEHIND * longer * self._worked_s / self._finished
