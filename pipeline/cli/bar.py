"""Progress in a terminal: a bar with rate, time left, engines and counts by status."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pipeline.run.progress import Snapshot

__all__ = ["BarProgress"]

_PHASES = {
    "preflight": "checking",
    "plan": "planning",
    "start": "starting engines",
    "extract": "extracting",
    "report": "reporting",
    "done": "done",
}


class BarProgress:
    """A `run.progress.Progress` that draws; use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[counts]}"),
            console=console,
            transient=False,
        )
        self._task = self._bar.add_task("checking", total=None, rate="", left="", counts="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        counts = " ".join(f"{name} {count}" for name, count in _counts(snapshot) if count)
        left = snapshot.left_s
        self._bar.update(
            self._task,
            description=_PHASES.get(snapshot.phase, snapshot.phase),
            total=snapshot.documents_planned or None,
            completed=snapshot.documents + snapshot.documents_working,
            rate=f"{snapshot.documents_per_s:.1f}/s" if snapshot.phase == "extract" else "",
            left=f"{_duration(left)} left" if left is not None and snapshot.phase == "extract" else "",
            counts=counts,
        )


def _counts(snapshot: Snapshot) -> list[tuple[str, int]]:
    return [(str(status), count) for status, count in snapshot.tally.by_status().items()]


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
