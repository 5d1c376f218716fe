"""`recordmill run`: a whole job, on this machine's own Ray or on a cluster's."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.cli.bar import BarProgress
from pipeline.cli.output import say_error
from pipeline.cli.specs import Set, SpecPath, load_spec
from pipeline.core.errors import InterruptedRunError
from pipeline.core.spec import JobSpec
from pipeline.run.progress import LogProgress, Progress

__all__ = ["Address", "carry_out", "register"]

Address = Annotated[
    str | None,
    typer.Option(help="Ray address; by default the cluster of this job (RAY_ADDRESS), else one on this machine."),
]


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(spec: SpecPath, overrides: Set = None, address: Address = None) -> int:
    """Carry out a job, or what is left of it.

    Run again with the same spec, it goes on where it was.

    Example: `recordmill run jobs/receipts.yaml --set output.uri=s3://bucket/runs/today/`
    """
    return carry_out(load_spec(spec, overrides), address)


def carry_out(job: JobSpec, address: str | None) -> int:
    """Runs a job with a bar, or with log lines where nobody looks, shows its report, and gives its exit code."""
    from pipeline.report.terminal import report_lines
    from pipeline.run.job import run as run_job

    console = Console(stderr=True)
    with contextlib.ExitStack() as stack:
        progress: Progress = LogProgress()
        if sys.stderr.isatty():
            logging.getLogger("pipeline").setLevel(logging.WARNING)
            progress = stack.enter_context(BarProgress(console))
        try:
            result = run_job(job, base=Path.cwd(), address=address or os.environ.get("RAY_ADDRESS"), progress=progress)
        except KeyboardInterrupt:
            raise InterruptedRunError(f"run {job.name} was interrupted") from None
    if result.report is not None:
        Console().print(report_lines(result.report))
    if result.error is not None:
        say_error(str(result.error))
    return result.exit_code
