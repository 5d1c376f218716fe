"""Owns which worker holds which tasks: who is idle, who may prefetch, and who has been at a task for how long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.run.waiting import Entry

__all__ = ["Holder", "Holdings"]

PREFETCH = 2
"""Tasks one worker holds at most: the one it works on, and the one it takes documents from next."""


@dataclass(slots=True)
class Holder:
    """A worker, and what it holds."""

    running: dict[str, Entry] = field(default_factory=dict)
    """By task id; it works on the first one."""
    is_alone: bool = False
    """Whether it may have no second task beside this one."""
    failures_in_a_row: int = 0


class Holdings:
    """The ready workers of one submission."""

    def __init__(self) -> None:
        self.workers: dict[str, Holder] = {}
        self.idle: dict[str, None] = {}
        """Those that hold nothing."""
        self.busy: dict[str, None] = {}
        """Those that may prefetch."""
        self._since: dict[str, float] = {}
        """When each came to the task it works on, in that order."""
        self.tasks = 0
        self.size = 0
        """Of all that is held, as `Entry.size`."""

    def add(self, worker_id: str) -> None:
        """A worker is ready."""
        self.workers[worker_id] = Holder()
        self.idle[worker_id] = None

    def hand(self, worker_id: str, entry: Entry, now: float, *, is_alone: bool) -> None:
        """A worker gets a task."""
        worker = self.workers[worker_id]
        if not worker.running:
            self._since[worker_id] = now
        worker.running[entry.task.task_id] = entry
        worker.is_alone = is_alone
        entry.holders += 1
        self.size += entry.size
        self.tasks += 1
        self._file(worker_id)

    def take(self, worker_id: str, task_id: str, now: float) -> tuple[Entry, float | None]:
        """A worker has ended a task; returns it, and the seconds it worked on it: None where it was behind another."""
        worker = self.workers[worker_id]
        worked_s = None
        if task_id == next(iter(worker.running), None):
            worked_s = now - self._since.pop(worker_id)
            if len(worker.running) > 1:
                self._since[worker_id] = now
        entry = worker.running.pop(task_id)
        worker.is_alone = False
        entry.holders -= 1
        self.size -= entry.size
        self.tasks -= 1
        self._file(worker_id)
        return entry, worked_s

    def remove(self, worker_id: str) -> Holder:
        """A worker is gone."""
        for place in (self.idle, self.busy, self._since):
            place.pop(worker_id, None)
        worker = self.workers.pop(worker_id)
        self.tasks -= len(worker.running)
        for entry in worker.running.values():
            entry.holders -= 1
            self.size -= entry.size
        return worker

    def defer(self, worker_id: str) -> None:
        """Puts a worker behind all others that may prefetch."""
        self.busy[worker_id] = self.busy.pop(worker_id)

    def longest_first(self, now: float) -> Iterator[tuple[float, tuple[Entry, ...]]]:
        """What each worker that works holds, with the seconds it has been at the first of it."""
        for worker_id, since in self._since.items():
            yield now - since, tuple(self.workers[worker_id].running.values())

    def _file(self, worker_id: str) -> None:
        """Puts a worker among the idle ones, those that may prefetch, or neither."""
        worker = self.workers[worker_id]
        self.idle.pop(worker_id, None)
        self.busy.pop(worker_id, None)
        if not worker.running:
            self.idle[worker_id] = None
        elif len(worker.running) < PREFETCH and not worker.is_alone:
            self.busy[worker_id] = None
