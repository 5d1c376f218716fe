"""How fast a document's candidates are found, what a step costs that copies, and how many answers are candidates.

`python -m tests.bench.spans`

One process, one thread, median and slowest of several runs after one to warm up.  The receipts are in
a folder of their own (`tests.bench.data`) and are left out where there are none.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from dateutil import parser as date_parser

from demo.documents import receipts
from demo.models import default_cache
from pipeline.decoding import Guide, SpanDocument, Vocabulary, compile_grammar, compile_guide
from pipeline.decoding.span_document import SpanView
from pipeline.spans import SpanFinder, folded
from pipeline.spans.views import spelt
from schemas.scanned_receipt import ScannedReceipt
from tests.bench.heading import print_heading
from tests.bench.receipts import MODELS
from tests.bench.records import RECEIPTS
from tests.bench.tables import Sheet, write_sheets

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


def _times() -> Sheet:
    sheet = Sheet("Finding candidates", ("kind", "text", "characters", "starts", "median ms", "slowest ms"))
    for name, kind in KINDS.items():
        finder = SpanFinder([kind])
        for size, count in ((4_000, 30), (1_000_000, 3)):
            for is_ascii in (True, False):
                text = _text(size, is_ascii=is_ascii)
                times = _times_ms(lambda finder=finder, text=text: finder.document(text), count)  # type: ignore[misc]
                starts = len(finder.document(text).views[0].starts)
                label = "ASCII" if is_ascii else "mixed"
                median, slowest = f"{statistics.median(times):.2f}", f"{max(times):.2f}"
                sheet.add(name, label, f"{len(text):,}", f"{starts:,}", median, slowest)
    return sheet


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


def _reach() -> Sheet:
    if not RECEIPTS.exists():
        return Sheet("Answers among the candidates: skipped, no data", ("field",))
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
    dates_seen, totals_seen = (statistics.mean(column) for column in zip(*sizes, strict=True))
    sheet = Sheet(
        "Answers of real receipts that are among the candidates; different values of a receipt, on average: "
        f"{dates_seen:.1f} dates, {totals_seen:.1f} decimals",
        ("field", "among them", "of", "share"),
    )
    for name, found in reached.items():
        sheet.add(name, sum(found), len(found), f"{sum(found) / len(found):.1%}")
    return sheet


def _steps() -> Sheet:
    """Mask and advance, for steps that begin or go on with a copied value and for all others."""
    from transformers import AutoTokenizer

    sheet = Sheet("Mask and advance of a step", ("steps", "vocabulary", "number", "median µs", "99th percentile µs"))
    texts = [text for _, text, _ in receipts(48, 5) if text is not None]
    for model in MODELS.values():
        vocabulary = Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(str(model(default_cache()))))
        guide = compile_guide(compile_grammar(ScannedReceipt), vocabulary)
        finder = SpanFinder.of_guide(guide, "dmy")
        times: dict[str, list[float]] = {"that copy": [], "of the schema": []}
        for number, text in enumerate(texts):
            _walk(guide, finder.document(text), random.Random(number), times)
        for name, found in times.items():
            median, high = np.percentile(found, [50, 99])
            sheet.add(name, f"{vocabulary.size:,}", f"{len(found):,}", f"{median:.1f}", f"{high:.1f}")
    return sheet


def _walk(guide: Guide, document: SpanDocument, rng: random.Random, times: dict[str, list[float]]) -> None:
    """One record of random legal ids, within 160 of them."""
    cursor = guide.cursor(160, guide.usual_reserve, document)
    mask = np.zeros(guide.words, np.uint32)
    address = mask.ctypes.data_as(ctypes.c_void_p).value
    assert address is not None
    while not cursor.is_terminated:
        is_copied = not isinstance(cursor.state, int) or cursor.state in guide.hole_of_state
        begin = time.perf_counter_ns()
        cursor.write_mask(address)
        filled = time.perf_counter_ns()
        legal = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: guide.vocab_size])
        token_id = int(rng.choice(legal.tolist()))
        asked = time.perf_counter_ns()
        cursor.advance(token_id)
        took_us = (filled - begin + time.perf_counter_ns() - asked) / 1000
        times["that copy" if is_copied else "of the schema"].append(took_us)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spans", description=__doc__)
    parser.add_argument("--only", choices=("times", "steps", "reach"), help="one of the tables")
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    options = parser.parse_args(arguments)
    chosen = options.only
    print_heading("spans", options, "numpy", "numba")
    sheets = []
    for name, table in (("times", _times), ("steps", _steps), ("reach", _reach)):
        if chosen in (None, name):
            sheets.append(table())
            sheets[-1].print()
    write_sheets(sheets, options.out)


if __name__ == "__main__":
    main()
