"""Finds the one row of an input that holds a given document, reading as little as its format allows."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.core.document import InputObject, Piece
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage import parquet_input
from pipeline.storage.documents import format_of, read_piece
from pipeline.storage.store import Store

__all__ = ["find_row"]


def find_row(
    store: Store, objects: Sequence[InputObject], spec: InputSpec, limits: LimitsSpec, document_id: str
) -> Piece | None:
    """The first row with this id, as a piece; None where no readable object has one.

    Of Parquet only the id column is read; JSON lines are read whole; the id of a text file is its URI.

    Raises:
        UnreadableError: an object is damaged, or has changed since it was listed.
        StorageError: see `Store`.
    """
    for item in objects:
        if item.unreadable is not None:
            continue
        found = _find(store, item, spec, limits, document_id)
        if found is not None:
            row_group, row = found
            return Piece(item.uri, item.etag, row_group, row, row + 1)
    return None


def _find(
    store: Store, item: InputObject, spec: InputSpec, limits: LimitsSpec, document_id: str
) -> tuple[int, int] | None:
    match format_of(item.uri, spec):
        case "parquet":
            return parquet_input.row_of(store, item, spec.id, document_id)
        case "text":
            return (0, 0) if item.uri == document_id else None
        case "jsonl":
            for row_group, rows in enumerate(item.row_group_rows):
                piece = Piece(item.uri, item.etag, row_group, 0, rows)
                for row, document in enumerate(read_piece(store, piece, spec, limits)):
                    if document.document_id == document_id:
                        return row_group, row
    return None
