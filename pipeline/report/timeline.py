"""Work over time, from when each shard was worked on: its rate, its pauses, and a clock that runs only during work."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from pipeline.report.model import Pause, RatePoint

__all__ = ["Timeline", "Work", "timeline"]

POINTS = 60
"""Stretches that a run is divided into."""
LEAST_PAUSE_S = 30.0
"""A shorter time without work, such as one between two shards of one engine, is no pause: the clock runs on."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one shard did, and when."""

    started_at: datetime
    finished_at: datetime
    documents: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rate over a run's active time."""

    active_s: float
    points: tuple[RatePoint, ...]
    pauses: tuple[Pause, ...]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Seconds since the epoch, and where the stretch starts on the active clock."""

    start: float
    end: float
    active: float


def timeline(work: Sequence[Work], *, points: int = POINTS) -> Timeline:
    """Spreads each shard's work evenly between its start and its end, and adds it up in stretches of equal length.

    Work that takes no time counts for a moment; a shard that ends before it starts (clocks that differ) counts so at
    its end.  The sums over the stretches equal the sums over the work.
    """
    spans = [
        (min(start, end), end)
        for item in work
        for start, end in [(item.started_at.timestamp(), item.finished_at.timestamp())]
    ]
    if not spans:
        return Timeline(0.0, (), ())
    stretches = _stretches(spans)
    active_s = stretches[-1].active + stretches[-1].end - stretches[-1].start
    if active_s <= 0:
        return Timeline(0.0, (), ())
    width = active_s / points
    documents, tokens = [0.0] * points, [0.0] * points
    for item, (start, end) in zip(work, spans, strict=True):
        _spread(documents, item.documents, _active(stretches, start) / width, _active(stretches, end) / width)
        _spread(tokens, item.output_tokens, _active(stretches, start) / width, _active(stretches, end) / width)
    rates = tuple(
        RatePoint(
            at=_moment(stretches, index * width),
            active_s=index * width,
            length_s=width,
            documents_per_s=documents[index] / width,
            output_tokens_per_s=tokens[index] / width,
        )
        for index in range(points)
    )
    return Timeline(active_s, rates, _pauses(stretches))


def _stretches(spans: Sequence[tuple[float, float]]) -> list[_Stretch]:
    """The union of the spans, with gaps that are no pauses closed."""
    merged: list[list[float]] = []
    for start, end in sorted(spans):
        if merged and start - merged[-1][1] < LEAST_PAUSE_S:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    stretches: list[_Stretch] = []
    active = 0.0
    for start, end in merged:
        stretches.append(_Stretch(start, end, active))
        active += end - start
    return stretches


def _active(stretches: Sequence[_Stretch], at: float) -> float:
    """A time within some stretch, on the active clock."""
    stretch = stretches[bisect_right(stretches, at, key=lambda item: item.start) - 1]
    return stretch.active + at - stretch.start


def _moment(stretches: Sequence[_Stretch], active: float) -> datetime:
    stretch = stretches[bisect_right(stretches, active, key=lambda item: item.active) - 1]
    return datetime.fromtimestamp(stretch.start, UTC) + timedelta(seconds=active - stretch.active)


def _spread(bins: list[float], amount: float, start: float, end: float) -> None:
    """Adds `amount` evenly over `[start, end]`, both in bins."""
    if end - start < 1e-9:
        bins[min(int(start), len(bins) - 1)] += amount
        return
    for index in range(int(start), min(math.ceil(end), len(bins))):
        bins[index] += amount * (min(end, index + 1) - max(start, index)) / (end - start)


def _pauses(stretches: Sequence[_Stretch]) -> tuple[Pause, ...]:
    return tuple(
        Pause(from_at=datetime.fromtimestamp(before.end, UTC), active_s=after.active, length_s=after.start - before.end)
        for before, after in pairwise(stretches)
    )
