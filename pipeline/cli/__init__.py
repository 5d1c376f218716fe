"""The command line: options in, one exit code out.  Environment variables are read here and nowhere else.

app.py       the commands' frame: logging, errors as one line, exit codes
specs.py     a job spec from a file, with overrides; options that several commands share
output.py    JSON on standard output, pages, notes on standard error
init.py lint.py preview.py plan.py run.py rerun.py trace.py    the command of that name
results.py   status, report, verify, export
bar.py       progress in a terminal
starter/     what `init` copies
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; see `core.errors` for what the codes mean."""
    try:
        from pipeline.cli.app import run_command

        return run_command(arguments)
    except KeyboardInterrupt:
        # Before or after what the commands themselves guard, such as a second's import.
        print("recordmill: interrupted", file=sys.stderr)  # noqa: T201
        return 130
