"""Progress in a terminal: a bar with rate, time left, engines and counts by status, as wide as there is room for."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.text import Text

from pipeline.report.terminal import STATUS_LOOKS
from pipeline.report.text import compact, duration
from pipeline.run.progress import Phase, Snapshot

__all__ = ["BarProgress"]

NARROW = 100
"""Cells below which engines and elapsed time are left out: what is left of a line is the counts'."""

_PHASES: dict[Phase, str] = {
    "preflight": "checking",
    "plan": "planning",
    "start": "starting engines",
    "extract": "extracting",
    "report": "reporting",
    "done": "done",
}


class _Counts(ProgressColumn):
    """Documents by status, each with the glyph and colour that it has in the report."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        shown = Text(no_wrap=True, overflow="ellipsis")
        for status, number in task.fields["counts"]:
            glyph, colour = STATUS_LOOKS[status]
            shown.append(glyph, style=colour)
            shown.append(f" {number:,} {status}  ")
        return shown


class BarProgress:
    """A `run.progress.Progress` that draws; use it as a context manager."""

    def __init__(self, console: Console) -> None:
        is_wide = console.width >= NARROW
        columns: list[ProgressColumn] = [
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=28 if is_wide else 12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
        ]
        if is_wide:
            columns += [Elapsed(), TextColumn("[dim]{task.fields[engines]}")]
        self._bar = Progress(*columns, _Counts(), console=console, transient=False)
        self._task = self._bar.add_task("checking", total=None, rate="", left="", engines="", counts=())

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        is_extracting = snapshot.phase == "extract"
        left = snapshot.left_s if is_extracting else None
        wanted = snapshot.engines_wanted
        self._bar.update(
            self._task,
            description=_PHASES[snapshot.phase],
            total=snapshot.documents_planned or None,
            completed=snapshot.documents + snapshot.documents_working,
            rate=f"{compact(snapshot.documents_per_s)}/s" if is_extracting else "",
            left="" if left is None else f"{duration(left)} left",
            engines=f"{snapshot.engines_ready} of {wanted} engines" if wanted else "",
            counts=[(status, number) for status, number in snapshot.tally.by_status().items() if number],
        )
