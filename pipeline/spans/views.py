"""From folded text to the stretches that may be copied from it, as arrays that a cursor walks."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.span_document import BARRIER, SpanView
from pipeline.spans.classes import CharClass, spelling_lengths
from pipeline.spans.folding import WALL, Folded
from pipeline.spans.kinds import BoundsKind

__all__ = ["Bounds", "bounds_of", "positions_of", "spelt", "stretches", "view_of_text"]

_JOINER = 0x200D
_WALL_IN_UTF8 = "\ud800".encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Where stretches may begin and end, in characters of a `Folded`.

    Attributes:
        starts: int32[S], rising.
        ends: int32[E], rising; an end is the position after the last character.
        walls: int32[W + 1], the walls and the end of the text.
        words: int32[M], beginnings of words, to count them.
    """

    starts: Array
    ends: Array
    walls: Array
    words: Array


def _owners(classes: Array) -> tuple[Array, Array]:
    """The class of each character with marks counted as what they belong to, and which characters are marks."""
    is_mark = classes == CharClass.MARK
    if not is_mark.any():
        return classes, is_mark
    owner = np.maximum.accumulate(np.where(is_mark, 0, np.arange(len(classes))))
    owned = classes[owner]
    owned[owned == CharClass.MARK] = CharClass.SPACE
    return owned, is_mark


def bounds_of(whole: Folded, kind: BoundsKind = "words") -> Bounds:
    """Bounds of words, of characters, or of whole lines.

    Words end where letters, digits, signs and white space meet; a sign, an ideograph and a Hangul syllable have bounds
    on both sides.  No bound stands before a combining mark or inside an emoji, none beside white space on the inside.
    """
    classes, is_mark = _owners(whole.classes)
    is_bound = np.ones(len(classes) + 1, bool)
    is_joined = (whole.points[:-1] == _JOINER) & (classes[:-1] >= CharClass.SIGN) & (classes[1:] > CharClass.FORMAT)
    is_glued = is_mark[1:] | is_joined
    if kind != "characters":
        is_bound[1:-1] = (classes[1:] != classes[:-1]) | (classes[1:] >= CharClass.SYLLABLE)
    is_bound[1:-1] &= ~is_glued
    is_bound[:-1] &= ~is_mark
    is_visible = classes > CharClass.FORMAT
    starts = np.flatnonzero(is_visible & is_bound[:-1])
    ends = np.flatnonzero(is_visible & is_bound[1:]) + 1
    is_wall = whole.classes == CharClass.BARRIER
    if kind == "lines":
        # The outermost of each line: white space and a byte order mark may stand further out.
        line = np.cumsum(whole.breaks | is_wall)
        starts = starts[np.append(True, np.diff(line[starts]) > 0)[: len(starts)]]
        ends = ends[np.append(np.diff(line[ends - 1]) > 0, True)[: len(ends)]]
    walls = np.append(np.flatnonzero(is_wall), len(classes))
    return Bounds(
        starts.astype(np.int32),
        ends.astype(np.int32),
        walls.astype(np.int32),
        np.flatnonzero(_word_marks(classes)).astype(np.int32),
    )


def _word_marks(classes: Array) -> Array:
    """bool[N], where words begin: after white space, and at and after each ideograph."""
    is_gap = (classes == CharClass.SPACE) | (classes == CharClass.BARRIER)
    begins: Array = ~is_gap
    before, here = classes[:-1], classes[1:]
    is_lettered = (before >= CharClass.LETTER) & (before <= CharClass.IDEOGRAPH)
    is_lettered &= (here >= CharClass.LETTER) & (here <= CharClass.IDEOGRAPH)
    begins[1:] &= is_gap[:-1] | (is_lettered & ((before == CharClass.IDEOGRAPH) | (here == CharClass.IDEOGRAPH)))
    return begins


def stretches(bounds: Bounds, max_words: int | None, max_length: int | None) -> tuple[Array, Array, Array]:
    """For each start that has an end: the start, its nearest end and its farthest one, as three int32[S]."""
    starts = bounds.starts
    if not len(starts):
        return starts, starts, starts
    size = int(bounds.walls[-1])
    limit = bounds.walls[_counts(bounds.walls, size)[starts]]
    if max_length is not None:
        limit = np.minimum(limit, starts + min(max_length, size))
    if max_words is not None:
        beyond = _counts(bounds.words, size)[starts] + (max_words - 1)
        words = np.append(bounds.words, bounds.walls[-1])
        limit = np.minimum(limit, words[np.minimum(beyond, len(bounds.words))])
    ends_until = _counts(bounds.ends, size)
    ends = np.append(bounds.ends, size + 1)  # beyond every limit, for a start after the last end
    nearest = ends[ends_until[starts]]
    farthest = ends[ends_until[limit] - 1]
    fits = nearest <= limit
    return starts[fits], nearest[fits], farthest[fits]


def _counts(places: Array, size: int) -> Array:
    """int32[size + 1], how many of the places are at each position or before it; faster than a search for each."""
    marks = np.zeros(size + 1, np.int32)
    marks[places] = 1
    return np.cumsum(marks, out=marks)


def spelt(text: str) -> bytes:
    """The text as JSON spells it inside a string (RFC 8259), each character in one way; a wall is a barrier."""
    quoted = json.dumps(text.replace(WALL, "\ud800"), ensure_ascii=False)
    return quoted[1:-1].encode("utf-8", "surrogatepass").replace(_WALL_IN_UTF8, bytes((BARRIER,)))


def positions_of(whole: Folded) -> Array:
    """int32[N + 1], where each character begins in `spelt(whole.text)`."""
    position = np.zeros(len(whole.points) + 1, np.int32)
    np.cumsum(spelling_lengths(whole.points), out=position[1:], dtype=np.int32)
    return position


def view_of_text(whole: Folded, bounds: Bounds, max_words: int | None, max_length: int | None) -> SpanView:
    """Every stretch of the text between bounds, of at most so many words and characters."""
    starts, _, lasts = stretches(bounds, max_words, max_length)
    buffer = np.frombuffer(spelt(whole.text), np.uint8)
    position = positions_of(whole)
    is_end = np.zeros(len(buffer) + 1, np.uint8)
    is_end[position[bounds.ends]] = 1
    source_end = np.zeros(len(buffer) + 1, np.int32)
    source_end[position[1:]] = whole.source_end
    return SpanView(buffer, position[starts], position[lasts], is_end, whole.source_start[starts], source_end)
