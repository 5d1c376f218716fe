"""Documents: each row of the input is given once, whatever its neighbours are like."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.document import Document, InputObject, Piece, Shard
from pipeline.core.errors import InputError, UnreadableError
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage import input_columns, text_input
from pipeline.storage.documents import DocumentReader, list_input, list_objects, read_piece
from pipeline.storage.input_columns import check_columns, passed_columns
from pipeline.storage.local import LocalStore
from tests.stores import MemoryStore

DOCS = "s3://memory/docs/"
SPEC = InputSpec(uri=DOCS)
LIMITS = LimitsSpec()


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"write_page_checksum": True, **options})
    return sink.getvalue().to_pybytes()


def _rows(count: int, *, start: int = 0) -> pa.Table:
    return pa.table(
        {"document_id": [f"d{n}" for n in range(start, start + count)], "text": [f"text {n}" for n in range(count)]}
    )


def _store(**objects: bytes) -> MemoryStore:
    store = MemoryStore()
    for name, data in objects.items():
        store.put(DOCS + name.replace("__", "."), data)
    return store


def _lines(*rows: dict[str, Any]) -> bytes:
    """JSON lines, each with an id and a text beside what is given."""
    return "\n".join(json.dumps({"document_id": f"d{n}", "text": "t", **row}) for n, row in enumerate(rows)).encode()


def _pieces(item: InputObject) -> list[Piece]:
    return [Piece(item.uri, item.etag, index, 0, rows) for index, rows in enumerate(item.row_group_rows) if rows]


def _all(store: MemoryStore, spec: InputSpec = SPEC, limits: LimitsSpec = LIMITS) -> list[Document]:
    return [
        document
        for item in list_input(store, spec)
        for piece in _pieces(item)
        for document in read_piece(store, piece, spec, limits)
    ]


def test_a_listing_says_what_the_footers_say() -> None:
    store = _store(b__parquet=_parquet(_rows(5), row_group_size=2), a__parquet=_parquet(_rows(0)))
    first, second = list_input(store, SPEC)
    assert (first.uri, first.rows, first.unreadable) == (DOCS + "a.parquet", 0, None)
    assert (second.uri, second.row_group_rows, second.rows) == (DOCS + "b.parquet", (2, 2, 1), 5)
    assert len(second.row_group_bytes) == 3
    assert second.etag == store.list(DOCS)[1].etag
    assert second.size_bytes == store.list(DOCS)[1].size_bytes


def test_the_bytes_of_a_row_group_are_those_of_its_text() -> None:
    """Fails when columns that no prompt holds count."""
    long = pa.array(["".join(map(str, range(start, start + 300))) for start in range(6)])
    table = _rows(6).append_column("image", long).append_column("pair", pa.array([{"a": 1, "text": "x" * 99}] * 6))
    data = _parquet(table.select(["image", "pair", "document_id", "text"]), row_group_size=3)
    [item] = list_input(_store(a__parquet=data), SPEC)
    assert len(item.row_group_bytes) == 2
    assert all(0 < size < 200 for size in item.row_group_bytes)


@pytest.mark.parametrize(
    "days",
    [
        pa.array([20_000, 10_000_000, None], pa.date32()),
        pa.array([20_000, -800_000, 1], pa.date32()),
        pa.array([1, 2**62, 2], pa.timestamp("us")),
        pa.array([1, 2**62, 2], pa.timestamp("us", "UTC")),
        pa.array([1, 2**40, 2], pa.timestamp("s")),
        pa.array([[1], [2**62], []], pa.list_(pa.timestamp("ms"))),
        pa.array([1, 2**62, 2], pa.duration("ms")),
    ],
    ids=str,
)
def test_a_passed_value_that_python_cannot_hold_costs_no_row(days: Any) -> None:
    """A year of five digits is a typo that Spark writes."""
    spec = SPEC.model_copy(update={"columns": ("day",)})
    first, second, third = _all(_store(a__parquet=_parquet(_rows(3).append_column("day", days))), spec)
    assert first.extra["day"] is not None
    assert first.note is None
    assert second == Document(
        "d1", "text 1", {"day": None}, note="day: beyond the years 1 to 9999, or no UTF-8; null here"
    )
    assert third.note is None


def test_rows_come_in_order_with_ids_and_texts() -> None:
    documents = _all(_store(a__parquet=_parquet(_rows(300), row_group_size=128)))
    assert [document.document_id for document in documents] == [f"d{n}" for n in range(300)]
    assert [document.text for document in documents] == [f"text {n}" for n in range(300)]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 90),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_shards_of_any_cut_in_any_order_hold_each_row_once(
    rows: int, group: int, cut: int, order: Any, is_shuffled: bool
) -> None:
    store = _store(a__parquet=_parquet(_rows(rows), row_group_size=group))
    [item] = list_input(store, SPEC)
    pieces = [
        Piece(item.uri, item.etag, index, start, min(start + cut, count))
        for index, count in enumerate(item.row_group_rows)
        for start in range(0, count, cut)
    ]
    if is_shuffled:
        order.shuffle(pieces)
    reader = DocumentReader(store, SPEC, LIMITS)
    read = {piece: list(reader.read(piece)) for piece in pieces}
    assert all(len(read[piece]) == piece.rows for piece in pieces)
    in_order = sorted(pieces, key=lambda piece: (piece.row_group, piece.row_start))
    assert [document.document_id for piece in in_order for document in read[piece]] == [f"d{n}" for n in range(rows)]


def test_long_texts_that_stand_together_are_held_a_few_at_a_time() -> None:
    """Where a row group is short on average, its long texts must not be read as many at a time as the short ones."""
    texts = ["short"] * 3000 + [f"{number:0100}" * 20_000 for number in range(24)] + ["short"] * 3000
    table = pa.table({"document_id": [f"d{n}" for n in range(len(texts))], "text": texts})
    store = _store(a__parquet=_parquet(table, write_batch_size=1))  # pages of one row
    [item] = list_input(store, SPEC)
    before, most = pa.total_allocated_bytes(), 0
    tracemalloc.start()
    try:
        for document, text in zip(read_piece(store, _pieces(item)[0], SPEC, LIMITS), texts, strict=True):
            assert document.text == text
            most = max(most, pa.total_allocated_bytes() - before)
        _, decoded = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 30_000_000
    assert decoded < 16_000_000


def test_pieces_in_order_are_served_by_one_pass() -> None:
    store = _store(a__parquet=_parquet(_rows(1000)))
    [item] = list_input(store, SPEC)
    reader = DocumentReader(store, SPEC, LIMITS)
    store.calls.clear()
    for start in range(0, 1000, 100):
        assert len(list(reader.read(Piece(item.uri, item.etag, 0, start, start + 100)))) == 100
    assert store.calls == [("open_input", item.uri)]


def test_a_piece_that_was_dropped_halfway_spoils_no_other() -> None:
    store = _store(a__parquet=_parquet(_rows(1000)))
    [item] = list_input(store, SPEC)
    reader = DocumentReader(store, SPEC, LIMITS)
    first = reader.read(Piece(item.uri, item.etag, 0, 0, 100))
    assert next(first).document_id == "d0"
    assert [d.document_id for d in reader.read(Piece(item.uri, item.etag, 0, 100, 102))] == ["d100", "d101"]
    first.close()  # type: ignore[attr-defined]
    assert [d.document_id for d in reader.read(Piece(item.uri, item.etag, 0, 102, 104))] == ["d102", "d103"]


def test_the_halves_of_a_shard_are_the_shard() -> None:
    store = _store(a__parquet=_parquet(_rows(7), row_group_size=3), b__parquet=_parquet(_rows(4, start=7)))
    shard = Shard(tuple(piece for item in list_input(store, SPEC) for piece in _pieces(item)))
    halves = [
        document.document_id
        for half in shard.halves()
        for piece in half.pieces
        for document in read_piece(store, piece, SPEC, LIMITS)
    ]
    assert halves == [f"d{n}" for n in range(11)]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([1, None], pa.int64()), ["1", None]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["a", None]).dictionary_encode(), ["a", None]),
        (pa.array([b"a", None]), ["a", None]),
        (pa.array([None, None], pa.null()), [None, None]),
    ],
    ids=str,
)
def test_ids_may_be_strings_or_integers(ids: pa.Array, expected: Sequence[str | None]) -> None:
    documents = _all(_store(a__parquet=_parquet(pa.table({"document_id": ids, "text": ["x", None]}))))
    assert [document.document_id for document in documents] == expected
    assert [document.text for document in documents] == ["x", None]


def test_text_that_is_not_utf8_is_read_and_its_neighbours_too() -> None:
    odd = pa.array([b"fine", b"lone \xed\xa0\x80", b"cut \xe2\x82", b"nul \x00"]).view(pa.string())
    table = pa.table({"document_id": ["a", "b", "c", "d"], "text": odd})
    texts = [document.text or "" for document in _all(_store(a__parquet=_parquet(table)))]
    assert texts[0] == "fine"
    assert texts[1].startswith("lone \ufffd")
    assert texts[2] == "cut \ufffd"
    assert texts[3] == "nul \x00"


def test_columns_are_passed_through_as_they_are() -> None:
    at = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
    extra = {
        "pages": pa.array([3, None], pa.int16()),
        "labels": pa.array([["a"], []], pa.list_(pa.string())),
        "at": pa.array([at, None], pa.timestamp("ns", "UTC")),
        "source": pa.array(["x", "y"]).dictionary_encode(),
        "meta": pa.array([{"k": 1.5}, None]),
    }
    store = _store(a__parquet=_parquet(pa.table({"document_id": ["a", "b"], "text": ["", ""], **extra})))
    spec = SPEC.model_copy(update={"columns": tuple(extra)})
    first, second = _all(store, spec)
    assert first.extra == {"pages": 3, "labels": ["a"], "at": at, "source": "x", "meta": {"k": 1.5}}
    assert second.extra == {"pages": None, "labels": [], "at": None, "source": "y", "meta": None}
    assert passed_columns(store, list_input(store, spec), spec) == {
        "pages": pa.int16(),
        "labels": pa.list_(pa.string()),
        "at": pa.timestamp("us", "UTC"),
        "source": pa.string(),
        "meta": pa.struct([("k", pa.float64())]),
    }


_UUIDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, b"1" * 16], pa.binary(16)))
_TIMES = pa.array([1_001, 2_000], pa.timestamp("ns", "UTC"))
_AT = [dt.datetime(1970, 1, 1, microsecond=number, tzinfo=dt.UTC) for number in (1, 2)]


@pytest.mark.parametrize(
    ("inner", "kind", "values"),
    [
        (_UUIDS, pa.binary(16), [b"0" * 16, b"1" * 16]),
        (_TIMES, pa.timestamp("us", "UTC"), _AT),
        (pa.array(["a", "b"]).dictionary_encode(), pa.string(), ["a", "b"]),
        (pa.array(["a", "b"], pa.string_view()), pa.string(), ["a", "b"]),
    ],
    ids=["uuid", "ns", "dictionary", "view"],
)
def test_what_stands_inside_of_lists_structures_and_maps_is_plain_too(
    inner: Any, kind: pa.DataType, values: list[object]
) -> None:
    """Fails when a part is asked to hold an extension type: each attempt would end there, after its last document."""
    extra = {
        "list": pa.ListArray.from_arrays([0, 1, 2], inner),
        "wide": pa.LargeListArray.from_arrays([0, 1, 2], inner),
        "fixed": pa.FixedSizeListArray.from_arrays(inner, 1),
        "struct": pa.StructArray.from_arrays([inner], names=["x"]),
        "map": pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "l"]), inner),
    }
    store = _store(a__parquet=_parquet(pa.table({"document_id": ["a", "b"], "text": ["", ""], **extra})))
    spec = SPEC.model_copy(update={"columns": tuple(extra)})
    types = passed_columns(store, list_input(store, spec), spec)
    assert [types[name].value_type for name in ("list", "wide", "fixed")] == [kind] * 3
    assert types["struct"] == pa.struct([("x", kind)])
    assert types["map"] == pa.map_(pa.string(), kind)
    for document, value, key in zip(_all(store, spec), values, "kl", strict=True):
        assert document.extra == {
            "list": [value],
            "wide": [value],
            "fixed": [value],
            "struct": {"x": value},
            "map": [(key, value)],
        }
        assert document.note is None


def test_passed_integers_of_two_widths_are_int64_and_other_differences_are_refused() -> None:
    def table(kind: pa.DataType) -> bytes:
        return _parquet(_rows(1).append_column("pages", pa.array([1]).cast(kind)))

    spec = SPEC.model_copy(update={"columns": ("pages",)})
    store = _store(a__parquet=table(pa.int16()), b__parquet=table(pa.int32()))
    assert passed_columns(store, list_input(store, spec), spec) == {"pages": pa.int64()}
    store.put(DOCS + "c.parquet", table(pa.string()))
    with pytest.raises(InputError, match=r"'pages' is int64 in .*a\.parquet, but string in .*c\.parquet"):
        passed_columns(store, list_input(store, spec), spec)


def test_a_column_of_nulls_has_the_type_that_other_objects_give_it() -> None:
    def table(*values: Any, kind: pa.DataType) -> bytes:
        return _parquet(_rows(len(values)).append_column("pages", pa.array(values, kind)))

    spec = SPEC.model_copy(update={"columns": ("pages",)})
    store = _store(a__parquet=table(None, None, kind=pa.null()))
    assert passed_columns(store, list_input(store, spec), spec) == {"pages": pa.string()}
    store.put(DOCS + "b.parquet", table(3, None, kind=pa.int32()))
    store.put(DOCS + "c.parquet", table(None, kind=pa.null()))
    assert passed_columns(store, list_input(store, spec), spec) == {"pages": pa.int32()}
    assert [document.extra["pages"] for document in _all(store, spec)] == [None, None, 3, None, None]
    store.put(DOCS + "d.parquet", table("x", kind=pa.string()))
    with pytest.raises(InputError, match=r"'pages' is int32 in .*b\.parquet, but string in .*d\.parquet"):
        passed_columns(store, list_input(store, spec), spec)


@pytest.mark.parametrize(
    ("empty", "full"),
    [([], ["x"]), ([[]], [["x"]]), ({"a": None, "b": []}, {"a": "x", "b": [1]}), ([{"a": None}], [{"a": 2}])],
    ids=["list", "list of lists", "structure", "list of structures"],
)
def test_what_is_always_empty_in_one_object_has_the_type_of_the_others(empty: Any, full: Any) -> None:
    spec = SPEC.model_copy(update={"columns": ("tags",)})
    store = _store(
        a__parquet=_parquet(_rows(1).append_column("tags", pa.array([empty]))),
        b__parquet=_parquet(_rows(1).append_column("tags", pa.array([full]))),
    )
    assert passed_columns(store, list_input(store, spec), spec) == {"tags": pa.array([full]).type}
    assert [document.extra["tags"] for document in _all(store, spec)] == [empty, full]


def test_a_text_column_of_nulls_is_documents_without_a_text() -> None:
    store = _store(
        a__parquet=_parquet(pa.table({"document_id": ["a"], "text": pa.array([None], pa.null())})),
        b__parquet=_parquet(_rows(1)),
    )
    assert [document.text for document in _all(store)] == [None, "text 0"]


def test_a_path_without_objects_is_named_with_the_folder_that_it_counts_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for uri, said in (("docs/", f"docs/ names no objects in {tmp_path}"), ("/no/docs/", "/no/docs/ names no objects")):
        with pytest.raises(InputError, match=f"{re.escape(said)}$"):
            list_objects(LocalStore(), InputSpec(uri=uri))


def _damaged_objects() -> dict[str, tuple[bytes, str]]:
    good = _parquet(_rows(3))
    return {
        "empty": (b"", "no readable Parquet footer"),
        "cut": (good[: len(good) // 2], "no readable Parquet footer"),
        "footerless": (good[:-20] + b"\x00" * 16 + b"PAR1", "no readable Parquet footer"),
        "text": (b"just some text", "no readable Parquet footer"),
        "column_missing": (_parquet(_rows(3).rename_columns(["document_id", "body"])), "no column 'text'"),
        "text_is_number": (_parquet(pa.table({"document_id": ["a"], "text": [1]})), "'text' is int64"),
        "id_is_float": (_parquet(pa.table({"document_id": [1.5], "text": ["a"]})), "'document_id' is double"),
    }


@pytest.mark.parametrize("kind", _damaged_objects())
def test_a_bad_object_is_listed_with_its_reason_and_the_others_are_read(kind: str) -> None:
    data, reason = _damaged_objects()[kind]
    store = _store(a__parquet=data, b__parquet=_parquet(_rows(2)))
    bad, good = list_input(store, SPEC)
    assert bad.unreadable is not None
    assert reason in bad.unreadable
    assert bad.uri in bad.unreadable
    assert bad.rows == 0
    assert good.rows == 2
    check_columns(store, (bad, good), SPEC)
    assert len(_all(store)) == 2


def test_the_reason_says_which_formats_there_are_where_a_name_tells_none() -> None:
    data = b"id,text\n1,a\n"
    csv, parquet = list_input(_store(a__csv=data, b__parquet=data), SPEC)
    assert csv.unreadable == (
        f"{DOCS}a.csv has no readable Parquet footer; what ends otherwise than in .jsonl, .ndjson, .txt, .md "
        "is read as Parquet: convert it, or set input.format"
    )
    assert parquet.unreadable == f"{DOCS}b.parquet has no readable Parquet footer"


def test_an_input_that_cannot_be_read_at_all_is_an_error_that_shows_the_columns() -> None:
    store = _store(a__parquet=_parquet(_rows(3)))
    spec = InputSpec(uri=DOCS, text="body")
    with pytest.raises(InputError, match=r"a\.parquet has no column 'body'; its columns are document_id, text$"):
        check_columns(store, list_input(store, spec), spec)
    spec = InputSpec(uri=DOCS, id="DocumentId")
    with pytest.raises(InputError, match=r"are document_id, text; did you mean 'document_id'\?"):
        check_columns(store, list_input(store, spec), spec)


def test_a_vanished_or_replaced_object_is_unreadable() -> None:
    store = _store(a__parquet=_parquet(_rows(3)))
    [piece] = _pieces(list_input(store, SPEC)[0])
    store.put(DOCS + "a.parquet", _parquet(_rows(4)))
    with pytest.raises(UnreadableError, match="changed"):
        list(read_piece(store, piece, SPEC, LIMITS))
    del store.objects[DOCS + "a.parquet"]
    with pytest.raises(UnreadableError, match="vanished"):
        list(read_piece(store, piece, SPEC, LIMITS))


def test_a_flipped_bit_in_a_page_is_found_and_other_row_groups_live() -> None:
    data = _parquet(_rows(200), row_group_size=100, compression="none", use_dictionary=False)
    position = data.index(b"text 150")
    store = _store(a__parquet=data[:position] + b"T" + data[position + 1 :])
    first, second = _pieces(list_input(store, SPEC)[0])
    assert len(list(read_piece(store, first, SPEC, LIMITS))) == 100
    with pytest.raises(UnreadableError, match=r"row group 1 of .*a\.parquet is damaged"):
        list(read_piece(store, second, SPEC, LIMITS))


def test_want_of_memory_is_no_damage() -> None:
    """Fails when documents become outcomes because Arrow could not have the memory to read them."""

    class Full(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise pa.ArrowMemoryError("malloc of size 64 failed")

    class FullStore(MemoryStore):
        def open_input(self, uri: str, *, etag: str | None = None) -> BinaryIO:
            return Full(self.get(uri))

    store = FullStore()
    store.put(DOCS + "a.parquet", _parquet(_rows(3)))
    with pytest.raises(pa.ArrowMemoryError):
        list_input(store, SPEC)


def test_a_row_group_that_lacks_planned_rows_is_unreadable() -> None:
    store = _store(a__parquet=_parquet(_rows(3)))
    [piece] = _pieces(list_input(store, SPEC)[0])
    for longer in (
        Piece(piece.uri, piece.etag, 0, 0, 5),
        Piece(piece.uri, piece.etag, 0, 4, 5),
        Piece(piece.uri, piece.etag, 1, 0, 1),
    ):
        with pytest.raises(UnreadableError):
            list(read_piece(store, longer, SPEC, LIMITS))


def test_a_row_group_above_the_limit_is_refused_before_it_is_read() -> None:
    store = _store(a__parquet=_parquet(_rows(1000)))
    [piece] = _pieces(list_input(store, SPEC)[0])
    with pytest.raises(UnreadableError, match=r"row group 0 of .* more than limits\.row_group_bytes 100"):
        list(read_piece(store, piece, SPEC, LimitsSpec(row_group_bytes=100)))


def test_bookkeeping_objects_are_left_out_and_partitions_are_not() -> None:
    store = MemoryStore()
    for name in (
        "_SUCCESS",
        ".hidden.parquet",
        "_delta_log/0.parquet",
        "day=1/a.parquet",
        "_day=1/b.parquet",
        "c.parquet",
    ):
        store.put(DOCS + name, _parquet(_rows(1)))
    listed = [info.uri.removeprefix(DOCS) for info in list_objects(store, SPEC)]
    assert listed == ["_day=1/b.parquet", "c.parquet", "day=1/a.parquet"]
    assert [item.uri for item in list_input(store, SPEC)] == [DOCS + name for name in listed]
    one = InputSpec(uri=DOCS + ".hidden.parquet")
    assert len(list_objects(store, one)) == 1


@pytest.mark.parametrize("asked", [DOCS, DOCS + "*", DOCS.rstrip("/")])
@pytest.mark.parametrize("rows", ["part-0.parquet", "day=1/a.jsonl"])
def test_a_text_file_among_rows_is_no_document_unless_it_is_named_apart(asked: str, rows: str) -> None:
    store = MemoryStore()
    store.put(DOCS + rows, _parquet(_rows(1)) if rows.endswith("parquet") else _lines({}))
    store.put(DOCS + "README.md", b"what lies here")
    with pytest.raises(InputError) as refused:
        list_input(store, InputSpec(uri=asked))
    only, both = re.findall("`input.uri: (.+?)`", refused.value.message)
    assert all(name in refused.value.message for name in (DOCS + rows, DOCS + "README.md"))
    assert [item.uri for item in list_input(store, InputSpec(uri=only))] == [DOCS + rows]
    uris = tuple(both.strip("[]").split(", "))
    assert {item.uri for item in list_input(store, InputSpec(uri=uris))} == {DOCS + rows, DOCS + "README.md"}


def test_a_text_file_beside_objects_without_a_suffix_is_refused_too() -> None:
    store = _store(**{"000000_0": _parquet(_rows(1)), "notes__txt": b"n"})
    with pytest.raises(InputError, match="move away what is no document"):
        list_input(store, SPEC)
    assert len(list_input(store, InputSpec(uri=(DOCS + "000000_0", DOCS + "notes.txt")))) == 2


def test_several_uris_are_one_input_and_an_empty_one_is_named() -> None:
    store = _store(a__parquet=_parquet(_rows(1)), b__parquet=_parquet(_rows(1)))
    spec = InputSpec(uri=(DOCS + "b*", DOCS, DOCS + "a.parquet"))
    assert [info.uri for info in list_objects(store, spec)] == [DOCS + "a.parquet", DOCS + "b.parquet"]
    with pytest.raises(InputError, match="s3://memory/nothing/"):
        list_objects(store, InputSpec(uri=(DOCS, "s3://memory/nothing/")))


def test_files_of_this_machine_are_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.parquet").write_bytes(_parquet(_rows(3)))
    (tmp_path / "docs" / "_SUCCESS").write_bytes(b"")
    store = LocalStore()
    for uri in (str(tmp_path / "docs"), f"file://{tmp_path}/docs/", str(tmp_path / "docs" / "*.parquet")):
        spec = InputSpec(uri=uri)
        [item] = list_input(store, spec)
        [piece] = _pieces(item)
        assert [d.document_id for d in read_piece(store, piece, spec, LIMITS)] == ["d0", "d1", "d2"]


class TestLines:
    """JSONL."""

    def test_rows_are_lines_and_blank_ones_are_none(self) -> None:
        lines = [b'\xef\xbb\xbf{"document_id": "a", "text": "x"}', b"", b"  \r", b'{"document_id": 7, "text": null}\r']
        store = _store(a__jsonl=b"\n".join([*lines, b'{"text": "last"}']))
        [item] = list_input(store, SPEC)
        assert item.row_group_rows == (3,)
        assert _all(store) == [Document("a", "x"), Document("7", None), Document(None, "last")]

    def test_a_line_that_is_no_row_says_so_and_costs_no_other(self) -> None:
        lines = ["{}", "not json", "[1]", '{"document_id": true}', '{"document_id": "e", "text": 5}', "[" * 100_000]
        documents = _all(_store(a__jsonl="\n".join([*lines, '{"document_id": "z", "text": "z"}']).encode()))
        reasons = [document.unreadable for document in documents]
        assert reasons == [
            None,
            "the line is not a JSON object",
            "the line is not a JSON object",
            "'document_id' is neither a string nor an integer",
            "'text' is not a string",
            "the line is not a JSON object",
            None,
        ]
        assert documents[4].document_id == "e"
        assert documents[-1] == Document("z", "z")

    def test_a_line_beyond_all_bounds_is_one_unreadable_row(self) -> None:
        limits = LimitsSpec(document_bytes=1)
        long = json.dumps({"document_id": "a", "text": "x" * 2_000_000})
        store = _store(a__jsonl=f'{long}\n{{"document_id": "b", "text": "y"}}\n{long}'.encode())
        first, second, third = _all(store, limits=limits)
        assert first.unreadable is not None
        assert "bytes" in first.unreadable
        assert second == Document("b", "y")
        assert third.unreadable == first.unreadable

    def test_lone_surrogates_become_readable(self) -> None:
        [document] = _all(_store(a__jsonl=b'{"document_id": "\\ud800", "text": "\\ud83d\\ude00 \\udfff"}'))
        assert document == Document("\ufffd", "\U0001f600 \ufffd")

    def test_other_columns_pass_as_strings_or_json(self) -> None:
        spec = SPEC.model_copy(update={"columns": ("source", "meta", "absent")})
        store = _store(a__jsonl=b'{"document_id": "a", "text": "", "source": "s", "meta": {"k": [1]}}')
        [document] = _all(store, spec)
        assert document.extra == {"source": "s", "meta": '{"k":[1]}', "absent": None}
        assert passed_columns(store, list_input(store, spec), spec) == dict.fromkeys(spec.columns, pa.string())

    @pytest.mark.parametrize(
        "meta", ['{"t": "\\ud83d"}', '["\\udfff"]', "NaN", '{"a": -Infinity}', "[" * 900 + "]" * 900]
    )
    def test_whatever_a_passed_column_holds_its_row_is_given(self, meta: str) -> None:
        spec = SPEC.model_copy(update={"columns": ("meta",)})
        lines = [f'{{"document_id": "{name}", "text": "t", "meta": {meta}}}' for name in "ab"]
        documents = _all(_store(a__jsonl="\n".join(lines).encode()), spec)
        assert [document.document_id for document in documents] == ["a", "b"]
        for document in documents:
            assert document.unreadable or json.loads(document.extra["meta"]) is not None

    def test_a_wrong_key_is_an_error_that_shows_the_keys(self) -> None:
        store = _store(a__jsonl=b'{"id": "a", "text": ""}\n')
        spec = InputSpec(uri=DOCS, text="texts", id="id")
        with pytest.raises(InputError, match=r"no key 'texts'.* id, text; did you mean 'text'\?"):
            check_columns(store, list_input(store, spec), spec)

    def test_a_passed_column_that_no_row_has_is_an_error_that_shows_the_keys(self) -> None:
        store = _store(a__jsonl=_lines({"source": "s"}), b__jsonl=_lines({"source": "s"}))
        spec = InputSpec(uri=DOCS, columns=("sourc",))
        with pytest.raises(InputError, match=r"2 JSON lines objects.*'sourc'.*source; did you mean 'source'\?"):
            check_columns(store, list_input(store, spec), spec)

    def test_a_passed_column_that_only_the_last_row_has_is_null_in_the_others(self) -> None:
        store = _store(a__jsonl=_lines(*[{}] * 200), b__jsonl=b"", c__jsonl=_lines(*[{}] * 200, {"source": "s"}))
        spec = InputSpec(uri=DOCS, columns=("source",))
        check_columns(store, list_input(store, spec), spec)
        assert [document.extra["source"] for document in _all(store, spec)] == [None] * 400 + ["s"]

    def test_a_passed_column_that_may_stand_in_a_line_too_long_to_look_at_is_warned_of(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = _store(a__jsonl=_lines({}, {"text": "x" * 2**21, "source": "s"}, {}))
        spec = InputSpec(uri=DOCS, columns=("source",))
        check_columns(store, list_input(store, spec), spec)
        assert "no row that was looked at has the key 'source'" in caplog.text
        assert [document.extra["source"] for document in _all(store, spec)] == [None, "s", None]

    @pytest.mark.parametrize("bound", [3000, 1000])
    def test_a_passed_column_beyond_the_bytes_that_are_searched_is_warned_of(
        self, bound: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """In an object whose end is not looked at, or in one that is not looked at."""
        monkeypatch.setattr(input_columns, "SEARCHED_BYTES", bound)
        store = _store(a__jsonl=_lines({"text": "x" * 2000}), b__jsonl=_lines({"text": "x" * 2000}, {"source": "s"}))
        spec = InputSpec(uri=DOCS, columns=("source",))
        check_columns(store, list_input(store, spec), spec)
        assert "no row that was looked at has the key 'source'" in caplog.text

    def test_lines_without_the_name_of_a_passed_column_are_not_parsed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = _store(a__jsonl=_lines(*[{}] * 300, {"text": '"sourc"'}), b__jsonl=_lines(*[{}] * 300))
        spec = InputSpec(uri=DOCS, columns=("sourc",))
        objects, whole = list_input(store, spec), text_input._parsed
        parsed: list[bytes] = []

        def counted(line: bytes) -> Any:
            parsed.append(line)
            return whole(line)

        monkeypatch.setattr(text_input, "_parsed", counted)
        with pytest.raises(InputError, match="'sourc'"):
            check_columns(store, objects, spec)
        assert len(parsed) == 100

    @pytest.mark.parametrize("name", ["größe", "a/b"])
    def test_a_passed_column_whose_name_writers_escape_is_found(self, name: str) -> None:
        last = json.dumps({"document_id": "z", "text": "t", name: "s"}).replace("/", "\\/")
        store = _store(a__jsonl=_lines(*[{}] * 200) + b"\n" + last.encode())
        spec = InputSpec(uri=DOCS, columns=(name,))
        check_columns(store, list_input(store, spec), spec)
        assert _all(store, spec)[-1].extra == {name: "s"}

    def test_objects_that_are_read_at_once_share_what_they_find(self) -> None:
        store = _store(a__jsonl=_lines(*[{}] * 200, {"one": 1}), b__jsonl=_lines(*[{}] * 200, {"two": 2}))
        spec = InputSpec(uri=DOCS, columns=("one", "two"))
        check_columns(store, list_input(store, spec), spec)
        search = text_input.KeySearch(frozenset({"one", "two"}), {"one", "two"})
        search.read(store, list_input(store, spec)[0], 0)
        assert search.is_whole

    @pytest.mark.parametrize("changes", [{"text": "texts"}, {"columns": ("sourc",)}])
    def test_a_first_object_without_a_row_hides_no_wrong_key(self, changes: dict[str, Any]) -> None:
        store = _store(a__jsonl=b"no row", b__jsonl=_lines({"source": "s"}))
        spec = InputSpec(uri=DOCS, **changes)
        with pytest.raises(InputError, match=r"b\.jsonl .*did you mean"):
            check_columns(store, list_input(store, spec), spec)

    def test_a_passed_column_that_a_folder_or_parquet_beside_gives_may_lack_in_rows(self) -> None:
        spec = InputSpec(uri=DOCS, columns=("source",))
        store = _store(**{"source=x/a__jsonl": _lines({}), "b__jsonl": _lines({})})
        check_columns(store, list_input(store, spec), spec)
        rows = _rows(1).append_column("source", pa.array(["s"]))
        store = _store(a__parquet=_parquet(rows), b__jsonl=_lines({}))
        check_columns(store, list_input(store, spec), spec)

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.integers(0, 60), max_size=40), st.booleans(), st.integers(20, 90))
    def test_stretches_of_any_size_hold_each_line_once(self, sizes: list[int], has_end: bool, chunk: int) -> None:
        lines = [json.dumps({"document_id": str(n), "text": "x" * size}) for n, size in enumerate(sizes)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_input, "CHUNK_BYTES", chunk)
            store = _store(a__jsonl=("\n".join(lines) + ("\n" if has_end else "")).encode())
            documents = _all(store)
        assert [document.document_id for document in documents] == [str(n) for n in range(len(sizes))]
        assert [len(document.text or "") for document in documents] == sizes


class TestTextFiles:
    def test_a_file_is_a_document_named_by_its_uri(self) -> None:
        store = _store(a__txt=b"\xef\xbb\xbfone", b__md="zwei \u00e4".encode(), c__txt=b"bad \xff", d__txt=b"")
        assert _all(store) == [
            Document(DOCS + "a.txt", "one"),
            Document(DOCS + "b.md", "zwei \u00e4"),
            Document(DOCS + "c.txt", "bad \ufffd"),
            Document(DOCS + "d.txt", ""),
        ]

    def test_a_huge_file_is_not_read_whole_but_is_still_too_long(self) -> None:
        [document] = _all(_store(a__txt=b"x" * 1000), limits=LimitsSpec(document_bytes=100))
        assert 100 < len(document.text or "") < 110

    def test_it_has_no_columns_to_pass(self) -> None:
        spec = SPEC.model_copy(update={"columns": ("source",)})
        store = _store(a__txt=b"one")
        with pytest.raises(InputError, match="text file"):
            passed_columns(store, list_input(store, spec), spec)


def test_a_format_that_is_named_overrides_the_suffix() -> None:
    store = _store(part_0=b'{"document_id": "a", "text": "x"}\n')
    assert _all(store, InputSpec(uri=DOCS, format="jsonl")) == [Document("a", "x")]
    [item] = list_input(store, SPEC)
    assert item.unreadable is not None
