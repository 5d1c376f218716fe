"""`recordmill lint`: what the guide will hold of a record type, what it takes, and what hurts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.cli.output import print_json
from pipeline.cli.specs import Json, Set, SpecPath, load_spec
from pipeline.decoding import Verdict
from pipeline.run.lint import Lint, lint

__all__ = ["register"]

_STYLES = {Verdict.ENFORCED: "green", Verdict.WIDENED: "yellow", Verdict.REFUSED: "bold red"}


def register(app: typer.Typer) -> None:
    app.command("lint")(lint_command)


def lint_command(spec: SpecPath, overrides: Set = None, as_json: Json = False) -> int:
    """Show each field of the record: what is enforced, the tokens it takes, and what hurts.

    A field is enforced, widened (the rest is checked afterwards) or refused. Least and likely tokens need the model's
    tokenizer; without one on this machine, lint says so and goes on. It is downloaded with HF_HUB_OFFLINE=0 alone.

    Exits with 2 if a field is refused, if `decoding.max_tokens` cannot hold any record, or if `model.name` is a
    relative path without a model; an absolute one may be a path of the cluster's machines.

    Example: `recordmill lint jobs/receipts.yaml`
    """
    job = load_spec(spec, overrides)
    # What is not in the cache is not worth a minute of retries.
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    found = lint(job, Path.cwd())
    if as_json:
        print_json(_as_dict(found))
    else:
        Console(highlight=False).print(_rendered(found))
    return 2 if found.is_refused else 0


def _as_dict(found: Lint) -> dict[str, object]:
    sizes = found.sizes
    return {
        "record": found.record,
        "is_refused": found.is_refused,
        "max_tokens": found.max_tokens,
        "least_tokens": None if sizes is None else sizes.least,
        "likely_tokens": None if sizes is None else sizes.likely,
        "likely_from": None if sizes is None else sizes.likely_from,
        "least_record": None if sizes is None else sizes.least_text,
        "no_tokens": found.no_sizes,
        "fields": [
            {
                "field": field.path,
                "verdict": field.verdict.value,
                "reason": field.reason,
                "least_tokens": field.least_tokens,
                "likely_tokens": field.likely_tokens,
            }
            for field in found.fields
        ],
        "advice": [{"field": item.path, "rule": item.rule, "message": item.message} for item in found.advice],
    }


def _rendered(found: Lint) -> RenderableType:
    return Group(_table(found), Text(), *_tokens(found), *_advice(found))


def _table(found: Lint) -> Table:
    table = Table(title=found.record, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("field", overflow="fold")
    table.add_column("verdict")
    if found.sizes is not None:
        table.add_column("least", justify="right")
        table.add_column("likely", justify="right")
    table.add_column("reason", overflow="fold")
    for field in found.fields:
        verdict = Text(field.verdict.value, style=_STYLES[field.verdict])
        tokens = [_number(field.least_tokens), _number(field.likely_tokens)] if found.sizes is not None else []
        table.add_row(Text(field.path), verdict, *tokens, Text(field.reason))
    return table


def _number(tokens: int | None) -> str:
    return "–" if tokens is None else str(tokens)


def _tokens(found: Lint) -> Iterator[RenderableType]:
    sizes = found.sizes
    if sizes is None:
        style = "bold red" if found.is_model_wrong else "yellow"
        yield Text(f"Least and likely tokens are not known: {found.no_sizes}", style=style)
        return
    if sizes.least is not None:
        yield Text.assemble(("least record   ", "dim"), f"{sizes.least} tokens: ", (sizes.least_text, "dim"))
    yield Text.assemble(("likely record  ", "dim"), f"{sizes.likely} tokens, a guess from {sizes.likely_from}")
    yield Text.assemble(("max_tokens     ", "dim"), str(found.max_tokens))


def _advice(found: Lint) -> Iterator[RenderableType]:
    """Each message once, with the fields it is said of."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for item in found.advice:
        grouped.setdefault((item.rule, item.message), []).append(item.path)
    for (rule, message), paths in grouped.items():
        yield Text()
        yield Text.assemble(("! ", "yellow"), (", ".join(paths), "bold"), f"  {rule}")
        yield Text(f"  {message}")
