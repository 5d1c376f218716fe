"""Memory of a run: `python -m tests.bench.memory --case many --documents 1000000`.

A run with the scripted engine on files of this machine.  Prints what became of the documents, in what time, and the
highest resident memory of the driver and of each worker, in MB (10^6 bytes) as the kernel counts it.  A figure, no
test.  Cases: `many` short documents; one `document` of `--megabytes` between short ones; one Parquet `row-group` of
`--megabytes`, in documents of `--row-kilobytes`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.spec import JobSpec
from pipeline.run.job import run
from pipeline.run.progress import Snapshot
from tests.bench.heading import print_heading
from tests.bench.tables import Sheet, write_sheets
from tests.integration.scripted import ROOT, job, stored_rows

ROW_GROUP_ROWS = 10_000
SCHEMA = pa.schema([("document_id", pa.string()), ("text", pa.string())])
BATCH_BYTES = 32_000_000
NEIGHBOURS = 100
"""Short documents before a long one, and as many after it."""


class Watch:
    """A progress that looks at the workers' peaks, which the kernel forgets when they end."""

    def __init__(self) -> None:
        self.peaks: dict[int, int] = {}
        """Bytes by process id."""

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.phase != "extract":
            return
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and (peak := _peak_of_worker(folder)) is not None:
                self.peaks[int(folder.name)] = peak


def _peak_of_worker(folder: Path) -> int | None:
    """Of an actor of this run; None for any other process."""
    try:
        if not (folder / "cmdline").read_bytes().startswith(b"ray::Worker") or not _is_below_us(folder):
            return None
        return _peak(folder)
    except OSError:
        return None


def _is_below_us(folder: Path) -> bool:
    """Whether a process is a child of this one, or a child of a child: other runs on the machine are not ours."""
    while folder.name not in ("0", "1"):
        folder = folder.parent / str(_number(folder, "PPid"))
        if folder.name == str(os.getpid()):
            return True
    return False


def _peak(folder: Path) -> int:
    return 1024 * _number(folder, "VmHWM")


def _number(folder: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+)", (folder / "status").read_text(), re.MULTILINE)
    return 0 if found is None else int(found[1])


def write_many(path: Path, count: int) -> None:
    """Short documents, a row group at a time."""
    with pq.ParquetWriter(path, SCHEMA, write_page_checksum=True) as writer:
        for start in range(0, count, ROW_GROUP_ROWS):
            writer.write_table(pa.Table.from_batches([_short(start, min(count, start + ROW_GROUP_ROWS))]))


def write_document(path: Path, size_bytes: int) -> None:
    """One long document between short ones."""
    long = _batch([(NEIGHBOURS, next(_long_texts(size_bytes)))])
    _write_row_group(path, [_short(0, NEIGHBOURS), long, _short(NEIGHBOURS + 1, 2 * NEIGHBOURS + 1)])


def write_row_group(path: Path, size_bytes: int, row_bytes: int) -> None:
    """As many long documents as have so many bytes together."""
    count, texts = size_bytes // row_bytes, _long_texts(row_bytes)
    step = max(1, BATCH_BYTES // row_bytes)
    ranges = (range(start, min(count, start + step)) for start in range(0, count, step))
    _write_row_group(path, [_batch([(number, next(texts)) for number in numbers]) for numbers in ranges])


def _write_row_group(path: Path, batches: list[pa.RecordBatch]) -> None:
    table = pa.Table.from_batches(batches)
    pq.write_table(table, path, row_group_size=table.num_rows, write_page_checksum=True)


def _short(start: int, stop: int) -> pa.RecordBatch:
    return _batch([(number, "") for number in range(start, stop)])


def _batch(rows: list[tuple[int, str]]) -> pa.RecordBatch:
    texts = [f"note {number % 10_000} of some length {rest}" for number, rest in rows]
    return pa.RecordBatch.from_arrays([pa.array([f"d{number}" for number, _ in rows]), pa.array(texts)], schema=SCHEMA)


def _long_texts(size_bytes: int) -> Iterator[str]:
    """Words in no order, of which a page cannot be compressed away."""
    draw = random.Random(1)
    words = [f"{draw.getrandbits(32):x}" for _ in range(100_000)]
    stock = " ".join(draw.choices(words, k=size_bytes // 4 + 1_000_000))
    while True:
        start = draw.randrange(len(stock) - size_bytes)
        yield stock[start : start + size_bytes]


def _written(options: argparse.Namespace, folder: Path) -> None:
    """Writes the input in a process of its own, whose memory is not the driver's."""
    folder.mkdir()
    path, size_bytes = folder / "a.parquet", int(options.megabytes * 1e6)
    targets: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "many": (write_many, (path, options.documents)),
        "document": (write_document, (path, size_bytes)),
        "row-group": (write_row_group, (path, size_bytes, int(options.row_kilobytes * 1e3))),
    }
    target, arguments = targets[options.case]
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"the input could not be written: exit code {process.exitcode}")
    footer = pq.read_metadata(path)
    groups = [footer.row_group(index).total_byte_size for index in range(footer.num_row_groups)]
    print(
        f"{footer.num_rows} documents in {len(groups)} row groups of {max(groups) / 1e6:.0f} MB at most, "
        f"{path.stat().st_size / 1e6:.0f} MB compressed"
    )


def _outcomes(spec: JobSpec) -> Counter[str]:
    """Of every stored row, with one detail for each cause."""
    counts: Counter[str] = Counter()
    details: dict[tuple[str, str | None], str] = {}
    for row in stored_rows(spec):
        key = row["_status"], row["_cause"]
        detail = details.setdefault(key, row["_detail"] or "")
        counts[" ".join(part for part in (*key, f"({detail})" if detail else None) if part)] += 1
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one case and print the peaks."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__)
    parser.add_argument("--case", choices=("many", "document", "row-group"), default="many")
    parser.add_argument("--documents", type=int, default=1_000_000, help="of `many`")
    parser.add_argument("--megabytes", type=float, help="of the document (50) or the row group (2000)")
    parser.add_argument("--row-kilobytes", type=float, default=1000.0)
    parser.add_argument("--document-bytes", type=int, help="limits.document_bytes")
    parser.add_argument("--long-documents", choices=("reject", "head", "tail"), default="head")
    parser.add_argument("--context", type=int, default=1 << 16, help="of the engine, in tokens, which are bytes here")
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--shard-rows", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    options = parser.parse_args(arguments)
    if options.megabytes is None:
        options.megabytes = 50.0 if options.case == "document" else 2000.0
    print_heading("memory", options, "ray", "pyarrow")
    with tempfile.TemporaryDirectory(prefix="recordmill-memory-") as scratch:
        _written(options, Path(scratch) / "in")
        spec = job(
            f"{scratch}/",
            None,
            input={"shard_rows": options.shard_rows},
            model={"engine": {"token_s": 0.0, "max_model_len": options.context}},
            truncation={"long_documents": options.long_documents},
            limits={} if options.document_bytes is None else {"document_bytes": options.document_bytes},
            cluster={"engines": options.engines, "concurrency": 64},
        )
        driver_folder = Path("/proc/self")
        before = _peak(driver_folder)
        watch, started = Watch(), time.monotonic()
        result = run(spec, base=ROOT, progress=watch)
        took_s, driver = time.monotonic() - started, _peak(driver_folder)
        print(f"exit code {result.exit_code} in {took_s:.0f} s on {os.cpu_count()} CPUs")
        outcomes = Sheet("Outcomes", ("outcome", "documents"))
        for outcome, count in _outcomes(spec).most_common():
            outcomes.add(outcome, count)
    peaks = Sheet("Highest resident memory", ("process", "MB"))
    peaks.add("driver", f"{driver / 1e6:.0f}")
    peaks.add("driver, before the run", f"{before / 1e6:.0f}")
    for number, peak in enumerate(watch.peaks.values(), 1):
        peaks.add(f"worker {number}", f"{peak / 1e6:.0f}")
    for sheet in (outcomes, peaks):
        sheet.print()
    write_sheets([outcomes, peaks], options.out)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
