"""One document is found by its id, whatever the format, and only its id column is read for it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage.documents import list_input, read_piece
from pipeline.storage.local import LocalStore
from pipeline.storage.lookup import find_row

ROWS = [{"document_id": f"d{number}", "text": f"text {number}"} for number in range(30)]


def found_text(folder: Path, document_id: str) -> str | None:
    store, spec = LocalStore(), InputSpec(uri=str(folder))
    piece = find_row(store, list_input(store, spec), spec, LimitsSpec(), document_id)
    if piece is None:
        return None
    (document,) = read_piece(store, piece, spec, LimitsSpec())
    assert document.document_id == document_id
    return document.text


@pytest.mark.parametrize("kind", ["parquet", "integer", "jsonl", "dictionary"])
def test_a_row_is_found_in_the_middle_of_an_input(kind: str, tmp_path: Path) -> None:
    wanted = "d17"
    if kind == "jsonl":
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        table = pa.Table.from_pylist(ROWS)
        if kind == "integer":
            table, wanted = table.set_column(0, "document_id", pa.array(range(30), pa.int32())), "17"
        if kind == "dictionary":
            table = table.set_column(0, "document_id", table["document_id"].dictionary_encode())
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    assert found_text(tmp_path, wanted) == "text 17"
    assert found_text(tmp_path, "d99") is None


def test_a_text_file_is_found_by_its_uri(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    assert found_text(tmp_path, str(tmp_path / "a.txt")) == "hello"
    assert found_text(tmp_path, "a.txt") is None
