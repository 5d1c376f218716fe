"""`recordmill lint`: what the guide will hold of a record type, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from pipeline.cli.specs import Set, SpecPath, load_spec
from pipeline.decoding import FieldVerdict, Verdict, lint_fields
from pipeline.run.record import load_record

__all__ = ["register"]

_STYLES = {Verdict.ENFORCED: "green", Verdict.WIDENED: "yellow", Verdict.REFUSED: "bold red"}
Json = Annotated[bool, typer.Option("--json", help="For machines.")]


def register(app: typer.Typer) -> None:
    app.command("lint")(lint)


def lint(spec: SpecPath, overrides: Set = None, as_json: Json = False) -> int:
    """Show each field of the record: enforced, widened (checked afterwards), or refused, and why.

    Exits with 2 if a field is refused.  Example: `recordmill lint jobs/receipts.yaml`
    """
    job = load_spec(spec, overrides)
    record = load_record(job.record, Path.cwd())
    verdicts = lint_fields(record, recursion_depth=job.decoding.recursion_depth)
    if as_json:
        print(json.dumps([_as_dict(verdict) for verdict in verdicts], indent=2))  # noqa: T201
    else:
        Console().print(_table(verdicts, job.record))
    return 2 if any(verdict.verdict is Verdict.REFUSED for verdict in verdicts) else 0


def _as_dict(verdict: FieldVerdict) -> dict[str, str]:
    return {"field": verdict.path, "verdict": str(verdict.verdict), "reason": verdict.reason}


def _table(verdicts: tuple[FieldVerdict, ...], title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("field")
    table.add_column("verdict")
    table.add_column("reason", overflow="fold")
    for verdict in verdicts:
        style = _STYLES[verdict.verdict]
        table.add_row(verdict.path, f"[{style}]{verdict.verdict}[/]", verdict.reason)
    return table
