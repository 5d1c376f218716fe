"""Owns what is told of a run while it goes on: a snapshot of counts, for a bar, a log, or a page."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from pipeline.run.ledger import Tally

__all__ = ["LogProgress", "Phase", "Progress", "Snapshot"]

logger = logging.getLogger(__name__)

Phase = Literal["preflight", "plan", "start", "extract", "report", "done"]
"""What a submission is at, in this order."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment.  `documents` counts committed ones; `documents_working` those done in other shards."""

    phase: Phase
    shards_planned: int = 0
    shards_done: int = 0
    documents_planned: int = 0
    documents: int = 0
    documents_working: int = 0
    engines_ready: int = 0
    engines_wanted: int = 0
    tally: Tally = field(default_factory=Tally)
    elapsed_s: float = 0.0
    documents_at_start: int = 0
    """Documents that an earlier submission had committed."""

    @property
    def documents_per_s(self) -> float:
        """Since this submission started."""
        done = self.documents + self.documents_working - self.documents_at_start
        return done / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def left_s(self) -> float | None:
        """Seconds left at this rate; None while there is no rate."""
        rate = self.documents_per_s
        return (self.documents_planned - self.documents - self.documents_working) / rate if rate > 0 else None


Progress = Callable[[Snapshot], None]
"""Told of a run's state about twice a second, and at every change of phase.  Must return at once."""


class LogProgress:
    """One log line when the phase changes, and then at most one for each hundredth of the documents."""

    def __init__(self) -> None:
        self._last: tuple[str, int] = ("", -1)

    def __call__(self, snapshot: Snapshot) -> None:
        percent = 100 * snapshot.documents // max(1, snapshot.documents_planned)
        if (snapshot.phase, percent) == self._last:
            return
        self._last = (snapshot.phase, percent)
        logger.info(
            "phase=%s documents=%d/%d shards=%d/%d engines=%d/%d rate=%.1f/s left_s=%s%s",
            snapshot.phase,
            snapshot.documents,
            snapshot.documents_planned,
            snapshot.shards_done,
            snapshot.shards_planned,
            snapshot.engines_ready,
            snapshot.engines_wanted,
            snapshot.documents_per_s,
            "?" if snapshot.left_s is None else round(snapshot.left_s),
            "".join(f" {status}={number}" for status, number in snapshot.tally.by_status().items() if number),
        )
