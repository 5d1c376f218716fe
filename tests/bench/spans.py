"""How fast a document's candidates are found, and how many answers of real receipts are among them.

`python -m tests.bench.spans`

One process, one thread, median and slowest of several runs after one to warm up.  The receipts are in
`../shared/data/receipts` and are left out where a checkout has none.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from dateutil import parser as date_parser

from demo.documents import receipts
from pipeline.decoding.span_document import SpanView
from pipeline.spans import SpanFinder, folded
from pipeline.spans.views import spelt
from tests.bench.records import RECEIPTS

__all__ = ["main"]

KINDS: Mapping[str, Mapping[str, Any]] = {
    "line": {"type": "string"},
    "line, 8 words": {"type": "string", "max_words": 8, "max_length": 80},
    "sentence": {"type": "string", "within": "sentence"},
    "document": {"type": "string", "within": "document"},
    "characters": {"type": "string", "words": False},
    "pattern": {"type": "string", "pattern": r"[A-Z]{2}[0-9]{3,8}|\d{2}/\d{2}/\d{4}"},
    "min_length 3": {"type": "string", "min_length": 3},
    "date": {"type": "date", "date_order": "dmy"},
    "datetime": {"type": "datetime"},
    "decimal": {"type": "decimal"},
    "enum": {"type": "enum", "values": ["CASH", "CARD", "RM", "USD", "Credit Note"]},
}
_WORDS = ["Zürich", "café", "naïve", "東京都", "инвойс", "مجموع", "₹", "“quoted”", "\\path"]


def _text(length: int, *, is_ascii: bool) -> str:
    """So many characters of made-up receipts."""
    rng = random.Random(5)
    parts: list[str] = []
    size = 0
    pages = [text for _, text, _ in receipts(40, 3) if text is not None]
    while size < length:
        page = rng.choice(pages)
        parts.append(page if is_ascii else page.replace(" ", f" {rng.choice(_WORDS)} ", 12))
        size += len(parts[-1]) + 1
    return "\n".join(parts)[:length]


def _times_ms(call: Callable[[], object], count: int) -> list[float]:
    call()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1000)
    return times


def _print_times() -> None:
    print(f"{'kind':16} {'text':>10} {'characters':>10} {'starts':>9} {'median ms':>10} {'slowest':>9}")
    for name, kind in KINDS.items():
        finder = SpanFinder([kind])
        for size, count in ((4_000, 30), (1_000_000, 3)):
            for is_ascii in (True, False):
                text = _text(size, is_ascii=is_ascii)
                times = _times_ms(lambda finder=finder, text=text: finder.document(text), count)  # type: ignore[misc]
                starts = len(finder.document(text).views[0].starts)
                label = "ASCII" if is_ascii else "mixed"
                figures = f"{statistics.median(times):10.2f} {max(times):9.2f}"
                print(f"{name:16} {label:>10} {len(text):10,} {starts:9,} {figures}")


def _can_say(view: SpanView, value: bytes) -> bool:
    """Whether a stretch of the view is exactly this."""
    buffer = view.buffer.tobytes()
    at = buffer.find(value)
    while at >= 0:
        index = int(np.searchsorted(view.starts, at))
        is_start = index < len(view.starts) and view.starts[index] == at
        if is_start and view.is_end[at + len(value)] and at + len(value) <= view.lasts[index]:
            return True
        at = buffer.find(value, at + 1)
    return False


def _values(view: SpanView) -> list[str]:
    buffer = view.buffer.tobytes()
    return [buffer[start:last].decode() for start, last in zip(view.starts, view.lasts, strict=True)]


def _share(name: str, found: Sequence[bool]) -> None:
    print(f"{name:20} {sum(found):4} of {len(found)}  {sum(found) / len(found):6.1%}")


def _print_reach() -> None:
    if not RECEIPTS.exists():
        print("no receipts in this checkout")
        return
    whole = {"type": "string", "within": "document", "lines": True}
    finder = SpanFinder([KINDS["line"], KINDS["date"], KINDS["decimal"], KINDS["document"], whole])
    names = ("company", "date", "total", "address", "company, whole lines", "address, whole lines")
    reached: dict[str, list[bool]] = {name: [] for name in names}
    sizes: list[tuple[int, int]] = []
    for row in pq.read_table(RECEIPTS).to_pylist():
        document = finder.document(row["text"])
        lines, dates, totals, anywhere, whole_lines = document.views
        for name, view in (("company", lines), ("address", anywhere)):
            if row[f"gold_{name}"] is not None:
                gold = spelt(folded(row[f"gold_{name}"]))
                reached[name].append(_can_say(view, gold))
                reached[f"{name}, whole lines"].append(_can_say(whole_lines, gold))
        if row["gold_date"] is None or row["gold_total"] is None:
            continue
        day: date = date_parser.parse(row["gold_date"], dayfirst=not row["gold_date"][:4].isdecimal()).date()
        reached["date"].append(day.isoformat() in _values(dates))
        amount = Decimal(row["gold_total"].replace("RM", "").replace("$", "").replace(",", "").strip())
        reached["total"].append(amount in {Decimal(value) for value in _values(totals)})
        sizes.append((len(set(_values(dates))), len(set(_values(totals)))))
    print("\nanswers of real receipts that are among the candidates")
    for name, found in reached.items():
        _share(name, found)
    dates_seen, totals_seen = (statistics.mean(column) for column in zip(*sizes, strict=True))
    print(f"different values of a receipt, on average: {dates_seen:.1f} dates, {totals_seen:.1f} decimals")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("times", "reach"), help="one of the two tables")
    chosen = parser.parse_args(arguments).only
    if chosen != "reach":
        _print_times()
    if chosen != "times":
        _print_reach()


if __name__ == "__main__":
    main()
