"""`recordmill init`: a job to start from, in a folder of its own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.cli.output import print_json
from pipeline.cli.specs import Json
from pipeline.core.errors import SpecError

__all__ = ["register"]

_FILES = {
    "jobs/orders.yaml": "job.yaml",
    "schemas/__init__.py": None,
    "schemas/order.py": "schema.py.txt",
    "prompts/order.j2": "prompt.j2",
    "documents/sample.jsonl": "documents.jsonl",
    ".rayignore": "rayignore",
}
"""Each file of a new job, and the one of `starter/` that it is a copy of; None for an empty one."""

Folder = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where; by default here.", show_default=False)]


def register(app: typer.Typer) -> None:
    app.command("init")(init_command)


def init_command(folder: Folder = Path(), as_json: Json = False) -> int:
    """Write a job spec, a schema, a prompt and three sample documents to start from.

    Nothing is overwritten: if one of the files is there, none is written.

    Example: `recordmill init my-extraction`
    """
    standing = [name for name in _FILES if (folder / name).exists()]
    if standing:
        raise SpecError(f"{folder / standing[0]} is already there; init overwrites nothing: choose another folder")
    for name, source in _FILES.items():
        _write(folder / name, "" if source is None else _text(source))
    if as_json:
        print_json([str(folder / name) for name in _FILES])
        return 0
    console = Console(highlight=False, soft_wrap=True)
    for name in _FILES:
        console.print(str(folder / name), style="dim", markup=False)
    place = "" if folder == Path() else f"cd {folder} && "
    console.print("\nNext:", end=" ")
    console.print(f"{place}recordmill lint jobs/orders.yaml", style="bold", markup=False, end="")
    console.print(", then `preview`, `plan` and `run`.")
    return 0


def _text(name: str) -> str:
    return resources.files("pipeline.cli").joinpath("starter", name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror or error}") from error
