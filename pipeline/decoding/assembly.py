"""Putting automata together where JSON's punctuation keeps them apart, without a subset construction.

After a value comes a comma or a closing bracket, before it a key; none of these can be mistaken for another, so
pieces are grafted onto each other deterministically.  An overlap is a programming error and is raised as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from pipeline.decoding.automata import NO_TAG, Dfa, Edge, StateLimitError, trimmed

__all__ = ["Assembly"]


class Assembly:
    """A deterministic automaton under construction; state 0 is the start."""

    def __init__(self, state_limit: int) -> None:
        self._limit = state_limit
        self._edges: list[list[Edge]] = [[]]
        self._tags = [NO_TAG]
        self._followers: list[tuple[int, int]] = []

    def state(self) -> int:
        """A new state.

        Raises:
            StateLimitError: there are too many.
        """
        self._grow(1)
        self._edges.append([])
        self._tags.append(NO_TAG)
        return len(self._edges) - 1

    def _grow(self, count: int) -> None:
        if len(self._edges) + count > self._limit:
            raise StateLimitError(f"more than {self._limit} states")

    def edge(self, source: int, low: int, high: int, target: int) -> None:
        self._edges[source].append((low, high, target))

    def byte(self, source: int, byte: int, target: int) -> None:
        self.edge(source, byte, byte, target)

    def literal(self, source: int, word: bytes) -> int:
        """Appends the bytes; the state after them."""
        for byte in word:
            target = self.state()
            self.byte(source, byte, target)
            source = target
        return source

    def graft(
        self, starts: Sequence[int], dfa: Dfa, retag: Callable[[int], int] | None = None
    ) -> list[tuple[int, int]]:
        """Appends one copy of `dfa` at all the starts; its accepting states, each with its state in `dfa`."""
        self._grow(dfa.state_count)
        base = len(self._edges)
        for row in dfa.edges:
            self._edges.append([(low, high, base + target) for low, high, target in row])
        self._tags.extend(dfa.tags if retag is None else map(retag, dfa.tags))
        for start in starts:
            self._followers.append((start, base))
        return [(base + state, state) for state, accepting in enumerate(dfa.accepting) if accepting]

    def follow(self, state: int, other: int) -> None:
        """Lets `state` go on as `other` does, besides what it does already."""
        self._followers.append((state, other))

    def finish(self, accepting: Iterable[int]) -> Dfa:
        """The automaton, trimmed.

        Raises:
            RuntimeError: two continuations of a state begin with the same byte.
        """
        followers: dict[int, list[int]] = {}
        for state, other in self._followers:
            followers.setdefault(state, []).append(other)
        accepts = [False] * len(self._edges)
        for state in accepting:
            accepts[state] = True
        own = [tuple(row) for row in self._edges]
        for state in followers:
            row: list[Edge] = []
            seen: set[int] = set()
            stack = [state]
            while stack:
                other = stack.pop()
                if other not in seen:
                    seen.add(other)
                    row += own[other]
                    accepts[state] |= accepts[other]
                    stack += followers.get(other, ())
            self._edges[state] = sorted(set(row))
        for row in self._edges:
            row.sort()
            for (_, high, _), (low, _, _) in pairwise(row):
                if low <= high:
                    raise RuntimeError(f"two continuations begin with byte {low:#04x}")
        return trimmed(self._edges, accepts, self._tags)
