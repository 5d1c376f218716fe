"""Owns which documents stand for an input: rows spread evenly over it, the same ones each time, read one by one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.core.document import Document, InputObject, Piece, Shard
from pipeline.core.errors import InputError
from pipeline.core.outcome import Outcome
from pipeline.core.spec import JobSpec
from pipeline.run.intake import Row, rows_of
from pipeline.run.preflight import input_objects
from pipeline.storage.documents import DocumentReader
from pipeline.storage.input_columns import passed_columns
from pipeline.storage.lookup import find_row
from pipeline.storage.store import open_store

__all__ = ["Sample", "read_document", "read_sample", "spread"]

WITHIN_ROWS = 4096
"""A row is taken from the first so many of its row group: to reach one, those before it have to be read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of an input, and what they were taken from."""

    objects: tuple[InputObject, ...]
    rows: tuple[Row, ...]
    documents: tuple[Document, ...]
    """The document of each row, for those that hold an outcome already: without a text."""
    columns: Mapping[str, pa.DataType]
    """Types of the input columns that are passed through."""


def read_sample(spec: JobSpec, count: int) -> Sample:
    """`count` rows of a job's input, or all of them where it has fewer.

    Raises:
        InputError: there are no documents that can be read as the job asks; whatever a run would refuse is refused.
        StorageError: see `Store`.
    """
    store = open_store(spec.input.uris[0], spec.s3)
    objects = input_objects(store, spec)
    return _read(spec, objects, spread(objects, count))


def read_document(spec: JobSpec, document_id: str) -> Sample:
    """The one row with this id.

    Raises:
        InputError: there is none.
        StorageError: see `Store`.
    """
    store = open_store(spec.input.uris[0], spec.s3)
    objects = input_objects(store, spec)
    piece = find_row(store, objects, spec.input, spec.limits, document_id)
    if piece is None:
        rows = sum(item.rows for item in objects)
        raise InputError(f"none of the {rows} documents of {', '.join(spec.input.uris)} has the id {document_id!r}")
    return _read(spec, objects, (piece,))


def _read(spec: JobSpec, objects: tuple[InputObject, ...], pieces: tuple[Piece, ...]) -> Sample:
    store = open_store(spec.input.uris[0], spec.s3)
    columns = passed_columns(store, objects, spec.input)
    reader = DocumentReader(store, spec.input, spec.limits)
    try:
        limit = spec.limits.document_bytes
        rows = tuple(
            rows_of(
                # Of many shards, and an id may stand in several.
                Shard(pieces),
                reader.read,
                document_bytes=limit,
                known=reader.known,
                allow_duplicates=True,
            )
        )
    finally:
        reader.close()
    return Sample(objects, rows, tuple(map(_document, rows)), columns)


def _document(row: Row) -> Document:
    if isinstance(row.content, Outcome):
        return Document(row.content.document_id, None, row.content.extra)
    return row.content


def spread(objects: Sequence[InputObject], count: int) -> tuple[Piece, ...]:
    """One row from each of `count` equal stretches of the input, in order; pure, and the same for the same input."""
    groups = [
        (item, index, rows)
        for item in objects
        if item.unreadable is None
        for index, rows in enumerate(item.row_group_rows)
        if rows
    ]
    total = sum(rows for _, _, rows in groups)
    count = min(count, total)
    rng = random.Random(total)
    wanted = [total * number // count + rng.randrange(max(1, total // count)) for number in range(count)]
    chosen: set[tuple[int, int]] = set()
    before = position = 0
    for number in sorted(wanted):
        while number >= before + groups[position][2]:
            before += groups[position][2]
            position += 1
        chosen.add((position, _free((number - before) % WITHIN_ROWS, groups[position][2], position, chosen)))
    return tuple(
        Piece(groups[place][0].uri, groups[place][0].etag, groups[place][1], row, row + 1)
        for place, row in sorted(chosen)
    )


def _free(row: int, rows: int, position: int, chosen: set[tuple[int, int]]) -> int:
    """The row itself, or the next one of its row group that is not chosen yet."""
    while (position, row) in chosen:
        row = (row + 1) % rows
    return row
