"""Commands about a run that exists: status, report, verify, export.  All work from storage alone."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import typer
from rich.console import Console

from pipeline.cli.output import notes, print_json, whole_file
from pipeline.cli.specs import Endpoint, Json, Region, s3_settings
from pipeline.core.errors import IncompleteError, InputError, SpecError, StorageNotFoundError
from pipeline.core.sections import S3Spec
from pipeline.report.documents import ShownDocument
from pipeline.report.model import Report
from pipeline.report.terminal import report_lines
from pipeline.report.text import count, plural, visible
from pipeline.report.write import build_report, read_books, score_run, write_report
from pipeline.run.plan import StoredPlan, standing_plan
from pipeline.run.shared_ids import SharedIds
from pipeline.run.shown import shown_documents
from pipeline.run.verify import stored_spec
from pipeline.run.verify import verify as verify_run
from pipeline.storage.delta import append_to_delta
from pipeline.storage.export import ExportFormat, export_records
from pipeline.storage.layout import RunLayout
from pipeline.storage.reader import read_records
from pipeline.storage.store import Store, open_store

__all__ = ["register"]

LINES_AT_MOST = 10
"""Lines that `verify` prints of one kind."""

Prefix = Annotated[str, typer.Argument(metavar="PREFIX", help="The run's output prefix.", show_default=False)]


class Rows(enum.StrEnum):
    """Which rows an export holds."""

    RECORDS = "records"
    ALL = "all"


def register(app: typer.Typer) -> None:
    app.command("status")(status)
    app.command("report")(report)
    app.command("verify")(verify)
    app.command("export")(export)


def _opened(prefix: str, endpoint_url: str | None, region: str | None) -> tuple[Store, RunLayout, StoredPlan]:
    layout = RunLayout(prefix)
    store = open_store(prefix, s3_settings(endpoint_url, region))
    return store, layout, standing_plan(store, layout)


def status(prefix: Prefix, as_json: Json = False, endpoint_url: Endpoint = None, region: Region = None) -> int:
    """Say how far a run is, from storage alone.

    Exits with 0 when every planned document has its outcome, else with 1.

    Example: `recordmill status s3://bucket/runs/receipts/`
    """
    store, layout, stored = _opened(prefix, endpoint_url, region)
    return _show(build_report(store, layout, stored.plan), as_json=as_json)


def report(
    prefix: Prefix,
    gold: Annotated[
        Path | None,
        typer.Option(exists=True, help="Known answers, a Parquet file: columns `document_id` and `gold_<field>`."),
    ] = None,
    as_json: Json = False,
    endpoint_url: Endpoint = None,
    region: Region = None,
) -> int:
    """Write report.json and report.html anew, from the parts alone, and show the counts.

    Example: `recordmill report s3://bucket/runs/receipts/ --gold answers.parquet`
    """
    store, layout, stored = _opened(prefix, endpoint_url, region)
    scored = None if gold is None else score_run(store, layout, _answers(gold))
    shown = _shown(store, layout, stored, s3_settings(endpoint_url, region))
    made = build_report(store, layout, stored.plan, scored=scored, shown=shown)
    write_report(store, layout, made)
    return _show(made, as_json=as_json)


def _shown(store: Store, layout: RunLayout, stored: StoredPlan, s3: S3Spec) -> tuple[ShownDocument, ...]:
    """Documents to show; they only illustrate, so that a run whose spec cannot be read has a report all the same."""
    try:
        spec = stored_spec(store, layout)
    except (SpecError, StorageNotFoundError) as error:
        notes().print(f"The report shows no documents beside their records: {error.message}", markup=False)
        return ()
    reachable = spec.model_copy(update={"s3": spec.s3.with_given(s3)})
    return shown_documents(store, layout, stored.plan, reachable)


def _answers(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error


def _show(made: Report, *, as_json: bool) -> int:
    if as_json:
        print(made.model_dump_json(indent=2))  # noqa: T201
    else:
        Console().print(report_lines(made))
    return 0 if made.is_complete else 1


def verify(prefix: Prefix, as_json: Json = False, endpoint_url: Endpoint = None, region: Region = None) -> int:
    """Prove that every planned document has exactly one outcome and that what is stored is whole.

    Reads the input's ids and the parts in full.  Exits with 1 and names what does not hold. Ids that stand in more
    than one shard are counted and named; they alone are no reason to exit with 1.

    Example: `recordmill verify s3://bucket/runs/receipts/`
    """
    found = verify_run(prefix, s3_settings(endpoint_url, region))
    if as_json:
        print_json(
            {
                "is_sound": found.is_sound,
                "documents_planned": found.documents_planned,
                "documents_found": found.documents_found,
                "problems": found.problems,
                "ids_in_several_shards": asdict(found.shared_ids),
            }
        )
        return 0 if found.is_sound else 1
    console = Console(highlight=False)
    for line in _shared(found.shared_ids):
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    if found.is_sound:
        console.print(
            f"[green]sound[/]: {plural(found.documents_found, 'document')}, each with one outcome, "
            f"in {plural(found.shards_planned, 'shard')}; checksums and report agree"
        )
        return 0
    for line in (*_first(found.wrong, "more"), *_first(found.missing, "more shards without a part")):
        console.print(line, markup=False, soft_wrap=True)
    problems = plural(len(found.problems), "problem")
    console.print(f"[bold red]{problems}[/] in {plural(found.documents_planned, 'planned document')}")
    return 1


def _first(lines: Sequence[str], rest: str) -> Iterator[str]:
    yield from lines[:LINES_AT_MOST]
    if len(lines) > LINES_AT_MOST:
        yield f"and {count(len(lines) - LINES_AT_MOST)} {rest}; `--json` names them all"


def _shared(found: SharedIds) -> Iterator[str]:
    """Each of those documents has its outcome, so this is no problem of the run; it may be one of the input."""
    if found.count:
        ids = "1 document id stands" if found.count == 1 else f"{count(found.count)} document ids stand"
        yield f"{ids} in more than one shard; each of those documents has an outcome of its own:"
    for example in found.examples:
        yield f"  {visible(example.document_id)!r} in shards {', '.join(example.shard_ids)}"
    if found.count > len(found.examples):
        yield f"  and {count(found.count - len(found.examples))} more"


def export(
    prefix: Prefix,
    to: Annotated[ExportFormat, typer.Option(help="The format.")] = ExportFormat.PARQUET,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", dir_okay=False, help="The file; by default standard output.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Append to this Delta table instead, once; `s3://` or a path.")
    ] = None,
    rows: Annotated[Rows, typer.Option(help="Records only, or all rows with their audit columns.")] = Rows.RECORDS,
    endpoint_url: Endpoint = None,
    region: Region = None,
) -> int:
    """Write a run's records as one Parquet, JSONL or CSV file, or append them to a Delta table.

    CSV cells that a spreadsheet would take for a formula are quoted with `'`. A run that is appended to a table twice
    is there once.

    Example: `recordmill export s3://bucket/runs/receipts/ --to jsonl -o records.jsonl`

    Example: `recordmill export s3://bucket/runs/receipts/ --delta s3://lake/receipts`
    """
    if delta is not None:
        return _append(prefix, delta, rows, endpoint_url, region)
    if out is None and to is ExportFormat.PARQUET and sys.stdout.isatty():
        raise SpecError("a Parquet file is no text for a terminal: give --out FILE, or --to jsonl")
    is_all = rows is Rows.ALL
    dataset = _rows(prefix, rows, s3_settings(endpoint_url, region))
    if out is None:
        written = export_records(dataset, to, sys.stdout.buffer, with_audit=is_all)
    else:
        with whole_file(out) as file:
            written = export_records(dataset, to, file, with_audit=is_all)
    notes().print(f"{written} rows")
    if missing := _missing(prefix, endpoint_url, region):
        notes().print(f"{prefix} is not complete: {missing}", style="bold yellow", markup=False)
    return 0


def _missing(prefix: str, endpoint_url: str | None, region: str | None) -> str | None:
    """What a run's rows lack, in words; None where they are all there."""
    store, layout, stored = _opened(prefix, endpoint_url, region)
    books = read_books(store, layout, stored.plan)
    if books.is_complete:
        return None
    left_out = f", and {len(stored.plan.left_out)} input objects were left out" if stored.plan.left_out else ""
    return f"{books.balance.documents_missing} of {stored.plan.rows} documents have no outcome{left_out}"


def _append(prefix: str, table: str, rows: Rows, endpoint_url: str | None, region: str | None) -> int:
    """A table takes a run once, so only a whole one."""
    store, layout, stored = _opened(prefix, endpoint_url, region)
    if not read_books(store, layout, stored.plan).is_complete:
        raise IncompleteError(
            f"{prefix} is not complete, and a table takes a run once; see `recordmill status {prefix}`"
        )
    settings = s3_settings(endpoint_url, region)
    place = layout.prefix if layout.prefix.startswith("s3://") else f"{Path(layout.prefix).resolve()}/"
    source = f"{place} {stored.plan.fingerprint}"
    appended = append_to_delta(
        _rows(prefix, rows, settings), table, settings, source=source, with_audit=rows is Rows.ALL
    )
    said = f"{table} has this run already" if appended is None else f"{appended} rows appended to {table}"
    notes().print(said, markup=False)
    return 0


def _rows(prefix: str, rows: Rows, settings: S3Spec) -> ds.Dataset:
    return read_records(prefix, None, s3=settings) if rows is Rows.ALL else read_records(prefix, s3=settings)
