"""The command line: options in, one exit code out.  Environment variables are read here and nowhere else.

app.py       the commands' frame: logging, errors as one line, exit codes
specs.py     a job spec from a file, with overrides
run.py       run
inspect.py   lint
results.py   status, report, verify, export
bar.py       progress in a terminal
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; see `core.errors` for what the codes mean."""
    from pipeline.cli.app import run_command

    return run_command(arguments)
