"""Which benchmarks there are, what each is called with, how long it takes, and what it needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench.data import maskbench_file, receipts_file

__all__ = ["BENCHMARKS", "Benchmark"]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A command of this package, and what its figures say to a reader.

    `minutes` is what it took on two quiet cores or is expected to, `limit_minutes` when it is ended.  `needs` names a
    file that a clone alone has not.  `has_figures` says that the command takes `--out`.
    """

    name: str
    title: str
    module: str
    arguments: tuple[str, ...] = ()
    minutes: int = 5
    limit_minutes: int = 30
    needs: Callable[[], Path] | None = None
    has_figures: bool = False
    plot: str | None = None

    @property
    def command(self) -> str:
        return shlex.join(("python", "-m", f"tests.bench.{self.module}", *self.arguments))


_NOTES = (
    "ours;Ray Data LLM;Ray Data LLM, compact;Ray Data LLM, outlines;LLM.generate;engine alone;engine alone, one process"
)

BENCHMARKS = (
    Benchmark(
        "versus-receipts",
        "Whole jobs beside Ray Data LLM and others: real receipts",
        "versus",
        ("--repeats", "3"),
        minutes=65,
        limit_minutes=150,
        needs=receipts_file,
        has_figures=True,
    ),
    Benchmark(
        "versus-notes",
        "The same where the model costs next to nothing: short notes, random weights",
        "versus",
        ("--workload", "notes", "--repeats", "3", "--contenders", _NOTES),
        minutes=40,
        limit_minutes=120,
        has_figures=True,
    ),
    Benchmark(
        "masks", "What a mask costs", "masks", ("--timeout", "60"), minutes=22, limit_minutes=60, has_figures=True
    ),
    Benchmark("rows", "What writing a mask's row costs: whole, and where it differs", "rows", has_figures=True),
    Benchmark("apply", "What applying masks costs on a CPU: vLLM's way and ours", "apply", minutes=1, has_figures=True),
    Benchmark(
        "maskbench",
        "MaskBench: which schemas compile, and which instances are told apart",
        "maskbench",
        ("--sample", "600", "--seed", "11", "--engines", "ours", "--timeout", "30"),
        minutes=8,
        needs=maskbench_file,
        has_figures=True,
    ),
    Benchmark(
        "maskbench-peers",
        "MaskBench beside others, on other schemas",
        "maskbench",
        ("--sample", "200", "--seed", "5", "--timeout", "10"),
        minutes=4,
        needs=maskbench_file,
        has_figures=True,
    ),
    Benchmark(
        "receipts-smollm2",
        "Extractive fields on real receipts, 135 million parameters",
        "receipts",
        minutes=20,
        limit_minutes=60,
        needs=receipts_file,
        has_figures=True,
    ),
    Benchmark(
        "receipts-gemma",
        "Extractive fields, 270 million parameters",
        "receipts",
        ("--model", "gemma"),
        minutes=22,
        limit_minutes=60,
        needs=receipts_file,
        has_figures=True,
    ),
    Benchmark("spans", "What finding a document's candidates costs", "spans", minutes=1, has_figures=True),
    Benchmark(
        "budgets",
        "Tight budgets: ours beside what a user would do instead",
        "budgets",
        minutes=15,
        limit_minutes=45,
        needs=receipts_file,
        has_figures=True,
    ),
    Benchmark("drafts", "What drafts of forced text save, an experiment", "drafts", minutes=8, has_figures=True),
    Benchmark("closing", "Whether every record closes", "closing", minutes=10, has_figures=True),
    Benchmark(
        "simulation",
        "The driver at 10,000 to 10 million documents, on a made-up clock",
        "simulation",
        ("--plot", "docs/growth.svg"),
        minutes=1,
        has_figures=True,
        plot="growth.svg",
    ),
    Benchmark("memory", "Memory over a million documents", "memory", minutes=20, limit_minutes=60, has_figures=True),
)
