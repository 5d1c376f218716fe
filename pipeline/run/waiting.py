"""Owns the line of tasks that no worker holds: its order, and how much text they are together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.run.task import Task

__all__ = ["Entry", "Line"]


@dataclass(slots=True)
class Entry:
    """A task, and what has become of it so far."""

    task: Task
    size: int = 0
    """Of a planned shard: how long it takes beside others."""
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
    """Tasks in the order to work in."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = deque(entries)
        self.size = sum(entry.size for entry in self._entries)
        """Of all of them."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> Entry:
        """The next one, which stays."""
        return self._entries[0]

    def take(self) -> Entry:
        """The next one."""
        entry = self._entries.popleft()
        self.size -= entry.size
        return entry

    def add(self, entry: Entry, *, is_first: bool = False) -> None:
        """Puts one at the end, or before all others."""
        (self._entries.appendleft if is_first else self._entries.append)(entry)
        self.size += entry.size
