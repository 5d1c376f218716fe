"""Lines of JSON, and files of plain text, as input.

Such objects have no footer.  A "row group" of JSONL is the lines that begin within one stretch of a fixed number of
bytes, so that its place follows from its index alone.  A text file is one row group of one document, whose id is the
file's URI.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from pipeline.core.document import Document, InputObject, Piece
from pipeline.core.errors import UnreadableError
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage.store import ObjectInfo, Store
from pipeline.storage.values import json_text, well_formed

__all__ = ["CHUNK_BYTES", "KeySearch", "describe_lines", "describe_text", "first_keys", "read_lines", "read_text"]

CHUNK_BYTES = 8 * 1024 * 1024
"""Part of what a piece means: another value would give the pieces of old plans other rows."""

_BUFFER_BYTES = 1024 * 1024
_COUNTED_BYTES = 1024 * 1024
_SEEN_LINES = 100
_MARK = b"\xef\xbb\xbf"
_PLAIN = re.compile(r"[A-Za-z0-9_ .-]+")
"""Names that no writer of JSON escapes."""


def describe_lines(store: Store, info: ObjectInfo) -> InputObject:
    """The object's rows, by reading it once."""
    stretches = max(1, -(-info.size_bytes // CHUNK_BYTES))
    rows, sizes = [0] * stretches, [0] * stretches
    with _opened(store, info.uri, info.etag) as file:
        for start, stop, line in _lines(file, 0, _COUNTED_BYTES):
            if line is None or line.strip():
                rows[start // CHUNK_BYTES] += 1
                sizes[start // CHUNK_BYTES] += stop - start
    return InputObject(info.uri, info.etag, info.size_bytes, tuple(rows), tuple(sizes))


def describe_text(info: ObjectInfo) -> InputObject:
    return InputObject(info.uri, info.etag, info.size_bytes, (1,), (info.size_bytes,))


def first_keys(store: Store, item: InputObject) -> list[str]:
    """Every key that stands in one of the first lines."""
    keys: dict[str, None] = {}
    with _opened(store, item.uri, item.etag) as file:
        for (_, _, line), _ in zip(_lines(file, 0, _COUNTED_BYTES), range(_SEEN_LINES), strict=False):
            row = _parsed(line or b"")
            keys.update(dict.fromkeys(row if isinstance(row, dict) else ()))
    return list(keys)


@dataclass(slots=True)
class KeySearch:
    """Which of some names are a key of any row, over objects that several threads may read at once."""

    names: frozenset[str]
    found: set[str] = field(default_factory=set)
    is_whole: bool = True
    """Whether no row was left out that could have had the key."""

    @property
    def is_over(self) -> bool:
        return len(self.found) == len(self.names)

    def read(self, store: Store, item: InputObject, most_bytes: int) -> None:
        """Looks at the lines that begin in the first so many bytes, until each name has been found.

        Lines too long to be looked at at once are left out.

        Raises:
            UnreadableError: the object has changed or vanished.
        """
        with _opened(store, item.uri, item.etag) as file:
            for start, _, line in _lines(file, 0, _COUNTED_BYTES):
                if self.is_over:
                    return
                if start >= most_bytes:
                    self.is_whole = False
                    return
                if line is None:
                    self.is_whole = False
                elif any(_may_hold(line, name) for name in self.names if name not in self.found):
                    row = _parsed(line)
                    self.found.update(self.names.intersection(row if isinstance(row, dict) else ()))


def read_lines(store: Store, piece: Piece, spec: InputSpec, limits: LimitsSpec) -> Iterator[Document]:
    """The documents of a piece of a JSONL object; a line that is no row is a document that says why.

    Raises:
        UnreadableError: the object has changed or vanished, or holds fewer lines than planned.
    """
    # A character of the text takes six bytes at most, as `\\u0000`; the rest is room for the other keys.
    most_bytes = 6 * limits.document_bytes + _COUNTED_BYTES
    row = 0
    with _opened(store, piece.uri, piece.etag) as file:
        for line in _stretch(file, piece.row_group, most_bytes):
            if row >= piece.row_stop:
                return
            if row >= piece.row_start:
                yield _document(line, spec, most_bytes)
            row += 1
    if row < piece.row_stop:
        raise UnreadableError(f"{piece.uri} holds {piece.row_stop - row} lines fewer than planned")


def read_text(store: Store, piece: Piece, limits: LimitsSpec) -> Iterator[Document]:
    """The one document of a text file, cut one character or so above what a document may have.

    Raises:
        UnreadableError: the object has changed or vanished.
    """
    with _opened(store, piece.uri, piece.etag) as file:
        data = file.read(limits.document_bytes + 4)
    yield Document(document_id=piece.uri, text=data.removeprefix(_MARK).decode(errors="replace"))


def _opened(store: Store, uri: str, etag: str) -> io.BufferedReader:
    raw: Any = store.open_input(uri, etag=etag)
    return io.BufferedReader(raw, _BUFFER_BYTES)


def _stretch(file: BinaryIO, index: int, most_bytes: int) -> Iterator[bytes | None]:
    """The lines that begin in one stretch; None for one that is too long."""
    first, beyond = index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES
    offset = 0
    if first:
        # The line that holds the byte before belongs to the stretch before, even if that byte is its last.
        file.seek(first - 1)
        offset = next((stop for _, stop, _ in _lines(file, first - 1, _COUNTED_BYTES)), beyond)
    for start, _, line in _lines(file, offset, most_bytes):
        if start >= beyond:
            return
        if line is None or line.strip():
            yield line


def _lines(file: BinaryIO, offset: int, most_bytes: int) -> Iterator[tuple[int, int, bytes | None]]:
    """Start, stop and content of each line from here on; the content is None where it has more than `most_bytes`."""
    while line := file.readline(most_bytes):
        start = offset
        offset += len(line)
        is_whole = line.endswith(b"\n") or len(line) < most_bytes
        while not is_whole and (rest := file.readline(most_bytes)):
            offset += len(rest)
            is_whole = rest.endswith(b"\n")
            line = b""
        yield start, offset, line or None


def _may_hold(line: bytes, name: str) -> bool:
    """Whether the line could have this key: parsing each line of an input for one that it lacks takes long."""
    return not _PLAIN.fullmatch(name) or f'"{name}"'.encode() in line


def _parsed(line: bytes) -> Any:
    """What the line holds; None where it is not JSON."""
    try:
        return json.loads(line.removeprefix(_MARK).decode(errors="replace"))
    except (ValueError, RecursionError):
        return None


def _document(line: bytes | None, spec: InputSpec, most_bytes: int) -> Document:
    if line is None:
        return Document(None, None, unreadable=f"the line has more than {most_bytes} bytes")
    row = _parsed(line)
    if not isinstance(row, dict):
        return Document(None, None, unreadable="the line is not a JSON object")
    key, text = row.get(spec.id), row.get(spec.text)
    # True and False are integers to Python.
    name = str(key) if type(key) is int else well_formed(key) if isinstance(key, str) else None
    if key is not None and name is None:
        return Document(None, None, unreadable=f"{spec.id!r} is neither a string nor an integer")
    if text is not None and not isinstance(text, str):
        return Document(name, None, unreadable=f"{spec.text!r} is not a string")
    try:
        extra = {column: _extra(row.get(column)) for column in spec.columns}
    except RecursionError:
        return Document(name, None, unreadable=f"one of {', '.join(spec.columns)} is nested too deeply")
    return Document(name, None if text is None else well_formed(text), extra)


def _extra(value: Any) -> str | None:
    """JSONL columns have no types: strings pass as they are, all else as JSON."""
    if value is None or isinstance(value, str):
        return None if value is None else well_formed(value)
    try:
        return json_text(value)
    except ValueError:  # half of a surrogate pair in a string inside
        return well_formed(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
