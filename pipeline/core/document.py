"""Documents, and how they are divided: the values that a plan is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Document", "InputObject", "Piece", "Plan", "Shard"]


@dataclass(frozen=True, slots=True)
class Document:
    """One input row.  `document_id` and `text` are None where the row holds null."""

    document_id: str | None
    text: str | None
    extra: Mapping[str, Any] = field(default_factory=dict)
    unreadable: str | None = None
    """Why this one row cannot be read although its neighbours can (a line of JSONL that is not JSON)."""
    note: str | None = None
    """What was changed in reading it."""


@dataclass(frozen=True, slots=True)
class InputObject:
    """One object of the input as it was when the run was planned."""

    uri: str
    etag: str
    size_bytes: int
    row_group_rows: tuple[int, ...]
    """Rows of each row group, from the footer."""
    row_group_bytes: tuple[int, ...]
    """Uncompressed bytes of each row group's text, from the footer; of all its columns in plans of earlier versions."""
    unreadable: str | None = None
    """Why the object cannot be read, in a line that names it; such an object holds no planned rows."""

    @property
    def rows(self) -> int:
        return sum(self.row_group_rows)


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows `[row_start, row_stop)` of one row group of one input object."""

    uri: str
    etag: str
    row_group: int
    row_start: int
    row_stop: int

    @property
    def rows(self) -> int:
        return self.row_stop - self.row_start


@dataclass(frozen=True, slots=True)
class Shard:
    """Unit of scheduling.  Its id comes from its content, so the same rows have the same id in every submission."""

    pieces: tuple[Piece, ...]

    @property
    def shard_id(self) -> str:
        """16 hexadecimal digits."""
        content = [[p.uri, p.etag, p.row_group, p.row_start, p.row_stop] for p in self.pieces]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def halves(self) -> tuple[Shard, Shard]:
        """Two shards that hold this one's rows in order; the first one has the odd row.

        Raises:
            ValueError: the shard has fewer than two rows.
        """
        if self.rows < 2:
            raise ValueError(f"shard {self.shard_id} has {self.rows} row and cannot be divided")
        wanted = (self.rows + 1) // 2
        first: list[Piece] = []
        second: list[Piece] = []
        for piece in self.pieces:
            taken = min(piece.rows, wanted)
            middle = piece.row_start + taken
            wanted -= taken
            if taken:
                first.append(Piece(piece.uri, piece.etag, piece.row_group, piece.row_start, middle))
            if middle < piece.row_stop:
                second.append(Piece(piece.uri, piece.etag, piece.row_group, middle, piece.row_stop))
        return Shard(tuple(first)), Shard(tuple(second))


@dataclass(frozen=True, slots=True)
class Plan:
    """The frozen list of shards of a run, written once before any work."""

    fingerprint: str
    objects: tuple[InputObject, ...]
    shards: tuple[Shard, ...]

    @property
    def rows(self) -> int:
        return sum(shard.rows for shard in self.shards)

    @property
    def left_out(self) -> tuple[InputObject, ...]:
        """Input objects that could not be read when the plan was made; `unreadable` says why."""
        return tuple(item for item in self.objects if item.unreadable is not None)
