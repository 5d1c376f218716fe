"""Every benchmark, one after the other, and one page of what they printed: `python -m tests.bench`, or `make bench`.

All of them take about three hours on two cores, and want the machine for themselves.  `--only masks,versus-notes` runs
some; the page then holds the new output beside what `.cache/bench` has of the others.  `--page-only` makes the page
anew from there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import jinja2

CHECKOUT = Path(__file__).resolve().parents[2]
OUTPUT = CHECKOUT / ".cache" / "bench"
PAGE = CHECKOUT / "docs" / "benchmarks.md"
PLOT = CHECKOUT / "docs" / "growth.svg"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A command of this package, and what its figures say to a reader."""

    name: str
    title: str
    module: str
    arguments: tuple[str, ...] = ()
    plot: str | None = None

    @property
    def command(self) -> str:
        return " ".join(("python -m", f"tests.bench.{self.module}", *map(_quoted, self.arguments)))


BENCHMARKS = (
    Benchmark(
        "versus-receipts",
        "Whole jobs beside Ray Data LLM and others: real receipts",
        "versus",
        ("--repeats", "3"),
    ),
    Benchmark(
        "versus-notes",
        "The same where the model costs next to nothing: short notes, random weights",
        "versus",
        (
            *("--workload", "notes", "--repeats", "3", "--contenders"),
            "ours;Ray Data LLM;Ray Data LLM, compact;Ray Data LLM, outlines;LLM.generate;engine alone",
        ),
    ),
    Benchmark("masks", "What a mask costs", "masks", ("--timeout", "60")),
    Benchmark("apply", "What applying masks costs on a CPU: vLLM's way and ours", "apply"),
    Benchmark(
        "maskbench",
        "MaskBench: which schemas compile, and which instances are told apart",
        "maskbench",
        ("--sample", "600", "--seed", "11", "--engines", "ours", "--timeout", "30"),
    ),
    Benchmark(
        "maskbench-peers",
        "MaskBench beside others, on other schemas",
        "maskbench",
        ("--sample", "200", "--seed", "5", "--timeout", "10"),
    ),
    Benchmark("receipts-smollm2", "Extractive fields on real receipts, 135 million parameters", "receipts"),
    Benchmark("receipts-gemma", "Extractive fields, 270 million parameters", "receipts", ("--model", "gemma")),
    Benchmark("spans", "What finding a document's candidates costs", "spans"),
    Benchmark("budgets", "Tight budgets: ours beside what a user would do instead", "budgets"),
    Benchmark("drafts", "What drafts of forced text save, an experiment", "drafts"),
    Benchmark("closing", "Whether every record closes", "closing"),
    Benchmark(
        "simulation",
        "The driver at 10,000 to 10 million documents, on a made-up clock",
        "simulation",
        ("--plot", PLOT.relative_to(CHECKOUT).as_posix()),
        PLOT.name,
    ),
    Benchmark("memory", "Memory over a million documents", "memory"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """One benchmark's last run."""

    name: str
    commit: str
    machine: str
    day: str
    minutes: float
    exit_code: int
    text: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and write the page; 1 if a benchmark failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", help=f"some of {', '.join(item.name for item in BENCHMARKS)}")
    parser.add_argument("--page-only", action="store_true")
    chosen = parser.parse_args(arguments)
    names = chosen.only.split(",") if chosen.only else [item.name for item in BENCHMARKS]
    if unknown := sorted(set(names) - {item.name for item in BENCHMARKS}):
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    failed = []
    for item in BENCHMARKS:
        if item.name in names and not chosen.page_only:
            ran = _run(item)
            if ran.exit_code:
                failed.append(item.name)
            _write_page()
    _write_page()
    if failed:
        print(f"failed: {', '.join(failed)}; see {OUTPUT}", file=sys.stderr)
    return 1 if failed else 0


def _run(item: Benchmark) -> Ran:
    print(f"== {item.name}: {item.command}", flush=True)
    commit = _commit()
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{item.module}", *item.arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line.rstrip())
    code = process.wait()
    minutes = (time.monotonic() - started) / 60
    ran = Ran(item.name, commit, _machine(), time.strftime("%Y-%m-%d"), minutes, code, "\n".join(lines))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / f"{item.name}.json").write_text(json.dumps(asdict(ran), indent=2))
    return ran


def _commit() -> str:
    """The commit, with a `+` where other files than the page's differ from it."""
    pages = [f":!{path.relative_to(CHECKOUT)}" for path in (PAGE, PLOT)]
    name, changed = (
        subprocess.run(["git", *words], capture_output=True, text=True, cwd=CHECKOUT, check=False).stdout.strip()
        for words in (["rev-parse", "--short", "HEAD"], ["diff", "HEAD", "--name-only", "--", ".", *pages])
    )
    return (name or "unknown") + "+" * bool(changed)


def _write_page() -> None:
    """Every benchmark that has a result; one that failed shows where it ended."""
    stored = {path.stem: Ran(**json.loads(path.read_text())) for path in OUTPUT.glob("*.json")}
    shown = [(item, stored[item.name]) for item in BENCHMARKS if item.name in stored]
    PAGE.write_text(_TEMPLATE.render(shown=shown))


def _machine() -> str:
    """Processor, cores, memory and system, without names of hosts."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {model}, {gigabytes:.0f} GiB of memory, {platform.system()} {platform.machine()}"


def _quoted(word: str) -> str:
    return f'"{word}"' if set(word) & set(" ;") else word


_TEMPLATE = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True).from_string(
    """# Benchmarks

Made by `make bench`, from what each command printed. Times on a shared machine vary; compare what stands in one table,
which was measured in one run.
{% for item, ran in shown %}

## {{ item.title }}

`{{ item.command }}`, commit {{ ran.commit }}, {{ ran.day }}, {{ "%.0f"|format(ran.minutes) }} minutes on
{{ ran.machine }}
{%- if ran.exit_code %}, **ended with code {{ ran.exit_code }}**{% endif %}


```text
{{ ran.text }}
```
{% if item.plot and not ran.exit_code %}

![{{ item.title }}]({{ item.plot }})
{% endif %}
{% endfor %}
"""
)


if __name__ == "__main__":
    sys.exit(main())
