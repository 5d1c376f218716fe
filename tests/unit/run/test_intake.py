"""Every planned row enters once, as a clean document or with the right cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pipeline.core.document import Document, Piece, Shard
from pipeline.core.errors import StorageError, StorageNotFoundError, UnreadableError, VerificationError
from pipeline.core.outcome import Cause, Outcome
from pipeline.run.intake import Row, rows_of, synthetic_id

PIECE = Piece("s3://b/in/a.parquet", "e", 3, 10, 14)


def _read(*documents: Document, error: Exception | None = None) -> Callable[[Piece], Iterator[Document]]:
    def read(piece: Piece) -> Iterator[Document]:
        yield from documents
        if error is not None:
            raise error

    return read


def _rows(read: Callable[[Piece], Iterator[Document]], size: int, document_bytes: int = 100) -> list[Row]:
    piece = Piece(PIECE.uri, PIECE.etag, PIECE.row_group, 10, 10 + size)
    rows = list(rows_of(Shard((piece,)), read, document_bytes=document_bytes))
    assert [row.index for row in rows] == list(range(size))
    return rows


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        (Document(None, "text"), Cause.NULL_ID),
        (Document("a", None), Cause.NULL_TEXT),
        (Document("a", ""), Cause.EMPTY),
        (Document("a", " \n\t"), Cause.EMPTY),
        (Document("a", "é" * 51), Cause.TOO_LONG),
        (Document("a", "text", unreadable="the line is not a JSON object"), Cause.UNREADABLE),
    ],
)
def test_a_document_that_cannot_be_asked_about_has_its_cause(document: Document, cause: Cause) -> None:
    (row,) = _rows(_read(document), 1)
    assert isinstance(row.content, Outcome)
    assert row.content.cause is cause
    assert row.content.document_id == document.document_id


def test_a_document_of_as_many_bytes_as_are_allowed_is_asked_about() -> None:
    (row,) = _rows(_read(Document("a", "é" * 50)), 1)
    assert isinstance(row.content, Document)


def test_the_first_of_two_equal_ids_is_kept() -> None:
    first, second = _rows(_read(Document("a", "one"), Document("a", "two")), 2)
    assert isinstance(first.content, Document)
    assert isinstance(second.content, Outcome)
    assert second.content.cause is Cause.DUPLICATE_ID


@pytest.mark.parametrize("unreadable", [None, "the line is not a JSON object"])
def test_an_id_that_stands_before_a_half_is_a_duplicate_in_it_as_in_the_whole(unreadable: str | None) -> None:
    whole = {
        row: Document("same" if row in (10, 13) else f"d{row}", "text", unreadable=unreadable if row == 10 else None)
        for row in range(PIECE.row_start, PIECE.row_stop)
    }

    def read(piece: Piece) -> Iterator[Document]:
        return (whole[row] for row in range(piece.row_start, piece.row_stop))

    first, second = Shard((PIECE,)).halves()
    rows = list(rows_of(second, read, document_bytes=100, before=first))
    assert isinstance(rows[0].content, Document)
    assert isinstance(rows[1].content, Outcome)
    assert rows[1].content.cause is Cause.DUPLICATE_ID
    undivided = list(rows_of(Shard((PIECE,)), read, document_bytes=100))
    assert [row.content for row in undivided[2:]] == [row.content for row in rows]


def test_equal_ids_are_no_fault_where_they_are_allowed_nor_those_before_a_half() -> None:
    read = _read(Document("a", "one"), Document("a", "two"))
    first, second = Shard((Piece(PIECE.uri, "e", 0, 0, 2),)), Shard((Piece(PIECE.uri, "e", 1, 0, 2),))
    rows = list(rows_of(second, read, document_bytes=100, before=first, allow_duplicates=True))
    assert [row.content for row in rows] == [Document("a", "one"), Document("a", "two")]


def test_lone_surrogates_are_replaced_one_for_one_and_noted() -> None:
    (row,) = _rows(_read(Document("a\ud800", "b\udfffc\x00d")), 1)
    assert isinstance(row.content, Document)
    assert row.content.text == "b\ufffdc\x00d"
    assert row.content.document_id == "a\ufffd"
    assert row.note is not None
    assert row.note.startswith("1 lone surrogate")


@pytest.mark.parametrize("error", [UnreadableError("bad page"), StorageNotFoundError("gone")])
def test_rows_after_the_damage_are_failed_under_ids_of_their_place(error: Exception) -> None:
    rows = _rows(_read(Document("a", "one"), error=error), 3)
    assert isinstance(rows[0].content, Document)
    lost = [row.content for row in rows[1:]]
    assert all(isinstance(item, Outcome) and item.cause is Cause.UNREADABLE for item in lost)
    assert [item.document_id for item in lost] == [
        "unreadable:s3://b/in/a.parquet#3:11",
        "unreadable:s3://b/in/a.parquet#3:12",
    ]
    assert synthetic_id(PIECE, 11) == "unreadable:s3://b/in/a.parquet#3:11"


def test_an_unreadable_row_passes_through_what_is_known_of_it() -> None:
    line = Document(None, None, {"day": "1", "source": None}, unreadable="the line is not a JSON object")
    read = _read(Document("a", "one"), line, error=UnreadableError("bad page"))
    piece = Piece("s3://b/day=1/a.jsonl", "e", 0, 0, 3)
    rows = list(rows_of(Shard((piece,)), read, document_bytes=100, known=lambda _: {"day": "1"}))
    assert [row.content.extra for row in rows] == [{}, {"day": "1", "source": None}, {"day": "1"}]


def test_fewer_and_more_rows_than_planned_are_no_silence() -> None:
    fewer = _rows(_read(Document("a", "one")), 2)
    assert isinstance(fewer[1].content, Outcome)
    with pytest.raises(VerificationError, match="more rows than were planned"):
        _rows(_read(Document("a", "one"), Document("b", "two")), 1)


def test_a_store_that_gives_out_says_nothing_about_documents() -> None:
    with pytest.raises(StorageError):
        _rows(_read(Document("a", "one"), error=StorageError("503")), 3)
