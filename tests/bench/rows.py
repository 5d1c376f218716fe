"""What writing a mask's row costs: whole, and by the words where it differs from a row much like it, as cursors do.

`python -m tests.bench.rows --vocabulary .cache/models/gemma3-270m`

One process replays the same records in turn, all with one way and then all with the other, so that a machine that is
faster at times is so for both.  Whole rows are written by the same machine code, and the others as the opened guide has
them.  Prints microseconds of mask and advance, medians over the rounds, and how many rows the records come by.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock

import numpy as np

from pipeline.decoding import row_writers
from pipeline.decoding.row_shelf import Row
from pipeline.decoding.row_writers import RowWriters
from tests.bench.heading import print_heading
from tests.bench.masks_child import SPARE_TOKENS
from tests.bench.ours import Ours
from tests.bench.records import MODELS, records_of
from tests.bench.tables import Sheet, write_sheets
from tests.bench.vocabularies import read_vocabulary

_RECORDS = 12
_COLUMNS = ("record", "rows", "all whole µs", "as cursors do µs", "ratio")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rows", description=__doc__)
    parser.add_argument("--vocabulary", default=".cache/models/gemma3-270m")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    print_heading("rows", chosen, "numba", "numpy")
    vocabulary = read_vocabulary(chosen.vocabulary)
    sheet = Sheet(f"Rows of {vocabulary.size:,} ids, median / 99th percentile", _COLUMNS)
    for name, schema in MODELS.items():
        guide: Any = Ours(vocabulary).compile(schema).guide
        records = [vocabulary.encode(text) for text in records_of(name, _RECORDS)]
        for budget in (None, max(map(len, records)) + SPARE_TOKENS):
            label = name if budget is None else f"{name}, within a budget"
            sheet.add(label, *_cells(guide, records, budget, chosen.rounds))
    sheet.print()
    write_sheets([sheet], chosen.out)
    return 0


def _cells(guide: Any, records: Sequence[Sequence[int]], budget: int | None, rounds: int) -> list[Any]:
    rows = _rows(guide, records, budget)
    differing = {row: guide.writer(row) for row in rows}
    with mock.patch.multiple(row_writers, _CHANGED_SHARE=1 << 30, _MOST_BASES=0):
        writers = RowWriters(guide.words)
        whole = {row: writers.writer(row.words) for row in rows}
    ways = {"whole": whole, "differing": differing}
    times: dict[str, list[Any]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name in sorted(ways, reverse=bool(turn % 2)):
            for row, write in ways[name].items():
                row.write = write
            times[name].append(_quantiles(guide, records, budget))
    middle = {name: np.median(found[rounds // 10 :], axis=0) for name, found in times.items()}
    ratio = middle["differing"] / middle["whole"]
    shown = [f"{middle[name][0]:.2f} / {middle[name][1]:.2f}" for name in ways]
    return [len(rows), *shown, f"{ratio[0]:.2f} / {ratio[1]:.2f}"]


def _rows(guide: Any, records: Sequence[Sequence[int]], budget: int | None) -> list[Row]:
    """All rows that the records come by, each once."""
    rows: dict[Row, None] = {}
    for token_ids in records:
        cursor = guide.cursor(budget)
        for token_id in token_ids:
            rows[cursor.row()] = None
            cursor.advance(token_id)
    return list(rows)


def _quantiles(guide: Any, records: Sequence[Sequence[int]], budget: int | None) -> Any:
    """Microseconds of a mask and an advance, p50 and p99."""
    mask = np.zeros(guide.words, np.uint32)
    address, times = mask.ctypes.data, []
    for token_ids in records:
        cursor = guide.cursor(budget)
        write_mask, advance = cursor.write_mask, cursor.advance
        for token_id in token_ids:
            started = perf_counter()
            write_mask(address)
            advance(token_id)
            times.append((perf_counter() - started) * 1e6)
    return np.percentile(times, (50, 99))


if __name__ == "__main__":
    sys.exit(main())
