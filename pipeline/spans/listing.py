"""Strings that a pattern or a least length picks: each stretch is tried, and those that pass are listed.

The work is bounded: where a document holds too many stretches, the longest ones are left out, everywhere alike, then
those that begin inside of words or lines, until the rest can be tried.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import regex

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.arrays import Array
from pipeline.spans.candidates import Candidate
from pipeline.spans.folding import Folded
from pipeline.spans.kinds import CandidateKind
from pipeline.spans.views import Bounds, positions_of, spelt, stretches

__all__ = ["compiled", "listed"]

_MAX_LENGTH = 1024
"""Characters of a listed stretch, at most."""
_MAX_TRIALS = 1_000_000
"""Stretches of one document that are held against a pattern."""
_MAX_LISTED = 4_000_000
"""Characters of all stretches of one document that are listed for one kind."""
_LEAST_LENGTH = 16
"""Characters up to which stretches are kept before starts are left out."""
_MANY = 4096
"""Starts from which on looking at more than one character is worth it."""

_log = logging.getLogger(__name__)


@functools.lru_cache(maxsize=256)
def compiled(pattern: str) -> regex.Pattern[str]:
    """The pattern, for a whole stretch; `regex` reads as `re` does, save that combining marks belong to words.

    Raises:
        SchemaRefusedError: it is no regular expression.
    """
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise SchemaRefusedError(f"the pattern {pattern!r} of an extractive field: {error}") from error


def listed(whole: Folded, bounds: Bounds, kind: CandidateKind) -> list[Candidate]:
    """The stretches that match the kind's pattern and have its least length, in the order of the text."""
    lengths = _lengths(kind)
    pick = _every if kind.pattern is None else _matching
    for starts in _starts(bounds, lengths[0]):
        found, longest = pick(whole, replace(bounds, starts=starts), kind, lengths)
        if longest:
            if longest < lengths[-1] or len(starts) < len(bounds.starts):
                _log.warning("a document of %d characters: only spans up to %d characters", len(whole.text), longest)
            return found
    raise AssertionError("the last starts are few enough")


def _lengths(kind: CandidateKind) -> list[int]:
    """The greatest lengths that are tried, rising; the last one is what the kind allows."""
    length = _MAX_LENGTH if kind.max_length is None else min(kind.max_length, _MAX_LENGTH)
    lengths = [length]
    while lengths[0] // 2 >= min(max(2 * kind.min_length, _LEAST_LENGTH), length):
        lengths.insert(0, lengths[0] // 2)
    return lengths


def _starts(bounds: Bounds, least: int) -> Iterator[Array]:
    """Every start, the beginnings of words, of lines (or what a stretch may not leave), and of the first lines."""
    firsts = np.unique(np.searchsorted(bounds.starts, np.append(0, bounds.walls)))
    lines = bounds.starts[firsts[firsts < len(bounds.starts)]]
    yield bounds.starts
    yield np.intersect1d(bounds.starts, bounds.words)
    yield lines
    yield lines[: max(_MAX_TRIALS // (least * least), 1)]


def _can_begin(whole: Folded, starts: Array, pattern: regex.Pattern[str]) -> Array:
    """bool[S], whether anything that the pattern matches begins with the characters at each start.

    Characters recur, so a few trials spare many.
    """
    length = 3 if len(starts) > _MANY else 1
    points = np.append(whole.points, [0] * length).astype(np.int64)
    heads = sum(points[starts + place] << (21 * place) for place in range(length))
    known, places = np.unique(heads, return_index=True)
    texts = [whole.text[start : start + length] for start in starts[places].tolist()]
    is_head = np.array([_is_head(text, pattern) for text in texts], bool)
    found: Array = is_head[np.searchsorted(known, heads)]
    return found


def _is_head(text: str, pattern: regex.Pattern[str]) -> bool:
    shorter = (pattern.fullmatch(text[:length]) for length in range(1, len(text)))
    return pattern.fullmatch(text, partial=True) is not None or any(found is not None for found in shorter)


def _matching(
    whole: Folded, bounds: Bounds, kind: CandidateKind, lengths: Sequence[int]
) -> tuple[list[Candidate], int]:
    """Longer and longer stretches from each start, until no longer one can match.

    Short ones first, everywhere: what was tried before there were too many is kept, and nothing is tried twice.

    Returns:
        The candidates up to a length, and that length; 0 where even the least is too much.
    """
    pattern = compiled(kind.pattern or "")
    starts, _, lasts = stretches(bounds, kind.max_words, lengths[-1])
    can_begin = _can_begin(whole, starts, pattern)
    starts, lasts = starts[can_begin], lasts[can_begin]
    low = np.searchsorted(bounds.ends, starts + max(kind.min_length, 1))
    found: list[Candidate] = []
    trials, size, reached = _MAX_TRIALS, _MAX_LISTED, 0
    for length in lengths:
        high = np.maximum(np.searchsorted(bounds.ends, np.minimum(lasts, starts + length), "right"), low)
        more, tried, is_open = _tried(whole.text, pattern, bounds.ends, (starts, low, high), trials, size)
        trials -= tried
        size -= sum(end - start for start, end, _ in more)
        if trials < 0 or size < 0:
            break
        found += more
        reached = length
        starts, lasts, low = starts[is_open], lasts[is_open], high[is_open]
    return sorted(found), reached


def _tried(
    text: str, pattern: regex.Pattern[str], ends: Array, ranges: tuple[Array, Array, Array], trials: int, size: int
) -> tuple[list[Candidate], int, Array]:
    """Holds stretches against a pattern, until there were more than `trials`, or those that match are beyond `size`.

    Args:
        ends: where stretches may end.
        ranges: starts, and for each the first and after the last of its ends, as indices of `ends`.

    Returns:
        Those that match, how many were tried, and bool[S], from which starts a longer one may match.
    """
    found: list[Candidate] = []
    tried, known = 0, ends.tolist()
    is_open = np.ones(len(ranges[0]), bool)
    for index, (start, low, high) in enumerate(zip(*(each.tolist() for each in ranges), strict=True)):
        for end in known[low:high]:
            stretch = text[start:end]
            match = pattern.fullmatch(stretch, partial=True)
            tried += 1
            if match is None:
                is_open[index] = False
                break
            if not match.partial:
                size -= end - start
                found.append(Candidate(start, end, spelt(stretch).decode()))
        if tried > trials or size < 0:
            break
    return found, tried, is_open


def _every(whole: Folded, bounds: Bounds, kind: CandidateKind, lengths: Sequence[int]) -> tuple[list[Candidate], int]:
    """As `_matching`, where every stretch is one that is wanted."""
    for length in reversed(lengths):
        starts, _, lasts = stretches(bounds, kind.max_words, length)
        first = np.searchsorted(bounds.ends, starts + max(kind.min_length, 1))
        after = np.maximum(np.searchsorted(bounds.ends, lasts, "right"), first)
        sums = np.append(0, np.cumsum(bounds.ends, dtype=np.int64))
        if int((sums[after] - sums[first] - (after - first) * starts).sum()) <= _MAX_LISTED:
            return list(_spelt_out(whole, bounds.ends, starts, first, after)), length
    return [], 0


def _spelt_out(whole: Folded, ends: Array, starts: Array, first: Array, after: Array) -> Iterator[Candidate]:
    spelling, position = spelt(whole.text), positions_of(whole).tolist()
    known = ends.tolist()
    for start, low, high in zip(starts.tolist(), first.tolist(), after.tolist(), strict=True):
        for end in known[low:high]:
            yield Candidate(start, end, spelling[position[start] : position[end]].decode())
