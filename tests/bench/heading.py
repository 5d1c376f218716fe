"""What each benchmark prints first: the command that was typed, and what it ran on."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Sequence

from pipeline.engine.vllm_names import vllm_distribution

__all__ = ["print_heading", "versions"]


def print_heading(name: str, arguments: Sequence[str] | None, *distributions: str) -> None:
    """The command line of `python -m tests.bench.<name>`, and the versions of Python and of what it depends on."""
    print(f"command  python -m tests.bench.{name}", *(arguments or sys.argv[1:]))
    found = (f"{name} {version}" for name, version in versions(*distributions).items())
    print("versions", f"python {platform.python_version()}", *found, platform.platform())


def versions(*distributions: str) -> dict[str, str]:
    """The installed version of each; `vllm` stands for whichever distribution vLLM came in."""
    names = [vllm_distribution() if name == "vllm" else name for name in distributions]
    return {name: importlib.metadata.version(name) for name in names}
