"""Where every mark of the page's charts goes: pure geometry in percent of the plot, drawn by the template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.core.outcome import Status
from pipeline.report.model import Distribution, Report
from pipeline.report.text import compact, count, duration, moment, percent, plural

__all__ = ["Chart", "Mark", "Tick", "histogram", "rate_chart", "shard_chart"]

LABEL_WIDTH = 40.0
"""Percent of a plot on a phone that the label of a pause takes."""
COLUMNS_AT_MOST = 96
"""Columns of the shard chart; more shards than these share columns."""

UNVALID = (Status.CLOSED, Status.TRUNCATED, Status.INVALID, Status.FAILED)


@dataclass(frozen=True, slots=True)
class Mark:
    """One rectangle: left, top, width and height in percent of the plot; `kind` is its class, `title` its tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A label at a place in percent; a minor one is left out where there is little room."""

    at: float
    label: str
    is_minor: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """One plot.  `lines` are upright lines across it, each with a label; that of a minor one is its tooltip alone."""

    label: str
    marks: tuple[Mark, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Tick, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    """The same as a table of two columns, for those who read instead of look."""


def _nice_ceiling(value: float) -> float:
    """The least of some round numbers that is not below a positive value."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        step * power for step in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0) if step * power >= value * (1 - 1e-9)
    )


def _thinned(labels: Sequence[tuple[float, str]], at_most: int) -> tuple[Tick, ...]:
    step = max(1, math.ceil(len(labels) / at_most))
    kept = labels[::step]
    return tuple(Tick(at, label, is_minor=bool(index % 2)) for index, (at, label) in enumerate(kept))


def histogram(values: Distribution, noun: str, kind: str, budget: int | None = None) -> Chart | None:
    """A histogram with bins of equal width, empty ends cut off; None when nothing was counted.

    Args:
        values: the counts.
        noun: what is counted over, as `output tokens`.
        kind: class of the marks.
        budget: a value to mark with a line, in the unit of the bins.
    """
    held = [index for index, number in enumerate(values.counts) if number]
    if not held:
        return None
    first, last = held[0], held[-1]
    bins = range(first, last + 1)
    width = 100 / len(bins)
    top = _nice_ceiling(max(values.counts))
    marks, rows = [], []
    for index in bins:
        name, number = _bin_name(values.edges, index), values.counts[index]
        height = 100 * number / top
        title = f"{name} {noun}: {plural(number, 'document')} ({percent(number / values.total)})"
        marks.append(Mark((index - first) * width, 100 - height, width, height, kind, title))
        rows.append((name, count(number)))
    labels = [((index - first) * width, compact(values.edges[index])) for index in bins]
    return Chart(
        label=f"Histogram of {noun} over {plural(values.total, 'document')}",
        marks=tuple(marks),
        x_ticks=_thinned(labels, 12),
        y_ticks=(Tick(0, "0"), *([Tick(50, compact(top / 2))] if top % 2 == 0 else []), Tick(100, compact(top))),
        lines=_budget_line(values.edges, budget, first, last),
        rows=tuple(rows),
    )


def _bin_name(edges: Sequence[int], index: int) -> str:
    if index + 1 == len(edges):
        return f"{count(edges[index])} and more"
    upper = edges[index + 1] - 1
    return count(edges[index]) if upper == edges[index] else f"{count(edges[index])}–{count(upper)}"


def _budget_line(edges: Sequence[int], budget: int | None, first: int, last: int) -> tuple[Tick, ...]:
    if budget is None:
        return ()
    for index in range(first, last + 1):
        # Bins end where the lengths do; each is as wide as all before it.
        upper = edges[index + 1] if index + 1 < len(edges) else 2 * edges[index]
        if edges[index] <= budget < upper:
            inside = (budget - edges[index]) / (upper - edges[index])
            at = 100 * (index - first + inside) / (last - first + 1)
            return (Tick(at, f"max_tokens {count(budget)}"),)
    return ()


@dataclass(slots=True)
class _Column:
    """Consecutive shards of the plan, added up."""

    first: int
    last: int
    counts: dict[Status, int]
    missing_shards: int = 0
    missing_documents: int = 0

    @property
    def documents(self) -> int:
        return sum(self.counts.values())

    @property
    def share_unvalid(self) -> float:
        return sum(self.counts[status] for status in UNVALID) / self.documents if self.documents else 0.0

    @property
    def name(self) -> str:
        return f"shard {self.first + 1}" if self.first == self.last else f"shards {self.first + 1}–{self.last + 1}"

    @property
    def summary(self) -> str:
        parts = [f"{count(number)} {status}" for status, number in self.counts.items() if number]
        if self.missing_shards:
            parts.append(f"{count(self.missing_documents)} without an outcome")
        return ", ".join(parts) or "no documents"


def _columns(report: Report) -> list[_Column]:
    per_column = max(1, math.ceil(report.shards_planned / COLUMNS_AT_MOST))
    columns = [
        _Column(first, min(first + per_column, report.shards_planned) - 1, dict.fromkeys(Status, 0))
        for first in range(0, report.shards_planned, per_column)
    ]
    for shard in report.shards:
        for status in Status:
            columns[shard.position // per_column].counts[status] += shard.of(status)
    for gone in report.missing:
        columns[gone.position // per_column].missing_shards += 1
        columns[gone.position // per_column].missing_documents += gone.documents
    return columns


def shard_chart(report: Report) -> Chart | None:
    """Share of each shard's documents that is not plainly valid, stacked by status, in the order of the plan.

    Shards without a part are of class `missing` and full height; of a column that shards share they take their share of
    its width.  None when every document is valid or none is planned.
    """
    columns = _columns(report)
    most = max((column.share_unvalid for column in columns), default=0.0)
    if not most and not report.missing:
        return None
    top = min(1.0, _nice_ceiling(most)) if most else 1.0
    width = 100 / len(columns)
    marks: list[Mark] = []
    for index, column in enumerate(columns):
        marks += _stack(column, index * width, width, top)
    labels = [((index + 0.5) * width, count(column.first + 1)) for index, column in enumerate(columns)]
    return Chart(
        label=f"Share of documents not plainly valid in each of {plural(report.shards_planned, 'shard')}",
        marks=tuple(marks),
        x_ticks=_thinned(labels, 12),
        y_ticks=(Tick(0, "0%"), Tick(50, f"{50 * top:.3g}%"), Tick(100, f"{100 * top:.3g}%")),
        rows=tuple((column.name, column.summary) for column in columns),
    )


def _stack(column: _Column, x: float, width: float, top: float) -> list[Mark]:
    title = f"{column.name}: {column.summary}"
    missing = width * column.missing_shards / (column.last + 1 - column.first)
    width -= missing
    marks = [Mark(x + width, 0, missing, 100, "missing", title)] if missing else []
    base = 100.0
    for status in UNVALID:
        if column.counts[status]:
            height = 100 * column.counts[status] / column.documents / top
            base -= height
            marks.append(Mark(x, base, width, height, status.value, title))
    return marks


def rate_chart(report: Report, *, tokens: bool) -> Chart | None:
    """Documents (or output tokens) a second over the time some shard was in work; None when no time is known."""
    if not report.rate or not report.active_s:
        return None
    noun = "output tokens" if tokens else "documents"
    values = [point.output_tokens_per_s if tokens else point.documents_per_s for point in report.rate]
    if not max(values):
        return None
    top = _nice_ceiling(max(values))
    marks, rows = [], []
    for point, value in zip(report.rate, values, strict=True):
        height = 100 * value / top
        title = f"{moment(point.at)}: {compact(value)} {noun} a second"
        x, width = 100 * point.active_s / report.active_s, 100 * point.length_s / report.active_s
        marks.append(Mark(x, 100 - height, width, height, "tokens" if tokens else "rate", title))
        rows.append((moment(point.at), compact(value)))
    return Chart(
        label=f"{noun.capitalize()} a second over {duration(report.active_s)} of work",
        marks=tuple(marks),
        x_ticks=tuple(
            Tick(at, duration(report.active_s * at / 100), is_minor=at in (25, 75)) for at in (0, 25, 50, 75, 100)
        ),
        y_ticks=(Tick(0, "0"), Tick(50, compact(top / 2)), Tick(100, compact(top))),
        lines=_pause_lines(report),
        rows=tuple(rows),
    )


def _label_start(at: float) -> float:
    """Where the label of a line begins: over the line, at the plot's ends beside it, as the template anchors it."""
    return at if at < 30 else at - LABEL_WIDTH if at > 70 else at - LABEL_WIDTH / 2


def _pause_lines(report: Report) -> tuple[Tick, ...]:
    """A line for each pause; of those whose labels would run into each other, the longest keeps it."""
    lines: list[Tick] = []
    for pause in sorted(report.pauses, key=lambda pause: -pause.length_s):
        at = 100 * pause.active_s / report.active_s
        is_close = any(
            abs(_label_start(at) - _label_start(line.at)) < LABEL_WIDTH for line in lines if not line.is_minor
        )
        lines.append(Tick(at, f"paused {duration(pause.length_s)}", is_minor=is_close))
    return tuple(sorted(lines, key=lambda line: line.at))
