"""Documents: which objects an input has, and the documents in them.

An object that cannot be read is part of the listing and says why; it never stops the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, Literal

from pipeline.core.document import Document, InputObject, Piece
from pipeline.core.errors import InputError, UnreadableError
from pipeline.core.globs import folder_asked, is_hidden
from pipeline.core.places import absolute, local_path
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage import parquet_input, text_input
from pipeline.storage.partitions import file_spec, folder_columns, with_partitions
from pipeline.storage.store import ObjectInfo, Store

__all__ = ["DocumentReader", "format_of", "list_input", "list_objects", "read_piece"]

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
    found = {info.uri: info for uri in spec.uris for info in _named(store, uri)}
    return [found[uri] for uri in sorted(found)]


def list_input(store: Store, spec: InputSpec) -> tuple[InputObject, ...]:
    """Every object that `list_objects` finds, with its row groups.

    Parquet objects are described by their footers; JSONL objects are read once, since only that tells their rows.

    Raises:
        InputError: a URI of the spec has no objects, or text files beside objects of rows.
        StorageError: see `Store`.
    """
    found: dict[str, ObjectInfo] = {}
    for uri in spec.uris:
        infos = _named(store, uri)
        _check_alike(infos, uri, spec)
        found.update((info.uri, info) for info in infos)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="list-input") as pool:
        return tuple(pool.map(lambda uri: _described(store, found[uri], spec), sorted(found)))


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


def _named(store: Store, uri: str) -> list[ObjectInfo]:
    """What one URI of the spec names."""
    infos = [info for info in store.list(uri) if not _is_hidden(store, uri, info.uri)]
    if not infos:
        place = "" if absolute(uri) == uri else f" in {local_path('.')}"
        raise InputError(f"input.uri {uri} names no objects{place}")
    return infos


def _check_alike(infos: Sequence[ObjectInfo], asked: str, spec: InputSpec) -> None:
    """A text file among objects of rows is a note about them (README.md) far more often than a document."""
    uris = [info.uri for info in infos]
    text = next((uri for uri in uris if format_of(uri, spec) == "text"), None)
    rows = next((uri for uri in uris if format_of(uri, spec) != "text"), None)
    if text is None or rows is None:
        return
    raise InputError(
        f"input.uri {asked} names {rows}, which is read as {format_of(rows, spec)}, and {text}, which would be one "
        f"document of text: {_apart(rows, text, asked)}; if a name misleads, set input.format"
    )


def _apart(rows: str, text: str, asked: str) -> str:
    """How to name the one kind of object without the other."""
    folder = folder_asked(asked).rstrip("/")
    suffixes = [PurePosixPath(uri).suffix for uri in (rows, text)]
    if not all(suffixes):
        return "move away what is no document, or name the others by a pattern"
    only, other = (f"{folder}/**/*{suffix}" for suffix in suffixes)
    return f"name those that are documents, as `input.uri: {only}`, or both, as `input.uri: [{only}, {other}]`"


def _is_hidden(store: Store, asked: str, uri: str) -> bool:
    root, path = store.path(folder_asked(asked)), store.path(uri)
    return path != root and is_hidden(path.removeprefix(root))


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
        reason = f"{error.message}{_why_so_read(info.uri, spec)}"
        return InputObject(info.uri, info.etag, info.size_bytes, (), (), unreadable=reason)


def _why_so_read(uri: str, spec: InputSpec) -> str:
    """For names such as `a.csv`, whose rows nothing here could read."""
    if spec.format != "auto" or uri.lower().endswith((".parquet", *_SUFFIXES)):
        return ""
    return f"; what ends otherwise than in {', '.join(_SUFFIXES)} is read as Parquet: convert it, or set input.format"
