"""Owns results: runs one benchmark, and keeps what came of it under `docs/bench`, without a machine's own paths."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from tests.bench.catalogue import Benchmark
from tests.bench.data import data_folder
from tests.bench.heading import machine
from tests.bench.job import CHECKOUT

__all__ = ["RESULTS", "Ran", "commit", "read_failures", "read_results", "run_benchmark", "scrubbed", "store"]

RESULTS = CHECKOUT / "docs" / "bench"
_ERROR_LINES = 40
_MADE = ("docs/benchmarks.md", "docs/growth.svg", "docs/bench")
_TOO_LONG = 124
"""The exit code of what was ended, as `timeout` has it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one benchmark.  `figures` is what its command wrote with `--out`; `error` the end of its stderr."""

    name: str
    command: str
    commit: str
    machine: str
    day: str
    minutes: float
    exit_code: int
    text: str
    figures: Any = None
    error: str = ""


def commit() -> str:
    """The commit, with a `+` where files that git does not ignore, those that are made here apart, differ from it."""
    made = [f":!{path}" for path in _MADE]
    name, changed = (
        subprocess.run(["git", *words], capture_output=True, text=True, cwd=CHECKOUT, check=False).stdout.strip()
        for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", ".", *made])
    )
    return (name or "unknown") + "+" * bool(changed)


def run_benchmark(item: Benchmark) -> Ran:
    """Runs it, its output shown as it comes; ends it with all below it when its time is up."""
    print(f"== {item.name}: {item.command}", flush=True)
    found, where, started = commit(), machine(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="recordmill-bench-") as scratch:
        out = Path(scratch) / "figures.json"
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.bench.{item.module}", *item.arguments]
            + (["--out", str(out)] if item.has_figures else []),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        )
        lines: list[str] = []
        errors: deque[str] = deque(maxlen=_ERROR_LINES)
        readers = [
            threading.Thread(target=_copy, args=(process.stdout, sys.stdout, lines)),
            threading.Thread(target=_copy, args=(process.stderr, sys.stderr, errors)),
        ]
        for reader in readers:
            reader.start()
        try:
            code = process.wait(60 * item.limit_minutes)
        except subprocess.TimeoutExpired:
            _end_family(process.pid)
            process.wait()
            code = _TOO_LONG
            errors.append(f"not done in {item.limit_minutes} minutes")
        for reader in readers:
            reader.join()
        figures = json.loads(out.read_text()) if out.exists() else None
    minutes = (time.monotonic() - started) / 60
    day = time.strftime("%Y-%m-%d")
    text = "\n".join(lines)
    error = "\n".join(errors) if code else ""
    return Ran(item.name, item.command, found, where, day, minutes, code, text, _kept(figures), error)


def _copy(source: IO[str], screen: IO[str], kept: list[str] | deque[str]) -> None:
    for line in source:
        print(line, end="", flush=True, file=screen)
        kept.append(line.rstrip())


def _end_family(pid: int) -> None:
    """A process and all below it, in whatever session."""
    root = psutil.Process(pid)
    for process in (*root.children(recursive=True), root):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue


def _kept(figures: Any) -> Any:
    """MaskBench's answers to each instance are left out: their summary is what the page shows."""
    return {key: value for key, value in figures.items() if key != "engines"} if isinstance(figures, dict) else figures


def scrubbed(text: str) -> str:
    """Without the places where this machine keeps things."""
    for path, name in ((data_folder(), "DATA"), (CHECKOUT, "."), (Path.home(), "~")):
        text = text.replace(str(path), name)
    return re.sub(r"/tmp/[^\s\"';,)]*", "/tmp/...", text)


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrubbed(value)
    if isinstance(value, dict):
        return {key: _scrubbed(item) for key, item in value.items()}
    return [_scrubbed(item) for item in value] if isinstance(value, list | tuple) else value


def store(ran: Ran, folder: Path = RESULTS) -> None:
    """A good run replaces what there was; a failed one is kept beside the last good one, until the next good one."""
    failed = folder / "failed" / f"{ran.name}.json"
    target = failed if ran.exit_code else folder / f"{ran.name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(_scrubbed(asdict(ran)), indent=1, ensure_ascii=False) + "\n")
    if not ran.exit_code:
        failed.unlink(missing_ok=True)


def read_results(folder: Path = RESULTS) -> Mapping[str, Ran]:
    """The last good run of each benchmark, by name."""
    return {path.stem: Ran(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))}


def read_failures(folder: Path = RESULTS) -> Mapping[str, Ran]:
    """The runs that failed after the last good one, by name."""
    return read_results(folder / "failed")
