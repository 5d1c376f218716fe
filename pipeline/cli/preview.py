"""`recordmill preview`: text and record side by side, before anything is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline.cli.output import notes, print_json, quiet_logs, write_page
from pipeline.cli.specs import Json, Set, SpecPath, load_spec
from pipeline.core.document import Document
from pipeline.core.outcome import Outcome
from pipeline.core.spec import JobSpec
from pipeline.run.in_process import OnExtracted

__all__ = ["extraction_bar", "register"]

Count = Annotated[int, typer.Option("-n", "--documents", min=1, help="How many documents, spread over the input.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", dir_okay=False, help="Write an HTML page as well.")
]
DocumentId = Annotated[str | None, typer.Option("--document", metavar="ID", help="This document alone.")]


def register(app: typer.Typer) -> None:
    app.command("preview")(preview_command)


def preview_command(
    spec: SpecPath,
    overrides: Set = None,
    count: Count = 20,
    document: DocumentId = None,
    html: Html = None,
    as_json: Json = False,
) -> int:
    """Show documents beside the records that a run would make of them; nothing is written to the output.

    One engine is started on this machine, without Ray. The documents are spread over the input, the same ones each
    time, so that two previews can be compared.

    Example: `recordmill preview jobs/receipts.yaml -n 20 --html preview.html`
    """
    from pipeline.report.preview import render_preview
    from pipeline.report.terminal import records_beside_text
    from pipeline.run.preview import preview

    job = load_spec(spec, overrides)
    with extraction_bar() as on_extracted:
        found = preview(job, Path.cwd(), count, document_id=document, on_extracted=on_extracted)
    if html is not None:
        write_page(html, render_preview(found.pairs, name=job.name, facts=_facts(job, found.engine, found.documents)))
        notes().print(f"{html} written", markup=False)
    if as_json:
        print_json([_as_dict(*pair) for pair in found.pairs])
        return 0
    console = Console(highlight=False)
    console.print(records_beside_text(found.pairs))
    counts = Counter(outcome.status.value for _, outcome in found.pairs)
    console.print(f"{len(found.pairs)} of {found.documents} documents: " + _counted(counts), markup=False)
    return 0


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {status}" for status, number in counts.most_common())


def _facts(job: JobSpec, engine: str, documents: int) -> list[tuple[str, str]]:
    return [
        ("Record", job.record),
        ("Engine", engine),
        ("Input", f"{', '.join(job.input.uris)} ({documents:,} documents)"),
        ("Budget", f"{job.decoding.max_tokens} tokens, policy {job.truncation.policy}"),
    ]


def _as_dict(document: Document, outcome: Outcome) -> dict[str, object]:
    return {
        "document_id": outcome.document_id,
        "status": outcome.status.value,
        "cause": outcome.cause,
        "detail": outcome.detail,
        "record": outcome.record,
        "raw": outcome.raw,
        "prompt_tokens": outcome.prompt_tokens,
        "output_tokens": outcome.output_tokens,
        "budget_tokens": outcome.budget_tokens,
        "slack_tokens": outcome.slack_tokens,
        "shaped_fields": outcome.shaped_fields,
        "spans": outcome.spans,
        "text": document.text,
        "columns": outcome.extra,
    }


@contextmanager
def extraction_bar(what: str = "starting the engine") -> Iterator[OnExtracted]:
    """A spinner while the engine starts, then a count of the documents done; nothing where nobody looks."""
    console = notes()
    quiet_logs()
    with console.status(what) as status:
        yield lambda done, total: status.update(f"{done} of {total} documents")
