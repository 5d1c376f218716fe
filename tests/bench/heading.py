"""What each benchmark prints first: its command with every default written out, and what it runs on."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.engine.vllm_names import vllm_distribution

__all__ = ["command_of", "heading", "machine", "print_heading", "versions"]


def heading(name: str, options: argparse.Namespace | Sequence[str] | None, *distributions: str) -> dict[str, str]:
    """The command, the machine, and the versions of Python and of what the benchmark depends on."""
    found = (f"{distribution} {version}" for distribution, version in versions(*distributions).items())
    return {
        "command": command_of(name, options),
        "machine": machine(),
        "versions": ", ".join((f"python {platform.python_version()}", *found, platform.platform())),
    }


def print_heading(name: str, options: argparse.Namespace | Sequence[str] | None, *distributions: str) -> None:
    """The same, a line each."""
    for key, value in heading(name, options, *distributions).items():
        print(f"{key:8} {value}")


def command_of(name: str, options: argparse.Namespace | Sequence[str] | None) -> str:
    """What to type for the same run again: `python -m tests.bench.<name>` with all that holds, defaults too.

    Of a command that tells its arguments only, and no parsed options, those, or else what was typed.
    """
    words = ["python", "-m", f"tests.bench.{name}"]
    if not isinstance(options, argparse.Namespace):
        return shlex.join([*words, *(sys.argv[1:] if options is None else options)])
    for key, value in vars(options).items():
        words += _words(f"--{key.replace('_', '-')}", value)
    return shlex.join(words)


def _words(option: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    return [option, *map(str, value if isinstance(value, list) else [value])]


def machine() -> str:
    """Processor, cores, memory and system, without names of hosts, and how fast it is just now.

    Machines that are called the same differ in what their processors can do, and in how busy their neighbours are.
    Takes a part of a second.
    """
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    flags = facts.get("flags", "").split()
    widest = next((flag for flag in ("amx_bf16", "avx512_bf16", "avx512f", "avx2") if flag in flags), "")
    return (
        f"{os.cpu_count()} cores of {facts.get('model name', platform.machine())}{f' ({widest})' * bool(widest)}, "
        f"{gigabytes:.0f} GiB of memory, {platform.system()} {platform.machine()}, "
        f"ten million turns of a Python loop in {_ten_million_turns_s():.2f} s"
    )


def _ten_million_turns_s() -> float:
    started = time.perf_counter()
    for _ in range(10_000_000):
        pass
    return time.perf_counter() - started


def versions(*distributions: str) -> dict[str, str]:
    """The installed version of each; `vllm` stands for whichever distribution vLLM came in."""
    names = [vllm_distribution() if name == "vllm" else name for name in distributions]
    return {name: importlib.metadata.version(name) for name in names}
