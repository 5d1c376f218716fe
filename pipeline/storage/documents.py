"""Documents: which objects an input has, and the documents in them.

An object that cannot be read is part of the listing and says why; it never stops the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Lock
from typing import Any, Literal

import pyarrow as pa

from pipeline.core.document import Document, InputObject, Piece
from pipeline.core.errors import InputError, UnreadableError
from pipeline.core.globs import glob_root, is_glob
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.core.suggest import did_you_mean
from pipeline.storage import parquet_input, text_input
from pipeline.storage.partitions import file_spec, folder_columns, with_partitions
from pipeline.storage.store import ObjectInfo, Store

__all__ = ["DocumentReader", "check_columns", "format_of", "list_input", "list_objects", "passed_columns", "read_piece"]

_THREADS = 16
_IDLE_STREAMS = 3
_SUFFIXES: dict[str, Literal["jsonl", "text"]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".md": "text",
}


def list_objects(store: Store, spec: InputSpec) -> list[ObjectInfo]:
    """Every object of the input, by URI, as it is now; none is opened.

    Names that begin with `_` or `.` are bookkeeping (as `_SUCCESS`, `_delta_log/`) and left out.

    Raises:
        InputError: a URI of the spec has no objects.
        StorageError: see `Store`.
    """
    found: dict[str, ObjectInfo] = {}
    for uri in spec.uris:
        infos = [info for info in store.list(uri) if not _is_hidden(store, uri, info.uri)]
        if not infos:
            raise InputError(f"input.uri {uri} names no objects")
        found.update((info.uri, info) for info in infos)
    return [found[uri] for uri in sorted(found)]


def list_input(store: Store, spec: InputSpec) -> tuple[InputObject, ...]:
    """Every object that `list_objects` finds, with its row groups.

    Parquet objects are described by their footers; JSONL objects are read once, since only that tells their rows.

    Raises:
        InputError: a URI of the spec has no objects.
        StorageError: see `Store`.
    """
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="list-input") as pool:
        return tuple(pool.map(lambda info: _described(store, info, spec), list_objects(store, spec)))


def check_columns(store: Store, objects: Sequence[InputObject], spec: InputSpec) -> None:
    """Whether the input can be read as the spec asks: at least one object of it can, as `list_input` found.

    Raises:
        InputError: none can; it names the first one, and the columns or keys found there.
        StorageError: see `Store`.
    """
    readable = [item for item in objects if item.unreadable is None]
    if not readable:
        first = objects[0].unreadable if objects else "the input has no objects"
        raise InputError(f"none of {len(objects)} input objects can be read as asked: {first}")
    lines = [item for item in readable if format_of(item.uri, spec) == "jsonl"]
    if lines:
        _check_keys(text_input.first_keys(store, lines[0]), lines[0].uri, spec)


def passed_columns(store: Store, objects: Sequence[InputObject], spec: InputSpec) -> dict[str, pa.DataType]:
    """The types of the columns that are passed through, for `record_schema`.

    Integers of different widths become int64; JSONL has strings (or JSON, as strings); for Parquet see `passed_types`.
    Where an object holds nothing but nulls, the others say the type; string where none does.

    Raises:
        InputError: such a column has different types in different objects, or the input is plain text.
        StorageError: see `Store`.
    """
    readable = [item for item in objects if item.unreadable is None]
    if not spec.columns or not readable:
        return {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="passed-columns") as pool:
        typed = list(pool.map(lambda item: _passed_types(store, item, spec), readable))
    return {name: _one_type(name, [(item, types[name]) for item, types in typed]) for name in spec.columns}


class DocumentReader:
    """Documents of pieces.

    A worker keeps one: it holds a few row groups open, so that pieces of one row group that are asked for in order
    are served by one pass over it.  Threads may share it.
    """

    def __init__(self, store: Store, spec: InputSpec, limits: LimitsSpec) -> None:
        self._store = store
        self._spec = spec
        self._limits = limits
        self._lock = Lock()
        self._idle: list[parquet_input.RowGroupStream] = []

    def read(self, piece: Piece) -> Iterator[Document]:
        """As `read_piece`."""
        return with_partitions(self._read(piece, file_spec(self._spec, piece.uri)), self._spec, piece.uri)

    def known(self, piece: Piece) -> dict[str, Any]:
        """The passed columns that a piece's rows have even where they cannot be read."""
        return dict(folder_columns(self._spec, piece.uri))

    def _read(self, piece: Piece, spec: InputSpec) -> Iterator[Document]:
        match format_of(piece.uri, spec):
            case "jsonl":
                return text_input.read_lines(self._store, piece, spec, self._limits)
            case "text":
                return text_input.read_text(self._store, piece, self._limits)
            case "parquet":
                return self._read_parquet(piece, spec)

    def close(self) -> None:
        with self._lock:
            streams, self._idle = self._idle, []
        for stream in streams:
            stream.close()

    def _read_parquet(self, piece: Piece, spec: InputSpec) -> Iterator[Document]:
        stream = self._taken(piece, spec)
        is_whole = False
        try:
            yield from stream.documents(piece)
            is_whole = True
        finally:
            # What broke off, by an error or by its caller, cannot be gone on with: the next piece opens its own.
            if is_whole:
                self._give_back(stream)
            else:
                stream.close()

    def _taken(self, piece: Piece, spec: InputSpec) -> parquet_input.RowGroupStream:
        """An idle stream, the one with the least to skip, or a new one."""
        with self._lock:
            serving = [stream for stream in self._idle if stream.serves(piece)]
            if serving:
                stream = max(serving, key=lambda stream: stream.position)
                self._idle.remove(stream)
                return stream
        return parquet_input.RowGroupStream(self._store, piece, spec, self._limits)

    def _give_back(self, stream: parquet_input.RowGroupStream) -> None:
        with self._lock:
            self._idle.append(stream)
            surplus = self._idle[:-_IDLE_STREAMS]
            self._idle = self._idle[-_IDLE_STREAMS:]
        for old in surplus:
            old.close()


def read_piece(store: Store, piece: Piece, spec: InputSpec, limits: LimitsSpec) -> Iterator[Document]:
    """Exactly `piece.rows` documents, in order, in bounded memory.

    Bytes of a text that are not UTF-8 become U+FFFD.  A JSONL line that is no row is a `Document` with `unreadable`.

    Raises:
        UnreadableError: the object has changed or vanished since it was listed, or is damaged here.  Documents before
            the damage have been given by then.
        StorageError: see `Store`.
    """
    with closing(DocumentReader(store, spec, limits)) as reader:
        yield from reader.read(piece)


def format_of(uri: str, spec: InputSpec) -> Literal["parquet", "jsonl", "text"]:
    """How an object is read: as the spec says, else by the end of its name."""
    if spec.format != "auto":
        return spec.format
    return next((name for suffix, name in _SUFFIXES.items() if uri.lower().endswith(suffix)), "parquet")


def _is_hidden(store: Store, asked: str, uri: str) -> bool:
    """Whether a name below what was asked for is bookkeeping; `_part=1` is a Hive partition and is not."""
    folder = glob_root(asked).rpartition("/")[0] if is_glob(asked) else asked
    root, path = store.path(folder), store.path(uri)
    return path != root and any(
        name.startswith(("_", ".")) and "=" not in name for name in path.removeprefix(root).split("/")
    )


def _described(store: Store, info: ObjectInfo, spec: InputSpec) -> InputObject:
    try:
        match format_of(info.uri, spec):
            case "jsonl":
                return text_input.describe_lines(store, info)
            case "text":
                return text_input.describe_text(info)
            case "parquet":
                return parquet_input.describe(store, info, file_spec(spec, info.uri))
    except UnreadableError as error:
        return InputObject(info.uri, info.etag, info.size_bytes, (), (), unreadable=error.message)


def _check_keys(keys: Sequence[str], uri: str, spec: InputSpec) -> None:
    for name in (spec.id, spec.text):
        if keys and name not in keys:
            named = f"{uri} has no key {name!r} in its first lines; its keys are {', '.join(keys)}"
            raise InputError(named + did_you_mean(name, keys))


def _passed_types(store: Store, item: InputObject, spec: InputSpec) -> tuple[InputObject, dict[str, pa.DataType]]:
    own = file_spec(spec, item.uri).columns
    types: dict[str, pa.DataType] = dict.fromkeys(spec.columns, pa.string())
    match format_of(item.uri, spec):
        case "jsonl":
            return item, types
        case "text":
            if own:
                raise InputError(
                    f"{item.uri} is a text file, which has no column {own[0]!r} to pass; {_way_out(item.uri, spec)}"
                )
            return item, types
        case "parquet":
            return item, types | parquet_input.passed_types(store, item, own)


def _way_out(text_file: str, spec: InputSpec) -> str:
    """What to do about a text file in an input of which columns are passed."""
    if spec.format == "text" or text_file in spec.uris:
        return "leave the column out of input.columns"
    first = spec.uris[0]
    folder = (glob_root(first).rpartition("/")[0] if is_glob(first) else first).rstrip("/")
    return (
        f"if it is no document, name those that are, as `input.uri: {folder}/**/*.parquet`; "
        "if its name misleads, set input.format; else leave the column out of input.columns"
    )


def _one_type(name: str, typed: Sequence[tuple[InputObject, pa.DataType]]) -> pa.DataType:
    first_item, kind = typed[0]
    for item, other in typed[1:]:
        common = _common_type(kind, other)
        if common is None:
            raise InputError(f"column {name!r} is {kind} in {first_item.uri}, but {other} in {item.uri}")
        if kind == pa.null():
            first_item = item
        kind = common
    return pa.string() if kind == pa.null() else kind


def _common_type(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds both, if there is one: for integers the widest, else the one that is not null."""
    if pa.types.is_integer(kind) and pa.types.is_integer(other):
        return kind if kind == other else pa.int64()
    return _with_nulls(kind, other)


def _with_nulls(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Writers give null, or lists and structures of it, to what they never saw."""
    if kind == other or other == pa.null():
        return kind
    if kind == pa.null():
        return other
    if isinstance(kind, pa.ListType) and isinstance(other, pa.ListType):
        item = _with_nulls(kind.value_type, other.value_type)
        return None if item is None else pa.list_(item)
    if isinstance(kind, pa.StructType) and isinstance(other, pa.StructType):
        names = [field.name for field in kind]
        if names != [field.name for field in other]:
            return None
        types = [_with_nulls(mine.type, theirs.type) for mine, theirs in zip(kind, other, strict=True)]
        fields = [pa.field(name, common) for name, common in zip(names, types, strict=True) if common is not None]
        return pa.struct(fields) if len(fields) == len(names) else None
    return None
