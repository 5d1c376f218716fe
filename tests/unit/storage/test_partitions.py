"""Values that stand in the names of folders, as columns of the documents below them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.core.document import Piece
from pipeline.core.errors import InputError
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage.documents import DocumentReader, list_input, read_piece
from pipeline.storage.input_columns import check_columns, passed_columns
from pipeline.storage.partitions import partition_values
from tests.stores import MemoryStore
from tests.unit.storage.test_documents import _parquet, _pieces, _rows

LIMITS = LimitsSpec()


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://docs/in/a.parquet", {}),
        ("s3://docs/country=DE/day=2026-11-29/a.parquet", {"country": "DE", "day": "2026-11-29"}),
        ("s3://docs/shop=A%2FB/a=b.parquet", {"shop": "A/B"}),
        ("s3://docs/sum=1=2/a.parquet", {"sum": "1=2"}),
        ("s3://docs/country=__HIVE_DEFAULT_PARTITION__/a.parquet", {"country": None}),
        ("s3://docs/country=/=x/a.parquet", {"country": ""}),
    ],
)
def test_folders_name_and_give_values(uri: str, expected: dict[str, str | None]) -> None:
    assert partition_values(uri) == expected


def test_a_folders_value_stands_beside_the_files_own_columns_and_before_one_of_its_name() -> None:
    spec = InputSpec(uri="s3://docs/in/", columns=("country", "pages"))
    rows = _rows(2).append_column("pages", pa.array([3, 4]))
    store = MemoryStore()
    store.put("s3://docs/in/country=DE/a.parquet", _parquet(rows))
    store.put("s3://docs/in/country=FR/b.parquet", _parquet(rows.append_column("country", pa.array([1, 2]))))
    store.put("s3://docs/in/country=IT/c.jsonl", b'{"document_id": "c", "text": "t", "pages": "5"}\n')
    objects = list_input(store, spec)
    check_columns(store, objects, spec)
    found = [
        dict(document.extra)
        for item in objects
        for piece in _pieces(item)
        for document in read_piece(store, piece, spec, LIMITS)
    ]
    assert found == [
        {"country": "DE", "pages": 3},
        {"country": "DE", "pages": 4},
        {"country": "FR", "pages": 3},
        {"country": "FR", "pages": 4},
        {"country": "IT", "pages": "5"},
    ]
    assert passed_columns(store, objects[:2], spec) == {"country": pa.string(), "pages": pa.int64()}


def test_what_a_folder_gives_is_known_of_an_object_that_cannot_be_read() -> None:
    spec = InputSpec(uri="s3://docs/in/", columns=("country", "pages"))
    reader = DocumentReader(MemoryStore(), spec, LIMITS)
    assert reader.known(Piece("s3://docs/in/country=DE/day=1/a.parquet", "e", 0, 0, 1)) == {"country": "DE"}


def test_text_files_have_the_columns_of_their_folders_and_no_others() -> None:
    store = MemoryStore()
    store.put("s3://docs/in/country=DE/a.txt", b"a text")
    spec = InputSpec(uri="s3://docs/in/", columns=("country",))
    objects = list_input(store, spec)
    assert passed_columns(store, objects, spec) == {"country": pa.string()}
    (document,) = read_piece(store, _pieces(objects[0])[0], spec, LIMITS)
    assert (document.text, dict(document.extra)) == ("a text", {"country": "DE"})
    with pytest.raises(InputError, match="no column 'pages'"):
        passed_columns(store, objects, spec.model_copy(update={"columns": ("country", "pages")}))


def test_a_column_that_neither_file_nor_folder_has_is_refused() -> None:
    store = MemoryStore()
    store.put("s3://docs/in/country=DE/a.parquet", _parquet(_rows(2)))
    (item,) = list_input(store, InputSpec(uri="s3://docs/in/", columns=("region",)))
    assert item.unreadable is not None
    assert "no column 'region'" in item.unreadable
