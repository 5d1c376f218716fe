"""Owns the line of tasks that no worker holds: its order, and how much text they are together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from pipeline.run.task import Task

__all__ = ["Entry", "Line"]


@dataclass(slots=True)
class Entry:
    """A task, and what has become of it so far."""

    task: Task
    size: int = 0
    """Of a planned shard, how long it takes beside others: bytes of its text, or rows where those are unknown."""
    attempts: int = 0
    failures: int = 0
    deaths: int = 0
    holders: int = 0
    """Workers that have it now: two, where it had fallen behind."""

    @property
    def is_suspect(self) -> bool:
        """Whether it runs alone, since a worker died of it or of what it is a half of."""
        return self.deaths > 0 or self.task.is_half


class Line:
    """Tasks in the order to work in.

    Those that failed come before the others, so that a long one is not left to the end, but behind them while failures
    are all that is heard: in an outage each task then fails once before any fails again.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._first: deque[Entry] = deque()
        self._failed: deque[Entry] = deque()
        self._fresh = deque(entries)
        self.is_outage = False
        """Whether an attempt has failed and none has succeeded since."""
        self.size = sum(entry.size for entry in self._fresh)
        """Of all of them: bytes of text, or rows where those are unknown."""

    def __len__(self) -> int:
        return len(self._first) + len(self._failed) + len(self._fresh)

    def __iter__(self) -> Iterator[Entry]:
        return chain(*self._parts())

    @property
    def first(self) -> Entry:
        """The next one, which stays."""
        return next(iter(self))

    def take(self) -> Entry:
        """The next one."""
        entry = next(filter(None, self._parts())).popleft()
        self.size -= entry.size
        return entry

    def put_first(self, entry: Entry) -> None:
        """Puts one before all others."""
        self._first.appendleft(entry)
        self.size += entry.size

    def add_failed(self, entry: Entry) -> None:
        """Puts one among those that failed, as their last."""
        self._failed.append(entry)
        self.size += entry.size

    def _parts(self) -> tuple[deque[Entry], ...]:
        if self.is_outage:
            return self._first, self._fresh, self._failed
        return self._first, self._failed, self._fresh
