"""The frame of all commands: logging, errors as one line on stderr, exit codes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any

import typer
import typer.core

from pipeline.cli import init, lint, plan, preview, rerun, results, run, trace
from pipeline.cli.output import say_error
from pipeline.core.errors import RecordmillError

__all__ = ["app", "run_command"]


class _Commands(typer.core.TyperGroup):
    """Typer ends an interrupted command with 130 and without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise typer.Abort from error


app = typer.Typer(
    name="recordmill",
    cls=_Commands,
    help="Batch extraction: documents on S3, guided vLLM engines on Ray, one honest outcome for each document.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _module in (init, lint, preview, plan, run, results, rerun, trace):
    _module.register(app)


def run_command(arguments: Sequence[str] | None) -> int:
    """Runs one command line.

    Returns:
        0 complete; 1 ran but incomplete; 2 bad job spec, usage, preflight or engine settings; 3 resumable;
        130 interrupted.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    for noisy in ("aiobotocore", "botocore", "fsspec", "s3fs", "urllib3", "httpx", "numba", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        result = app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except RecordmillError as error:
        say_error(str(error))
        return error.exit_code
    except typer.TyperException as error:
        say_error(error.format_message())
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        say_error("interrupted")
        return 130
    return result if isinstance(result, int) else 0
