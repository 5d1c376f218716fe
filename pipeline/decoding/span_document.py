"""What a document lets an extractive field say: the strings that may be copied, and where each stands in the text.

Pure data, made once a document by `pipeline.spans`, sent with the request, and walked by a cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array, pack, unpack

__all__ = ["BARRIER", "SpanDocument", "SpanView", "view_of_values"]

BARRIER = 0xFF
"""A byte that no span may cross; it occurs in no UTF-8."""

_FIELDS = ("buffer", "starts", "lasts", "is_end", "source_start", "source_end")


@dataclass(frozen=True, slots=True)
class SpanView:
    """The candidates of one kind of extractive field.

    A candidate is a stretch of `buffer` from one of `starts` to a position at which `is_end` is set, not beyond that
    start's entry in `lasts`, over no `BARRIER`, and not empty.  In a view of the text itself every start has many ends;
    in a list of values (dates, amounts, matches of a pattern) each stands between barriers, with one start and end.

    Attributes:
        buffer: uint8[N], content as JSON spells it inside a string (escaped UTF-8), or a bare number.
        starts: int32[S], rising positions in the buffer.
        lasts: int32[S], for each start the greatest position at which it may end.
        is_end: uint8[N + 1], whether a candidate may end before the byte at this position.
        source_start: int32[S], where each start stands in the document's text, in characters.
        source_end: int32[N + 1], where the character that ends at a position ends in the document's text.
    """

    buffer: Array
    starts: Array
    lasts: Array
    is_end: Array
    source_start: Array
    source_end: Array

    @property
    def is_empty(self) -> bool:
        """Whether there is no candidate."""
        return len(self.starts) == 0


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SpanDocument:
    """One document as a guide's extractive fields see it: a view for each of its span kinds, in their order."""

    views: tuple[SpanView, ...]

    def to_bytes(self) -> bytes:
        """Arrays only; views that are one object are stored once."""
        distinct = {id(view): view for view in self.views}
        places = {key: place for place, key in enumerate(distinct)}
        views = enumerate(distinct.values())
        arrays = {f"{place}_{name}": getattr(view, name) for place, view in views for name in _FIELDS}
        return pack({"views": [places[id(view)] for view in self.views]}, arrays)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> SpanDocument:
        """Zero-copy.

        Raises:
            ValueError: the bytes are no document of spans.
        """
        meta, arrays = unpack(memoryview(data))
        stored = {
            place: SpanView(*(arrays[f"{place}_{name}"] for name in _FIELDS)) for place in sorted(set(meta["views"]))
        }
        return cls(tuple(stored[place] for place in meta["views"]))


def view_of_values(values: Sequence[tuple[bytes, int, int]]) -> SpanView:
    """A view of a list of values: each its spelling, and where it stands in the text (start, end in characters)."""
    buffer = bytearray()
    starts, lasts, ends = [], [], []
    for spelling, _, end in values:
        starts.append(len(buffer))
        buffer += spelling
        lasts.append(len(buffer))
        ends.append(end)
        buffer.append(BARRIER)
    is_end = np.zeros(len(buffer) + 1, np.uint8)
    is_end[lasts] = 1
    source_end = np.zeros(len(buffer) + 1, np.int32)
    source_end[lasts] = ends
    return SpanView(
        np.frombuffer(bytes(buffer), np.uint8), np.array(starts, np.int32), np.array(lasts, np.int32), is_end,
        np.array([start for _, start, _ in values], np.int32), source_end,
    )  # fmt: skip
