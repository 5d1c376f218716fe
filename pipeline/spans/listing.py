"""Strings that a pattern or a least length picks: each stretch is tried, and those that pass are listed.

The work is bounded: where a document holds too many stretches, the longest ones are left out, everywhere alike, then
those that begin inside of words or lines, until the rest can be tried.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
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


class _TooManyError(Exception):
    """More stretches than can be tried at this length."""


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
    length = _MAX_LENGTH if kind.max_length is None else min(kind.max_length, _MAX_LENGTH)
    for attempt, (starts, longest) in enumerate(_attempts(bounds, kind, length)):
        try:
            found = list(_tried(whole, replace(bounds, starts=starts), kind, longest))
        except _TooManyError:
            continue
        if attempt:
            _log.warning("a document of %d characters: only spans up to %d characters", len(whole.text), longest)
        return found
    raise AssertionError("the last attempt is small enough")


def _attempts(bounds: Bounds, kind: CandidateKind, length: int) -> Iterator[tuple[Array, int]]:
    """Starts and greatest lengths: shorter and shorter stretches, from every start, from the beginnings of words, of
    lines (or what a stretch may not leave), and of the first lines."""
    firsts = np.unique(np.searchsorted(bounds.starts, np.append(0, bounds.walls)))
    lines = bounds.starts[firsts[firsts < len(bounds.starts)]]
    least = min(max(2 * kind.min_length, _LEAST_LENGTH), length)
    for starts in (bounds.starts, np.intersect1d(bounds.starts, bounds.words), lines):
        longest = length
        while longest >= least:
            yield starts, longest
            longest //= 2
    yield lines[: max(_MAX_TRIALS // (least * least), 1)], least


def _tried(whole: Folded, bounds: Bounds, kind: CandidateKind, length: int) -> Iterator[Candidate]:
    starts, _, lasts = stretches(bounds, kind.max_words, length)
    if kind.pattern is not None:
        can_begin = _can_begin(whole, starts, compiled(kind.pattern))
        starts, lasts = starts[can_begin], lasts[can_begin]
    first = np.searchsorted(bounds.ends, starts + max(kind.min_length, 1))
    after = np.searchsorted(bounds.ends, lasts, "right")
    if kind.pattern is not None:
        return _matching(whole.text, compiled(kind.pattern), bounds.ends, starts, first, after)
    return _every(whole, bounds.ends, starts, first, np.maximum(after, first))


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
    text: str, pattern: regex.Pattern[str], ends: Array, starts: Array, first: Array, after: Array
) -> Iterator[Candidate]:
    """Longer and longer stretches, until no longer one can match."""
    trials, size = _MAX_TRIALS, _MAX_LISTED
    known = ends.tolist()
    for start, low, high in zip(starts.tolist(), first.tolist(), after.tolist(), strict=True):
        for end in known[low:high]:
            stretch = text[start:end]
            found = pattern.fullmatch(stretch, partial=True)
            trials -= 1
            if found is None:
                break
            if not found.partial:
                size -= end - start
                yield Candidate(start, end, spelt(stretch).decode())
            if trials < 0 or size < 0:
                raise _TooManyError


def _every(whole: Folded, ends: Array, starts: Array, first: Array, after: Array) -> Iterator[Candidate]:
    sums = np.append(0, np.cumsum(ends, dtype=np.int64))
    counts = after - first
    if int((sums[after] - sums[first] - counts * starts).sum()) > _MAX_LISTED:
        raise _TooManyError
    spelling, position = spelt(whole.text), positions_of(whole).tolist()
    known = ends.tolist()
    for start, low, high in zip(starts.tolist(), first.tolist(), after.tolist(), strict=True):
        for end in known[low:high]:
            yield Candidate(start, end, spelling[position[start] : position[end]].decode())
