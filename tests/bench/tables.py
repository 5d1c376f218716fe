"""A table that is printed, and stored for the page: titles, columns and cells, all text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

__all__ = ["Sheet", "write_sheets"]


@dataclass(slots=True)
class Sheet:
    """Rows under named columns; the first column stands to the left."""

    title: str
    columns: tuple[str, ...]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """One row; a cell is shown as `str` has it."""
        self.rows.append([str(cell) for cell in cells])

    def print(self) -> None:
        """On the screen."""
        table = Table(title=self.title, title_justify="left")
        for index, name in enumerate(self.columns):
            table.add_column(name, justify="right" if index else "left")
        for row in self.rows:
            table.add_row(*row)
        Console(width=140).print(table)


def write_sheets(sheets: Sequence[Sheet], path: Path | None) -> None:
    """As JSON, where a file is named."""
    if path is not None:
        path.write_text(json.dumps({"sheets": [asdict(sheet) for sheet in sheets]}))
