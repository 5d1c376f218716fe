"""A document's text with its white space folded, and walls where a span must end.

Characters stay code points in an array, each with its place in the original text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import regex

from pipeline.core.span import Within
from pipeline.decoding.arrays import Array
from pipeline.spans.classes import CharClass, classes_of

__all__ = ["WALL", "Folded", "fold", "folded"]

WALL = "\0"
"""The character of `Folded.text` that no span may cross."""

_SPACE_POINT = 0x20
_PAGE_ENDS = (0x0C, 0x2029)
_CLOSING = "\"'”’»)\\]）」』】"
# A run of stops is looked at once, from its first: hence what may not stand before.
_WITH_SPACE = regex.compile(
    rf"(?:(?<![.!?…‽؟۔।॥።။។])[.!?…]|[‽؟۔।॥።။។])[.!?…]*+[{_CLOSING}]*+ (?=[\"'“‘«(\[¿¡]*+(?!\p{{Ll}})\S)"
)
_WITHOUT_SPACE = regex.compile(rf"(?<![。！？｡])[。！？｡]++[{_CLOSING}]*+ ?(?=[^ \0])")
_ABBREVIATION = regex.compile(
    r"(?:(?<![\p{L}\p{N}])(?:\p{L}|\p{N}{1,3}|adj|al|approx|art|attn|ave|bhd|bldg|blvd|bros|bzw|ca|capt|cf|cie|co|col"
    r"|corp|dept|dipl|doc|dr|dra|ed|etc|ext|fax|fig|gen|gmbh|hon|inc|ing|int|jr|lic|lt|ltd|ltda|max|mfg|min|misc|mme"
    r"|mr|mrs|ms|mt|mtg|nos?|nr|núm|op|para|pp?|prof|pte|pts|pty|pvt|qty|ref|reg|resp|rev|sdn|sec|sen|sgt|sr|sra|st"
    r"|ste|str|tel|ts|univ|vol|vs|zzgl)|\.\p{L})$",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """The characters that spans are made of.

    Attributes:
        points: uint32[N], code points; a run of white space is one space, a wall is 0.
        classes: uint8[N], their `CharClass`; a wall is `BARRIER`.
        source_start: int32[N], where each character (or run of white space) stands in the text.
        source_end: int32[N], where it ends.
        text: the same as a string of N characters.
        breaks: bool[N], which runs of white space hold a line break.
    """

    points: Array
    classes: Array
    source_start: Array
    source_end: Array
    text: str
    breaks: Array


def folded(text: str) -> str:
    """What a stretch of a document's text becomes as a value: white space folded to single spaces, none at the ends."""
    return " ".join(text.split())


def fold(text: str, within: Within) -> Folded:
    """The text with walls at what a span may not leave, at NUL, and at lone surrogates."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    classes = classes_of(points)
    is_space = classes <= CharClass.BREAK
    is_kept = ~is_space
    is_kept[:1] = True
    is_kept[1:] |= ~is_space[:-1]
    at = np.flatnonzero(is_kept).astype(np.int32)
    is_gap = is_space[at]
    is_wall = (classes[at] == CharClass.BARRIER) | (is_gap & _walls(points, classes, at, within))
    breaks = is_gap & np.logical_or.reduceat(classes == CharClass.BREAK, at) if len(at) else is_gap
    points, classes = points[at], classes[at]
    points[is_gap] = _SPACE_POINT
    points[is_wall] = 0
    classes[is_gap] = CharClass.SPACE
    classes[is_wall] = CharClass.BARRIER
    ends = np.append(at[1:], np.int32(len(text)))[: len(at)]
    whole = Folded(points, _paired_flags(classes), at, ends, _string(points), breaks)
    return _cut_at_sentences(whole) if within == "sentence" else whole


def _string(points: Array) -> str:
    return points.astype("<u4", copy=False).tobytes().decode("utf-32-le")


def _walls(points: Array, classes: Array, at: Array, within: Within) -> Array:
    """bool[len(at)], which of the runs of white space beginning at `at` end a line, or a paragraph."""
    is_break = classes == CharClass.BREAK
    if within == "document" or not len(at) or not is_break.any():
        return np.zeros(len(at), bool)
    if within == "line":
        has_break: Array = np.logical_or.reduceat(is_break, at)
        return has_break
    is_break[:-1] &= ~((points[:-1] == 0x0D) & (points[1:] == 0x0A))
    is_page_end = np.isin(points, _PAGE_ENDS)
    has_blank_line: Array = np.add.reduceat(is_break.astype(np.int32), at) >= 2
    has_page_end: Array = np.logical_or.reduceat(is_page_end, at)
    return has_blank_line | has_page_end


def _paired_flags(classes: Array) -> Array:
    """The second regional indicator of each pair as a mark of the first."""
    flags = np.flatnonzero(classes == CharClass.FLAG)
    if not len(flags):
        return classes
    order = np.arange(len(flags))
    is_first = np.append(True, np.diff(flags) > 1)
    place = order - np.maximum.accumulate(np.where(is_first, order, 0))
    classes[flags[place % 2 == 1]] = CharClass.MARK
    return classes


def _is_sentence_end(text: str, found: regex.Match[str]) -> bool:
    """Whether a full stop ends a sentence and not an abbreviation, an initial or an ordinal."""
    return text[found.start()] != "." or not _ABBREVIATION.search(text, max(found.start() - 12, 0), found.start())


def _cut_at_sentences(whole: Folded) -> Folded:
    """Walls between sentences; in doubt there is none, since a longer stretch can be chosen shorter."""
    text = whole.text
    spaces = [found.end() - 1 for found in _WITH_SPACE.finditer(text) if _is_sentence_end(text, found)]
    stops = [found.end() for found in _WITHOUT_SPACE.finditer(text)]
    spaces += [end - 1 for end in stops if text[end - 1] == " "]
    points, classes = whole.points.copy(), whole.classes.copy()
    points[spaces] = 0
    classes[spaces] = CharClass.BARRIER
    added = [end for end in stops if text[end - 1] != " "]
    points = np.insert(points, added, 0)
    return Folded(
        points,
        np.insert(classes, added, np.uint8(CharClass.BARRIER)),
        np.insert(whole.source_start, added, whole.source_start[added]),
        np.insert(whole.source_end, added, whole.source_start[added]),
        _string(points),
        np.insert(whole.breaks, added, False),
    )
