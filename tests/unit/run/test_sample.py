"""A sample is spread over the whole input, without doubles, and the same each time."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.document import Document, InputObject
from pipeline.core.spec import parse_spec
from pipeline.run.sample import WITHIN_ROWS, read_sample, spread

groups = st.lists(st.integers(0, 12_000), min_size=1, max_size=8)


def object_of(uri: str, rows: list[int], unreadable: str | None = None) -> InputObject:
    return InputObject(uri, "e", 1, tuple(rows), tuple(rows), unreadable)


@given(st.lists(groups, min_size=1, max_size=4), st.integers(1, 60))
def test_as_many_rows_as_asked_for_or_as_there_are_each_once_and_in_order(rows: list[list[int]], count: int) -> None:
    objects = [object_of(f"u{index}", group) for index, group in enumerate(rows)]
    pieces = spread(objects, count)
    total = sum(map(sum, rows))
    assert len(pieces) == min(count, total)
    assert len(set(pieces)) == len(pieces)
    assert spread(objects, count) == pieces
    for piece in pieces:
        held = rows[int(piece.uri[1:])][piece.row_group]
        assert 0 <= piece.row_start < held
        assert piece.row_stop == piece.row_start + 1
    assert list(pieces) == sorted(pieces, key=lambda piece: (piece.uri, piece.row_group, piece.row_start))


def test_every_stretch_of_the_input_is_represented() -> None:
    pieces = spread([object_of(f"u{index}", [1000]) for index in range(10)], 10)
    assert [piece.uri for piece in pieces] == [f"u{index}" for index in range(10)]


def test_no_row_group_is_read_far_for_one_row() -> None:
    pieces = spread([object_of("u", [10_000_000])], 50)
    assert max(piece.row_stop for piece in pieces) <= WITHIN_ROWS + 50
    assert len(pieces) == 50


def test_objects_that_cannot_be_read_are_passed_over() -> None:
    pieces = spread([object_of("bad", [], "no footer"), object_of("good", [3])], 5)
    assert {piece.uri for piece in pieces} == {"good"}
    assert len(pieces) == 3


def test_an_id_of_several_files_is_no_double_in_a_sample_of_them(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        pq.write_table(
            pa.table({"document_id": ["1", "2"], "text": [f"{name}1", f"{name}2"]}), tmp_path / f"{name}.parquet"
        )
    raw = {
        "name": "t",
        "input": {"uri": f"{tmp_path}/"},
        "record": "a:B",
        "model": {"name": "m"},
        "output": {"uri": str(tmp_path.with_name("out"))},
    }
    sample = read_sample(parse_spec(raw, source="t"), 6)
    assert [row.content.text for row in sample.rows if isinstance(row.content, Document)] == [
        "a1", "a2", "b1", "b2", "c1", "c2",
    ]  # fmt: skip
