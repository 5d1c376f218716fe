"""Owns how many workers there should be: replacing the lost and the failing, and giving up in time.

Pure: it is told what happened and asked what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Fleet"]

START_FAILURES_AT_MOST = 3
"""Workers that may fail to start in a row before no more are asked for, and the run gives up if it has none."""
LOSSES_AT_MOST = 16
"""Workers that may be lost in a row with nothing finished in between: more than dividing one shard can cost."""
FAILURES_BEFORE_REPLACING = 3
"""Attempts in a row that may fail on one worker before it is replaced."""


@dataclass(slots=True)
class Fleet:
    """Counts of workers by state.

    Attributes:
        wanted: workers the run would like to have.
        starting: workers asked for that are not ready.
        ready: workers that take tasks.
    """

    wanted: int
    starting: int = 0
    ready: int = 0
    start_failures: int = 0
    losses: int = 0
    replaced: int = 0
    has_worked: bool = False
    """Whether any worker was ever ready, so that the job as it stands can start one."""
    concurrency: int = 64
    """Of the workers to start; those that run may have had a larger one."""
    most: int | None = None
    """Workers that the job asks for; None for as many as the cluster has room for."""
    room: int | None = None
    """Workers that the cluster has room for, as last heard."""
    ceiling: int | None = None
    """Workers to be content with, since others do not start, while the room stays as it is and none starts."""
    placed: int | None = None
    """Workers to be content with, since others have the rest of the room, while it stays as it is."""
    most_wanted: int = field(init=False)
    """The largest `wanted` since something was finished: so many may be lost at once."""

    def __post_init__(self) -> None:
        self.most_wanted = self.wanted

    def _want(self, workers: int) -> None:
        self.wanted = workers
        self.most_wanted = max(self.most_wanted, workers)

    def has_room(self, workers: int) -> None:
        """The cluster has room for so many: as many are wanted, if no place among them has failed again and again.

        Where the job asks for a number, what has been done without since there was no room is wanted again.
        """
        if workers != self.room:
            self.room, self.ceiling, self.placed = workers, None, None
        if self.most is not None:
            workers = min(self.most, max(workers, self.wanted))
        limits = [limit for limit in (self.ceiling, self.placed) if limit is not None]
        self._want(max(1, min([workers, *limits])))

    def to_start(self, tasks: int) -> int:
        """How many workers to start now for `tasks` open tasks."""
        return max(0, min(self.wanted, tasks) - self.starting - self.ready)

    def started(self) -> None:
        self.starting -= 1
        self.ready += 1
        self.has_worked = True
        self.start_failures = 0
        self.ceiling = None
        if self.placed is not None:
            self.placed = max(self.placed, self.ready)

    def unplaced(self, coming: int) -> None:
        """A worker that was asked for found no room.

        Args:
            coming: workers that have found it and are not ready.
        """
        self.starting -= 1
        self.placed = max(1, self.ready + coming)
        self._want(self.placed)

    def start_failed(self) -> None:
        """Where others work or may yet, a place at which workers fail again and again is asked for no more."""
        self.starting -= 1
        self.start_failures += 1
        if self.start_failures >= START_FAILURES_AT_MOST and self.ready + self.starting:
            self.ceiling = self.ready + self.starting
            self._want(self.ceiling)
            if self.ready:
                self.start_failures = 0

    @property
    def cannot_start(self) -> bool:
        """Whether every worker that was asked for failed to start, and none ever worked."""
        return not self.has_worked and not self.starting and self.start_failures > 0

    def lost(self, *, out_of_memory_at: int | None = None, is_preempted: bool = False) -> None:
        """A ready worker died; one that ran out of memory is followed by workers with half its concurrency at most.

        Args:
            out_of_memory_at: the worker's own concurrency, where it ran out of memory.
            is_preempted: its machine was taken away, which says nothing of what the next ones will do.
        """
        self.ready -= 1
        if not is_preempted:
            self.losses += 1
        if out_of_memory_at is not None:
            self.concurrency = max(1, min(self.concurrency, out_of_memory_at // 2))

    def retired(self) -> None:
        """A ready worker was taken away because its attempts failed."""
        self.ready -= 1
        self.replaced += 1

    def dismissed(self) -> None:
        """A ready worker was taken away because there is nothing left for it."""
        self.ready -= 1

    def progressed(self) -> None:
        """Something was finished."""
        self.losses = 0
        self.replaced = 0
        self.most_wanted = self.wanted

    def must_replace(self, failures_in_a_row: int) -> bool:
        """Whether a worker should be replaced; never more workers than there are, with nothing finished in between."""
        return failures_in_a_row >= FAILURES_BEFORE_REPLACING and self.replaced < max(1, self.wanted)

    def reason_to_give_up(self) -> str | None:
        """Why no further worker should be started, in a sentence; None while there is hope."""
        if self.start_failures >= START_FAILURES_AT_MOST and not self.ready + self.starting:
            return f"{self.start_failures} workers failed to start, one after the other"
        if self.losses >= LOSSES_AT_MOST + 2 * self.most_wanted:
            return f"{self.losses} workers died in a row and nothing was finished in between"
        return None
