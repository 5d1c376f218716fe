"""What each benchmark prints first: the command that was typed, and what it ran on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

__all__ = ["print_heading"]


def print_heading(name: str, arguments: Sequence[str] | None, *distributions: str) -> None:
    """The command line of `python -m tests.bench.<name>`, and the versions of Python and of what it depends on."""
    print(f"command  python -m tests.bench.{name}", *(arguments or sys.argv[1:]))
    found = (f"{distribution} {version(distribution)}" for distribution in distributions)
    print("versions", f"python {platform.python_version()}", *found, platform.platform())
