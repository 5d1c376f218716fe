"""`recordmill trace`: one document, token by token."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.output import notes, print_json, write_page
from pipeline.cli.preview import extraction_bar
from pipeline.cli.specs import Json, Set, SpecPath, load_spec

__all__ = ["register"]

Document = Annotated[str, typer.Option("--document", metavar="ID", help="The document's id.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", dir_okay=False, help="The page.")]
WithUnguided = Annotated[
    bool, typer.Option("--unguided/--no-unguided", help="Answer the same prompt without a guide as well.")
]


def register(app: typer.Typer) -> None:
    app.command("trace")(trace_command)


def trace_command(
    spec: SpecPath,
    document: Document,
    out: Out = Path("trace.html"),
    unguided: WithUnguided = True,
    overrides: Set = None,
    as_json: Json = False,
) -> int:
    """Decode one document and write a page that shows each step: what was legal, what the model thought, what it chose.

    One engine is started on this machine, without Ray. With `--json` the steps go to standard output and no page is
    written.

    Example: `recordmill trace jobs/receipts.yaml --document r-0017 --out trace.html`
    """
    from pipeline.report.trace import render_trace
    from pipeline.run.trace import trace

    job = load_spec(spec, overrides)
    with extraction_bar():
        found = trace(job, Path.cwd(), document, with_unguided=unguided)
    if as_json:
        print_json(asdict(found.trace))
        return 0
    facts = [
        ("Record", job.record),
        ("Engine", found.engine),
        ("Budget", f"{job.decoding.max_tokens} tokens, policy {job.truncation.policy}"),
    ]
    write_page(out, render_trace(found.trace, name=job.name, facts=facts))
    outcome = found.trace.outcome
    cause = f" ({outcome.cause})" if outcome.cause else ""
    notes().print(f"{out} written: {outcome.status}{cause}, {len(found.trace.steps)} steps", markup=False)
    return 0
