"""What the demonstration shows of a finished run: records beside their text, and how many of them are right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.documents import RECEIPT_SCHEMA, Labelled, table_of
from pipeline.core.document import Document
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.report.scores import score_records
from pipeline.report.terminal import records_beside_text

__all__ = ["show_records", "show_scores"]

_SHOWN = (Status.VALID, Status.VALID, Status.CLOSED)
"""Statuses of the records shown, where there are such; others take the places of those that do not occur."""


def show_records(console: Console, outcomes: pa.Table, documents: Sequence[Labelled]) -> None:
    """Three records, each beside its document; `outcomes` are the rows of a run's parts."""
    texts = {document.document_id: document.text for document in documents}
    rows = sorted(outcomes.to_pylist(), key=lambda row: str(row["_document_id"]))
    pairs = [(Document(row["_document_id"], texts[row["_document_id"]]), _outcome(row)) for row in _chosen(rows)]
    console.print()
    console.print(records_beside_text(pairs))


def show_scores(console: Console, outcomes: pa.Table, documents: Sequence[Labelled]) -> None:
    """Of each field, how many documents' values equal the known answers."""
    table = Table("field", "right", "share", title="Fields that equal the known answers", title_justify="left")
    for score in score_records(outcomes, table_of(documents, RECEIPT_SCHEMA)):
        share = "" if score.normalised_share is None else f"{score.normalised_share:.0%}"
        table.add_row(score.field, f"{score.normalised} of {score.answered}", share)
    console.print(table)
    console.print(
        Text(
            "Form is by construction. What is in it is the model's: this one has 135 million parameters and is here "
            "because it runs anywhere.",
            style="dim",
        )
    )
    console.print()


def _chosen(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """As many rows as `_SHOWN` has, of these statuses as far as there are such."""
    left = list(rows)
    chosen = []
    for status in _SHOWN:
        found = next((row for row in left if row["_status"] == status), None)
        if found is not None:
            left.remove(found)
            chosen.append(found)
    return chosen + left[: len(_SHOWN) - len(chosen)]


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """A part's row as the value it was made from."""
    status = Status(row["_status"])
    record = {name: value for name, value in row.items() if not name.startswith("_")}
    return Outcome(
        document_id=row["_document_id"],
        status=status,
        cause=None if row["_cause"] is None else Cause(row["_cause"]),
        detail=row["_detail"],
        record=record if status in (Status.VALID, Status.CLOSED) else None,
        raw=row["_raw"],
        output_tokens=row["_output_tokens"],
        budget_tokens=row["_budget_tokens"],
        slack_tokens=row["_slack_tokens"],
        shaped_fields=tuple(row["_shaped_fields"] or ()),
        spans=tuple(_spans(row["_spans"])),
    )


def _spans(values: Sequence[Mapping[str, Any]] | None) -> Iterator[FoundSpan]:
    for value in values or ():
        yield FoundSpan(value["field"], value["start"], value["end"], value["is_ambiguous"])
