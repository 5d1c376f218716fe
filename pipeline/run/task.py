"""What a worker is asked to do, as driver and worker both know it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.core.document import Shard
from pipeline.run.bisection import Leaf

__all__ = ["Assignment", "Merge", "Task"]


@dataclass(frozen=True, slots=True)
class Merge:
    """The halves that a divided shard's part is put together from."""

    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do: extract a shard, or put its part together from halves."""

    task_id: str
    shard: Shard
    root_id: str
    """Id of the planned shard that this is, or is a piece of."""
    merge: Merge | None = None
    before: Shard | None = None
    """For a half: the planned shard's rows before its own, among which its ids may stand already."""

    @property
    def is_half(self) -> bool:
        return self.merge is None and self.task_id != self.root_id

    @property
    def is_planned(self) -> bool:
        """Whether it is a whole shard of the plan."""
        return self.task_id == self.root_id


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task for a worker; `attempt` counts from 1."""

    worker_id: str
    task: Task
    attempt: int
