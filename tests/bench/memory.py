"""Memory over many short documents: `python -m tests.bench.memory --documents 1000000`.

A run with the scripted engine on files of this machine.  Prints the highest resident memory of the driver and of each
worker, in MB (10^6 bytes) as the kernel counts it, and how many documents were done in what time.  A figure, no test.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.run.job import run
from pipeline.run.progress import Snapshot
from tests.integration.scripted import ROOT, job

ROW_GROUP_ROWS = 10_000


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
    """Of an actor of ours; None for any other process."""
    try:
        if not (folder / "cmdline").read_bytes().startswith(b"ray::Worker"):
            return None
        found = re.search(r"VmHWM:\s*(\d+) kB", (folder / "status").read_text())
    except OSError:
        return None
    return None if found is None else 1024 * int(found[1])


def write_documents(folder: Path, count: int) -> None:
    """Short documents in one Parquet object, a row group at a time."""
    folder.mkdir()
    schema = pa.schema([("document_id", pa.string()), ("text", pa.string())])
    with pq.ParquetWriter(folder / "a.parquet", schema, write_page_checksum=True) as writer:
        for start in range(0, count, ROW_GROUP_ROWS):
            numbers = range(start, min(count, start + ROW_GROUP_ROWS))
            texts = [f"note {number % 10_000} of some length" for number in numbers]
            columns = [pa.array([f"d{number}" for number in numbers]), pa.array(texts)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--shard-rows", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recordmill-memory-") as scratch:
        write_documents(Path(scratch) / "in", options.documents)
        spec = job(
            f"{scratch}/",
            None,
            input={"shard_rows": options.shard_rows},
            model={"engine": {"token_s": 0.0}},
            cluster={"engines": options.engines, "concurrency": 64},
        )
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        watch, started = Watch(), time.monotonic()
        result = run(spec, base=ROOT, progress=watch)
        took_s = time.monotonic() - started
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    done = 0 if result.report is None else result.report.balance.outcomes.valid
    print(f"{done} of {options.documents} documents valid in {took_s:.0f} s on {os.cpu_count()} CPUs")
    print(f"driver: peak {driver / 1e6:.0f} MB; {before / 1e6:.0f} MB before the run")
    for pid, peak in watch.peaks.items():
        print(f"worker {pid}: peak {peak / 1e6:.0f} MB")
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
