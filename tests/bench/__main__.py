"""Every benchmark, one after the other, and one page of them: `python -m tests.bench`, or `make bench`.

All of them take about four hours on two cores, and want the machine for themselves; `--list` says how long each takes.
`--only masks,versus-notes` runs some.  What comes of a run is kept under `docs/bench`, and the page is made of all that
is there: a failed run replaces nothing.  `--page-only` makes the page anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.catalogue import BENCHMARKS
from tests.bench.data import DATA_VARIABLE
from tests.bench.job import CHECKOUT
from tests.bench.page import page
from tests.bench.results import RESULTS, commit, read_failures, read_results, run_benchmark, store

PAGE = CHECKOUT / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and write the page; 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", help=f"some of {', '.join(item.name for item in BENCHMARKS)}")
    parser.add_argument("--page-only", action="store_true")
    parser.add_argument("--list", action="store_true", help="name them, with minutes and limits, and end")
    parser.add_argument("--data", type=Path, help=f"the folder of third-party data; else {DATA_VARIABLE} names it")
    parser.add_argument("--allow-dirty", action="store_true", help="also where files differ from the commit")
    chosen = parser.parse_args(arguments)
    if chosen.data:
        os.environ[DATA_VARIABLE] = str(chosen.data.resolve())
    if chosen.list:
        _list()
        return 0
    names = chosen.only.split(",") if chosen.only else [item.name for item in BENCHMARKS]
    if unknown := sorted(set(names) - {item.name for item in BENCHMARKS}):
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    if not chosen.page_only and not chosen.allow_dirty and commit().endswith("+"):
        parser.error("files differ from the commit that the page would name; commit them, or say --allow-dirty")
    failed = [] if chosen.page_only else _run(names)
    _write_page()
    if failed:
        print(f"failed: {', '.join(failed)}; see {RESULTS / 'failed'}", file=sys.stderr)
    return 1 if failed else 0


def _list() -> None:
    for item in BENCHMARKS:
        note = "" if item.needs is None or item.needs().exists() else ", no data"
        print(f"{item.name:16} about {item.minutes} minutes, {item.limit_minutes} at most{note}: {item.title}")


def _run(names: Sequence[str]) -> list[str]:
    """Those that failed."""
    failed = []
    for item in BENCHMARKS:
        if item.name not in names:
            continue
        if item.needs is not None and not item.needs().exists():
            print(f"== {item.name}: skipped: no data", flush=True)
            continue
        ran = run_benchmark(item)
        store(ran)
        if ran.exit_code:
            failed.append(item.name)
        _write_page()
    return failed


def _write_page() -> None:
    PAGE.write_text(page(read_results(), read_failures()))


if __name__ == "__main__":
    sys.exit(main())
