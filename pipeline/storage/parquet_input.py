"""Parquet objects as input: what their footers say, and the documents of one row group after another.

A row group is read once, front to back, in small batches, so that its size does not matter to memory; pages are checked
against their checksums where the writer left any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.document import Document, InputObject, Piece
from pipeline.core.errors import UnreadableError
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.core.suggest import did_you_mean
from pipeline.storage.damage import damage_means
from pipeline.storage.nested import with_leaves
from pipeline.storage.store import ObjectInfo, Store

__all__ = ["RowGroupStream", "describe", "passed_types", "row_of", "too_large"]

_BEYOND = object()
_BUFFER_BYTES = 8 * 1024 * 1024
_BATCH_BYTES = 8 * 1024 * 1024
_BATCH_ROWS = 8
"""At most: a dictionary-encoded column is larger than its row group says, and long texts may stand together in a row
group of short ones.  More rows at a time save five millionths of a second a document."""


def describe(store: Store, info: ObjectInfo, spec: InputSpec) -> InputObject:
    """The object's row groups, from its footer.

    Raises:
        UnreadableError: it has no Parquet footer, or lacks a column that the spec names, or one has the wrong type.
    """
    with store.open_input(info.uri, etag=info.etag) as source:
        file = _opened(source, info.uri)
        _check_columns(file.schema_arrow, info.uri, spec)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        text = _column_of(file.metadata, spec.text)
        if sum(group.num_rows for group in groups) != file.metadata.num_rows:
            raise UnreadableError(f"{info.uri} has a Parquet footer that contradicts itself")
    return InputObject(
        uri=info.uri,
        etag=info.etag,
        size_bytes=info.size_bytes,
        row_group_rows=tuple(group.num_rows for group in groups),
        row_group_bytes=tuple(group.column(text).total_uncompressed_size for group in groups),
    )


def too_large(name: str, text_bytes: int, limits: LimitsSpec) -> str:
    """Why a row group is refused, `name` being its own."""
    return (
        f"{name} has {text_bytes} bytes of text, more than limits.row_group_bytes {limits.row_group_bytes}; raise it, "
        "or write smaller row groups"
    )


def _column_of(metadata: pq.FileMetaData, name: str) -> int:
    """Where a plain column stands among all, nested ones counted by their leaves."""
    return next(index for index in range(metadata.num_columns) if metadata.schema.column(index).path == name)


def passed_types(store: Store, item: InputObject, names: Sequence[str]) -> dict[str, pa.DataType]:
    """The types that columns of this object have when passed through: as they are, but plain.

    Dictionaries are decoded, extensions are what they are stored as, and nanoseconds are cut to microseconds, at any
    depth.  A column that holds nulls alone may have no type of its own: it is null here, and strings where they are
    read.
    """
    with store.open_input(item.uri, etag=item.etag) as source:
        schema = _opened(source, item.uri).schema_arrow
    return {name: pa.null() if (kind := schema.field(name).type) == pa.null() else _plain(kind) for name in names}


def row_of(store: Store, item: InputObject, name: str, document_id: str) -> tuple[int, int] | None:
    """Row group and row of the first document with this id in an object, from its id column alone.

    Args:
        name: of the id column.

    Raises:
        UnreadableError: the object is damaged, or has changed.
    """
    with store.open_input(item.uri, etag=item.etag) as source:
        file = _opened(source, item.uri)
        for index in range(file.metadata.num_row_groups):
            seen = 0
            with damage_means(_damaged(f"row group {index} of {item.uri}")):
                for batch in file.iter_batches(row_groups=[index], columns=[name], use_threads=False):
                    keys = [None if key is None else _text(key) for key in _values(batch.column(0))]
                    if document_id in keys:
                        return index, seen + keys.index(document_id)
                    seen += len(keys)
    return None


class RowGroupStream:
    """One row group, read forward.  Pieces of it that follow each other are served by one stream, so that a row group
    of many shards is not read from its start for each.

    `position` is the next row to be read.

    Raises:
        UnreadableError: from the constructor and from `documents`.
    """

    def __init__(self, store: Store, piece: Piece, spec: InputSpec, limits: LimitsSpec) -> None:
        self._key = (piece.uri, piece.etag, piece.row_group)
        self._name = f"row group {piece.row_group} of {piece.uri}"
        self._spec = spec
        self.position = 0
        self._held: pa.RecordBatch | None = None
        self._source = store.open_input(piece.uri, etag=piece.etag)
        try:
            file = _opened(self._source, piece.uri)
            _check_columns(file.schema_arrow, piece.uri, spec)
            self._batches = self._batches_of(file, piece.row_group, limits)
        except UnreadableError:
            self.close()
            raise

    def serves(self, piece: Piece) -> bool:
        """Whether this stream can still give the piece's rows."""
        return self._key == (piece.uri, piece.etag, piece.row_group) and self.position <= piece.row_start

    def close(self) -> None:
        self._source.close()

    def documents(self, piece: Piece) -> Iterator[Document]:
        """Exactly the documents of the piece, in order."""
        owed = piece.rows
        for batch in self._rows(piece.row_start, piece.row_stop):
            owed -= batch.num_rows
            yield from _documents(batch, self._spec, self._name)
        if owed:
            raise UnreadableError(f"{self._name} holds {owed} rows fewer than planned")

    def _batches_of(self, file: pq.ParquetFile, index: int, limits: LimitsSpec) -> Iterator[pa.RecordBatch]:
        if index >= file.metadata.num_row_groups:
            raise UnreadableError(f"{self._name} does not exist")
        group = file.metadata.row_group(index)
        text_bytes = group.column(_column_of(file.metadata, self._spec.text)).total_uncompressed_size
        if text_bytes > limits.row_group_bytes:
            raise UnreadableError(too_large(self._name, text_bytes, limits))
        row_bytes = max(1, group.total_byte_size // max(1, group.num_rows))
        return file.iter_batches(
            batch_size=max(1, min(_BATCH_ROWS, _BATCH_BYTES // row_bytes)),
            row_groups=[index],
            columns=_names(self._spec),
            use_threads=False,
        )

    def _rows(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """Batches that hold rows `[start, stop)`; what is left of the last one is held for the next piece."""
        while self.position < stop:
            batch = self._next() if self._held is None else self._held
            if batch is None:
                return
            skipped = min(batch.num_rows, max(0, start - self.position))
            taken = min(batch.num_rows - skipped, stop - self.position - skipped)
            self._held = batch.slice(skipped + taken) if skipped + taken < batch.num_rows else None
            self.position += skipped + taken
            if taken:
                yield batch.slice(skipped, taken)

    def _next(self) -> pa.RecordBatch | None:
        with damage_means(_damaged(self._name)):
            return next(self._batches, None)


def _opened(source: Any, uri: str) -> pq.ParquetFile:
    with damage_means(UnreadableError(f"{uri} has no readable Parquet footer")):
        return pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True)


def _damaged(name: str) -> UnreadableError:
    return UnreadableError(f"{name} is damaged: a page does not match its checksum, its encoding or its type")


def _names(spec: InputSpec) -> list[str]:
    return list(dict.fromkeys((spec.id, spec.text, *spec.columns)))


def _check_columns(schema: pa.Schema, uri: str, spec: InputSpec) -> None:
    for name in _names(spec):
        if schema.names.count(name) != 1:
            is_missing = name not in schema.names
            named = f"{uri} has {'no' if is_missing else 'more than one'} column {name!r}"
            hint = did_you_mean(name, schema.names) if is_missing else ""
            raise UnreadableError(f"{named}; its columns are {', '.join(schema.names)}{hint}")
    text, key = _plain(schema.field(spec.text).type), _plain(schema.field(spec.id).type)
    if not _is_text(text):
        raise UnreadableError(f"{uri}: column {spec.text!r} is {text}, and the text of documents must be string")
    if not (_is_text(key) or pa.types.is_integer(key)):
        raise UnreadableError(f"{uri}: column {spec.id!r} is {key}, and ids must be string or integer")


def _is_text(kind: pa.DataType) -> bool:
    # Some writers leave text without its annotation: then it is binary, in UTF-8 all the same.
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _plain(kind: pa.DataType) -> pa.DataType:
    """Without dictionaries, extensions, views and nanoseconds, also inside of lists, structures and maps."""
    return pa.string() if kind == pa.null() else with_leaves(kind, _plain_leaf)


def _plain_leaf(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.DictionaryType):
        return with_leaves(kind.value_type, _plain_leaf)
    if isinstance(kind, pa.BaseExtensionType):
        return with_leaves(kind.storage_type, _plain_leaf)
    if kind == pa.string_view():
        return pa.string()
    if kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if kind == pa.time64("ns"):
        return pa.time64("us")
    return pa.duration("us") if kind == pa.duration("ns") else kind


def _documents(batch: pa.RecordBatch, spec: InputSpec, name: str) -> Iterator[Document]:
    """A large batch is decoded row by row, so that no more than one text of it is held twice."""
    step = batch.num_rows if batch.nbytes <= _BATCH_BYTES else 1
    for start in range(0, batch.num_rows, step):
        yield from _decoded(batch.slice(start, step), spec, name)


def _decoded(batch: pa.RecordBatch, spec: InputSpec, name: str) -> Iterator[Document]:
    with damage_means(_damaged(name)):
        columns = {column: _values(batch.column(batch.schema.get_field_index(column))) for column in _names(spec)}
    for row in range(batch.num_rows):
        key, text = columns[spec.id][row], columns[spec.text][row]
        extra = {column: columns[column][row] for column in spec.columns}
        beyond = [column for column, value in extra.items() if value is _BEYOND]
        yield Document(
            document_id=None if key is None else _text(key),
            text=None if text is None else _text(text),
            extra={**extra, **dict.fromkeys(beyond)},
            note=f"{', '.join(beyond)}: beyond the years 1 to 9999, or no UTF-8; null here" if beyond else None,
        )


def _values(array: pa.Array[Any]) -> list[Any]:
    kind = _plain(array.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if kind in (pa.string(), pa.large_string()):
        # Parquet does not check that a string is UTF-8: bytes that are not become U+FFFD, and the row lives.
        raw = array.cast(kind).cast(pa.large_binary())
        return [None if value is None else value.decode(errors="replace") for value in raw.to_pylist()]
    plain: Any = array.cast(kind, safe=False)
    try:
        return list(plain.to_pylist())
    except (OverflowError, ValueError):
        return [_python_value(value) for value in plain]


def _python_value(value: pa.Scalar[Any]) -> Any:
    """Dates and times may lie where Python has none (a year of five digits, infinity), and text inside of a list or a
    structure may be no UTF-8."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return _BEYOND


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
