"""What the comparison prints: a line for each run, a table of medians, and ours beside each contender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console
from rich.table import Table

from tests.bench.versus.figures import COLUMNS, Figures, ratios, spread

__all__ = ["Entry", "by_contender", "compared", "print_line", "print_table", "table_rows"]

_COMPARED = {"tokens/s": lambda run: run.tokens_rate, "valid/s": lambda run: run.valid_rate}


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender in one round: its figures, or why there are none."""

    contender: str
    turn: int
    figures: Figures | None = None
    failure: str = ""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """From what `dataclasses.asdict` made of it."""
        figures = None if stored["figures"] is None else Figures.read(stored["figures"])
        return cls(stored["contender"], stored["turn"], figures, stored["failure"])


def print_line(entry: Entry) -> None:
    """One run, and what the contender says of itself, a document."""
    run = entry.figures
    if run is None:
        print(f"{entry.contender}: {entry.failure}", flush=True)
        return
    judged = "" if run.judgement is None else f"{run.judgement.valid} valid, {run.judgement.closed} closed, "
    own = [f"{name} {1000 * value / run.documents:.1f} ms" for name, value in run.seconds.items()]
    if run.hit_rate is not None:
        own.append(f"prefix cache {run.hit_rate:.0%}")
    if run.steady_share is not None:
        own.append(f"engine's share {run.steady_share:.1%}")
    print(
        f"{entry.contender}: ready after {run.start_s:.1f} s, {run.documents} documents in {run.working_s:.1f} s, "
        f"whole {run.wall_s:.1f} s; {judged}{run.output_tokens} tokens, {run.peak_bytes / 1e9:.1f} GB",
        *([f"\n  a document: {', '.join(own)}"] if own else []),
        flush=True,
    )


def by_contender(entries: Sequence[Entry]) -> dict[str, dict[int, Figures]]:
    """The runs of each by round; in the order of their first appearance."""
    found: dict[str, dict[int, Figures]] = {}
    for entry in entries:
        runs = found.setdefault(entry.contender, {})
        if entry.figures is not None:
            runs[entry.turn] = entry.figures
    return found


def table_rows(entries: Sequence[Entry]) -> list[list[str]]:
    """A row for each contender: its name and a cell for each of `COLUMNS`; or its name and why there are none."""
    rows = []
    for name, runs in by_contender(entries).items():
        failures = [entry.failure for entry in entries if entry.contender == name and entry.figures is None]
        if not runs:
            rows.append([name, failures[-1]])
            continue
        cells = []
        for value, digits in COLUMNS.values():
            values = [found for run in runs.values() if (found := value(run)) is not None]
            cells.append(spread(values, digits))
        rows.append([f"{name} ({len(failures)} failed)" if failures else name, *cells])
    return rows


def compared(entries: Sequence[Entry], base: str) -> list[list[str]]:
    """One contender to each other, within each round: name, then median and spread of each ratio."""
    by_name = by_contender(entries)
    mine = by_name.get(base, {})
    return [
        [name, *(spread(ratios(mine, runs, value), 2) for value in _COMPARED.values())]
        for name, runs in by_name.items()
        if name != base and mine.keys() & runs.keys()
    ]


def print_table(entries: Sequence[Entry], title: str, base: str) -> None:
    """All of it."""
    table = Table(title=title, title_justify="left")
    table.add_column("contender")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    failed = []
    for row in table_rows(entries):
        if len(row) == 2:
            failed.append(row)
        else:
            table.add_row(*row)
    Console(width=180).print(table)
    for name, why in failed:
        print(f"{name}: {why}")
    for name, *cells in compared(entries, base):
        shown = (f"{what} {cell}" for what, cell in zip(_COMPARED, cells, strict=True) if cell != "–")
        print(f"{base} to {name}, of each round:", ", ".join(shown))
