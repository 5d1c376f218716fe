"""Putting automata together where JSON's punctuation keeps them apart, without a subset construction.

After a value comes a comma or a closing bracket, before it a key; none of these can be mistaken for another, so
pieces are grafted onto each other deterministically.  An overlap is a programming error and is raised as one.
A piece is copied as arrays, never state by state, however deep it is nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.automata import EMPTY, NO_TAG, Dfa, DfaArrays, StateLimitError

__all__ = ["Assembly"]


class _Piece(NamedTuple):
    base: int
    arrays: DfaArrays
    tags: Array


class Assembly:
    """A deterministic automaton under construction; state 0 is the start."""

    def __init__(self, state_limit: int) -> None:
        self._limit = state_limit
        self._count = 1
        self._edges: list[tuple[int, int, int, int]] = []
        self._pieces: list[_Piece] = []
        self._followers: dict[int, list[int]] = {}

    def state(self) -> int:
        """A new state.

        Raises:
            StateLimitError: there are too many.
        """
        return self._grow(1)

    def _grow(self, count: int) -> int:
        first = self._count
        self._count += count
        if self._count > self._limit:
            raise StateLimitError(f"more than {self._limit} states")
        return first

    def edge(self, source: int, low: int, high: int, target: int) -> None:
        self._edges.append((source, low, high, target))

    def byte(self, source: int, byte: int, target: int) -> None:
        self.edge(source, byte, byte, target)

    def literal(self, source: int, word: bytes) -> int:
        """Appends the bytes; the state after them."""
        for byte in word:
            target = self.state()
            self.byte(source, byte, target)
            source = target
        return source

    def graft(self, starts: Sequence[int], dfa: Dfa, after: int, retag: Callable[[int], int] | None = None) -> None:
        """Appends one copy of `dfa` at all the starts; whatever ends one of its words goes on as `after` does."""
        base = self._grow(dfa.state_count)
        self._pieces.append(_Piece(base, dfa.arrays, _renamed(dfa.arrays.tags, retag)))
        for start in starts:
            self.follow(start, base)
        for end in np.flatnonzero(dfa.arrays.accepting).tolist():
            self.follow(base + end, after)

    def follow(self, state: int, other: int) -> None:
        """Lets `state` go on as `other` does, besides what it does already."""
        self._followers.setdefault(state, []).append(other)

    def finish(self, accepting: Iterable[int]) -> Dfa:
        """The automaton, trimmed.

        Raises:
            RuntimeError: two continuations of a state begin with the same byte.
        """
        edges = self._all_edges()
        accepts = np.zeros(self._count, bool)
        accepts[list(accepting)] = True
        edges = self._followed(edges, accepts)
        kept = self._needed(edges, accepts)
        if not kept[0]:
            return EMPTY
        edges = edges[:, kept[edges[0]] & kept[edges[3]]]
        edges = edges[:, np.argsort(edges[0].astype(np.int64) << 32 | edges[1], kind="stable")]
        # What a state follows by two ways gives it the same edges twice.
        is_new = np.ones(edges.shape[1], bool)
        is_new[1:] = (edges[:, 1:] != edges[:, :-1]).any(axis=0)
        source, low, high, target = edges[:, is_new]
        names = np.cumsum(kept, dtype=np.int32) - 1
        is_overlapping = (source[1:] == source[:-1]) & (low[1:] <= high[:-1])
        if is_overlapping.any():
            raise RuntimeError(f"two continuations begin with byte {low[1:][is_overlapping][0]:#04x}")
        starts = np.zeros(int(names[-1]) + 2, np.int32)
        np.cumsum(np.bincount(names[source], minlength=len(starts) - 1), out=starts[1:])
        tags = np.full(self._count, NO_TAG, np.int32)
        for piece in self._pieces:
            tags[piece.base : piece.base + len(piece.tags)] = piece.tags
        return Dfa.of_arrays(DfaArrays(starts, low, high, names[target], accepts[kept], tags[kept]))

    def _all_edges(self) -> Array:
        """int32[4, m]: source, low, high and target of each edge, by source."""
        parts = [np.array(self._edges, np.int32).reshape(-1, 4).T]
        for base, arrays, _ in self._pieces:
            sources = np.repeat(np.arange(base, base + len(arrays.tags), dtype=np.int32), np.diff(arrays.starts))
            parts.append(np.stack([sources, arrays.low, arrays.high, arrays.target + np.int32(base)]))
        edges = np.concatenate(parts, axis=1)
        return edges[:, np.argsort(edges[0], kind="stable")]

    def _followed(self, edges: Array, accepts: Array) -> Array:
        """The edges with those of each state's followers added; `accepts` is changed in place."""
        beyond: dict[int, set[int]] = {}
        pairs: list[tuple[int, int]] = []
        for state, others in self._followers.items():
            for first in others:
                if first not in beyond:
                    beyond[first] = _closed([first], self._followers)
            reached = {other for first in others for other in beyond[first]} - {state}
            pairs += [(state, other) for other in sorted(reached)]
        follower, followed = np.array(pairs, np.int32).reshape(-1, 2).T
        np.logical_or.at(accepts, follower, accepts[followed])
        starts = np.searchsorted(edges[0], np.arange(self._count + 1))
        counts = starts[followed + 1] - starts[followed]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        added = edges[:, np.repeat(starts[followed], counts) + offsets]
        added[0] = np.repeat(follower, counts)
        return np.concatenate([edges, added], axis=1)

    def _needed(self, edges: Array, accepts: Array) -> Array:
        """Which states are reached and lead to acceptance.

        A piece is trimmed, is entered as its first state is, and goes on alike wherever it ends: its states are needed
        together, but for the first, which those before it stand for unless the piece itself comes back to it.
        """
        bases = np.array([piece.base for piece in self._pieces], np.int64)
        unit = np.arange(self._count)
        for piece in self._pieces:
            unit[piece.base : piece.base + len(piece.tags)] = piece.base
        ways = unit[edges[0]] * self._count + unit[edges[3]]
        ways = np.unique(ways[unit[edges[0]] != unit[edges[3]]])
        ahead: dict[int, list[int]] = {}
        back: dict[int, list[int]] = {}
        for source, target in zip((ways // self._count).tolist(), (ways % self._count).tolist(), strict=True):
            ahead.setdefault(source, []).append(target)
            back.setdefault(target, []).append(source)
        is_needed = np.zeros(self._count, bool)
        is_needed[list(_closed([0], ahead) & _closed(np.unique(unit[accepts]).tolist(), back))] = True
        needed: Array = is_needed[unit]
        needed[bases[~np.isin(bases, edges[3][needed[edges[0]]])]] = False
        return needed


def _renamed(tags: Array, retag: Callable[[int], int] | None) -> Array:
    if retag is None:
        return tags
    used, places = np.unique(tags, return_inverse=True)
    return np.array([retag(tag) for tag in used.tolist()], np.int32)[places]


def _closed(starts: Iterable[int], ways: Mapping[int, Sequence[int]]) -> set[int]:
    """The starts and all that any way leads to from them."""
    seen = set(starts)
    stack = list(seen)
    while stack:
        for other in ways.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen
