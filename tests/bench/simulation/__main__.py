"""A run at the scale it is meant for, on a made-up clock: `python -m tests.bench.simulation --documents 10000000`.

Each size runs some times, with another seed each time and in a process of its own, so that its peak of memory is its
own; medians are printed.  A second table shows what the order of the shards costs where row groups differ in length.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from tests.bench.heading import print_heading
from tests.bench.simulation.drawing import draw, growth, growth_table, order_table
from tests.bench.simulation.measured import Figures, measure, median
from tests.bench.simulation.order import Skew, Tail, tails
from tests.bench.simulation.weather import Weather

DEFAULT_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
ORDER_SIZES = ((20_000, 20), (100_000, 50), (1_000_000, 100))
"""Documents and engines of the second table: 10, 20 and 100 shards an engine."""
WHAT = """\
real       shards from row groups and their order, the plan's file, ledger, dispatcher, fleet, the driver's loop
simulated  the cluster and its clock: engines start, work, fall behind, fail, die and are taken away as the weather says
left out   listing objects, reading their footers, compiling a guide, Ray, storage, and making the report"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every size; print both tables, and draw the first one where a file is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulation", description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=list(DEFAULT_SIZES))
    parser.add_argument("--documents-per-engine", type=int, default=10_000, help="sets the number of engines")
    parser.add_argument("--shard-rows", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[7, 8, 9], help="one run each; medians are printed")
    parser.add_argument("--calm", action="store_true", help="no failures, deaths, spot losses or stragglers")
    parser.add_argument("--no-order", action="store_true", help="leave the second table out")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--plot", type=Path, help="draw the growth of each figure into this SVG file")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    weather = Weather(straggler=0, failure=0, death=0, waves_an_hour=0) if chosen.calm else Weather()
    logging.disable(logging.WARNING)  # every engine that is lost is a line
    if chosen.one:
        (documents,), (seed,) = chosen.documents, chosen.seeds
        engines = max(1, documents // chosen.documents_per_engine)
        print(json.dumps(asdict(measure(documents, engines, chosen.shard_rows, weather, seed))))
        return 0
    print_heading("simulation", chosen)
    print(WHAT)
    print(weather)
    seeds = ", ".join(map(str, chosen.seeds))
    print(f"medians of {len(chosen.seeds)} runs of each size, with seeds {seeds}")
    found = [_measured(documents, chosen) for documents in chosen.documents]
    Console(width=160).print(growth_table(found))
    print(growth(found))
    orders = [] if chosen.no_order else _orders(chosen, weather)
    if chosen.plot:
        draw(found, chosen.plot)
    if chosen.out:
        both = {"growth": [asdict(item) for item in found], "order": [asdict(item) for item in orders]}
        chosen.out.write_text(json.dumps(both, indent=2))
    return 0


def _measured(documents: int, chosen: argparse.Namespace) -> Figures:
    command = [sys.executable, "-m", "tests.bench.simulation", "--one", "--documents", str(documents)]
    command += ["--documents-per-engine", str(chosen.documents_per_engine), "--shard-rows", str(chosen.shard_rows)]
    command += ["--calm"] if chosen.calm else []
    runs = []
    for seed in chosen.seeds:
        done = subprocess.run([*command, "--seeds", str(seed)], capture_output=True, text=True, check=True)
        runs.append(Figures(**json.loads(done.stdout)))
    return median(runs)


def _orders(chosen: argparse.Namespace, weather: Weather) -> list[Tail]:
    skew = Skew()
    print(
        f"\n{skew}: text of a row group in multiples of the shortest, and the time with it; "
        f"medians of {len(chosen.seeds)} runs; of the weather, only spread and stragglers"
    )
    found = [
        tail
        for documents, engines in ORDER_SIZES
        for tail in tails(documents, engines, chosen.shard_rows, weather, skew, chosen.seeds)
    ]
    Console(width=160).print(order_table(found))
    return found


if __name__ == "__main__":
    sys.exit(main())
