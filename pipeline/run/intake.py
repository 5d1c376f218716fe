"""Owns what enters an engine: a shard's rows in order, each as a clean document or already as its outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.core.document import Document, Piece, Shard
from pipeline.core.errors import StorageNotFoundError, UnreadableError, VerificationError
from pipeline.core.outcome import Cause, Outcome, Status

__all__ = ["KnownColumns", "ReadPiece", "Row", "clean_text", "is_synthetic_id", "rows_of", "synthetic_id"]

ReadPiece = Callable[[Piece], Iterator[Document]]
KnownColumns = Callable[[Piece], Mapping[str, Any]]
"""The passed columns that a piece's rows have even where they cannot be read."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Row:
    """One planned row: a document to extract, or the outcome it has without that."""

    index: int
    """Counted from 0 within the shard."""
    content: Document | Outcome
    note: str | None = None
    """What was changed in the text, for the outcome's detail."""


def synthetic_id(piece: Piece, row: int) -> str:
    """The id of a row that cannot be read: `unreadable:<uri>#<row group>:<row>`, rows from 0."""
    return f"unreadable:{piece.uri}#{piece.row_group}:{row}"


def is_synthetic_id(document_id: str | None) -> bool:
    return document_id is not None and document_id.startswith("unreadable:")


def clean_text(text: str) -> tuple[str, int]:
    """Text that can be encoded: each lone surrogate becomes U+FFFD.  Also returns how many there were."""
    return _SURROGATES.subn("\ufffd", text)


def rows_of(
    shard: Shard,
    read: ReadPiece,
    *,
    document_bytes: int,
    before: Shard | None = None,
    known: KnownColumns | None = None,
    allow_duplicates: bool = False,
) -> Iterator[Row]:
    """Every planned row of a shard, once, in order, whatever the input does.

    Args:
        shard: what was planned.
        read: the documents of one piece, in order.
        document_bytes: texts of more UTF-8 bytes are too long.
        before: rows whose ids count as seen, where the shard is a piece of another.
        known: what rows that cannot be read pass through all the same.
        allow_duplicates: equal ids are no fault, as in a rerun: its shards hold rows of many shards of the other run,
            which has left out those that were doubles in their own.

    Raises:
        StorageError: the store gave out; nothing is said about the rows then.
        VerificationError: there are more rows than were planned.
    """
    index = 0
    seen: set[str | None] | None = None
    if not allow_duplicates:
        earlier = () if before is None else rows_of(before, read, document_bytes=0)
        seen = {row.content.document_id for row in earlier}
    for piece in shard.pieces:
        for content in _planned(piece, read, {} if known is None else known(piece)):
            yield _checked(index, content, seen, document_bytes)
            index += 1


def _planned(piece: Piece, read: ReadPiece, known: Mapping[str, Any]) -> Iterator[Document | Outcome]:
    """The piece's documents; a failed outcome for each row that was planned and cannot be read."""
    row, reason = piece.row_start, "the row group holds fewer rows than were planned"
    try:
        for document in read(piece):
            if row == piece.row_stop:
                raise VerificationError(f"{piece.uri}, row group {piece.row_group}: more rows than were planned")
            if document.unreadable is None or document.document_id:
                yield document
            else:
                yield _unreadable(synthetic_id(piece, row), document.unreadable, document.extra)
            row += 1
    except (UnreadableError, StorageNotFoundError) as error:
        reason = error.message
    for missing in range(row, piece.row_stop):
        yield _unreadable(synthetic_id(piece, missing), reason, known)


def _unreadable(document_id: str, reason: str, extra: Mapping[str, Any]) -> Outcome:
    return Outcome(document_id, Status.FAILED, Cause.UNREADABLE, reason, extra=extra)


def _checked(index: int, content: Document | Outcome, seen: set[str | None] | None, document_bytes: int) -> Row:
    if isinstance(content, Outcome):
        return Row(index, content)
    if content.document_id is None:
        return _failed(index, content, Cause.NULL_ID)
    document_id, _ = clean_text(content.document_id)
    document = replace(content, document_id=document_id)
    if seen is not None:
        if document_id in seen:
            return _failed(index, document, Cause.DUPLICATE_ID)
        seen.add(document_id)
    if document.unreadable is not None:
        return _failed(index, document, Cause.UNREADABLE, document.unreadable)
    if document.text is None:
        return _failed(index, document, Cause.NULL_TEXT)
    if not document.text or document.text.isspace():
        return _failed(index, document, Cause.EMPTY)
    text, replaced = clean_text(document.text)
    size = len(text.encode())
    if size > document_bytes:
        return _failed(index, document, Cause.TOO_LONG, f"{size} bytes; limits.document_bytes is {document_bytes}")
    surrogates = f"{replaced} lone surrogates read as U+FFFD" if replaced else None
    note = "; ".join(filter(None, (document.note, surrogates))) or None
    return Row(index, replace(document, text=text), note)


def _failed(index: int, document: Document, cause: Cause, detail: str | None = None) -> Row:
    return Row(index, Outcome(document.document_id, Status.FAILED, cause, detail, extra=document.extra))
