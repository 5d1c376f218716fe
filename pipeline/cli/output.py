"""How commands answer: JSON on standard output for machines, one file written whole, progress on standard error."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from pipeline.core.errors import InputError
from pipeline.report.text import json_values

__all__ = ["notes", "print_json", "quiet_logs", "say_error", "whole_file", "write_page"]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(json_values(value), indent=2, ensure_ascii=False))  # noqa: T201


def notes() -> Console:
    """Where commands say what they are doing: standard error, so that standard output can be piped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say_error(message: str) -> None:
    """The one line that says what ended a command."""
    console = notes()
    console.print("[bold red]recordmill:[/]", end=" ")
    console.print(message, markup=False)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, beside its place and moved there at the end, so that a reader never sees half of it.

    Raises:
        InputError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # where its folder is none, nothing is left of it
            partial.unlink(missing_ok=True)


def write_page(path: Path, page: str) -> None:
    """Writes a page, as `whole_file` does."""
    with whole_file(path) as file:
        file.write(page.encode())


def quiet_logs() -> None:
    """For commands whose answer is all there is to see: of ours warnings are logged, of the engine's what ends it."""
    logging.getLogger("pipeline").setLevel(logging.WARNING)
    logging.getLogger("vllm").setLevel(logging.ERROR)
