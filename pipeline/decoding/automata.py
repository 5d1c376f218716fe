"""Deterministic automata over integers: bytes (0-255) where records are spelt, code points where strings are described.

This module owns the value and what is made of it state by state (intersection, complement, minimisation); it knows
nothing of JSON.  Edges are intervals, so that a state of "any character" costs a handful of tuples at any alphabet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["EMPTY", "NO_TAG", "Dfa", "DfaArrays", "Edge", "StateLimitError", "in_order", "intersect", "trimmed"]

Edge = tuple[int, int, int]
"""`(low, high, target)`: symbols low..high, both included, lead to target."""

NO_TAG = -1
_SELF = -1
"""Stands for the class of a state that is not classed yet: its own."""


class StateLimitError(Exception):
    """An automaton grew beyond the states it was allowed; the caller decides what that means."""


class DfaArrays(NamedTuple):
    """An automaton of n states and m edges; the edges of state s are `starts[s]:starts[s + 1]`.

    `starts` int32[n + 1], `low`, `high` and `target` int32[m], `accepting` bool[n], `tags` int32[n].
    """

    starts: Array
    low: Array
    high: Array
    target: Array
    accepting: Array
    tags: Array


class Dfa:
    """A trimmed deterministic automaton: state 0 is the start, every other state leads to acceptance.

    `edges[s]` are sorted, disjoint intervals; `tags[s]` names what is being written in state s (`NO_TAG` for nothing).
    What is made state by state is held in tuples, what is put together of many parts in arrays; either is made of the
    other when it is first asked for.
    """

    def __init__(self, edges: tuple[tuple[Edge, ...], ...], accepting: tuple[bool, ...], tags: tuple[int, ...]) -> None:
        self.edges, self.accepting, self.tags = edges, accepting, tags

    @classmethod
    def of_arrays(cls, arrays: DfaArrays) -> Dfa:
        dfa = cls.__new__(cls)
        dfa.arrays = arrays
        return dfa

    @cached_property
    def edges(self) -> tuple[tuple[Edge, ...], ...]:
        starts, low, high, target = (array.tolist() for array in self.arrays[:4])
        edges = tuple(zip(low, high, target, strict=True))
        return tuple(edges[start:stop] for start, stop in pairwise(starts))

    @cached_property
    def accepting(self) -> tuple[bool, ...]:
        return tuple(self.arrays.accepting.tolist())

    @cached_property
    def tags(self) -> tuple[int, ...]:
        return tuple(self.arrays.tags.tolist())

    @cached_property
    def arrays(self) -> DfaArrays:
        starts = np.zeros(len(self.edges) + 1, np.int32)
        np.cumsum([len(row) for row in self.edges], out=starts[1:])
        flat = np.fromiter(chain.from_iterable(chain.from_iterable(self.edges)), np.int32, 3 * int(starts[-1]))
        low, high, target = np.ascontiguousarray(flat.reshape(-1, 3).T)
        return DfaArrays(starts, low, high, target, np.array(self.accepting, bool), np.array(self.tags, np.int32))

    @property
    def state_count(self) -> int:
        return len(self.edges) if "edges" in self.__dict__ else len(self.arrays.tags)

    @property
    def is_empty(self) -> bool:
        """Whether no word at all is accepted."""
        return not self.first_edges and not (
            self.accepting[0] if "edges" in self.__dict__ else self.arrays.accepting[0]
        )

    @property
    def first_edges(self) -> Sequence[Edge]:
        """Those of the start."""
        if "edges" in self.__dict__:
            return self.edges[0]
        low, high, target = (array[: self.arrays.starts[1]].tolist() for array in self.arrays[1:4])
        return list(zip(low, high, target, strict=True))

    def step(self, state: int, symbol: int) -> int:
        """The state after `symbol`, or -1."""
        for low, high, target in self.edges[state]:
            if low <= symbol <= high:
                return target
        return -1

    def accepts(self, word: Iterable[int]) -> bool:
        state = 0
        for symbol in word:
            state = self.step(state, symbol)
            if state < 0:
                return False
        return self.accepting[state]

    def complement(self, top: int) -> Dfa:
        """Every word over `0..top` that this one refuses."""
        sink = self.state_count
        edges: list[list[Edge]] = []
        for row in self.edges:
            filled: list[Edge] = []
            position = 0
            for low, high, target in row:
                if position < low:
                    filled.append((position, low - 1, sink))
                filled.append((low, high, target))
                position = high + 1
            if position <= top:
                filled.append((position, top, sink))
            edges.append(_merged(filled))
        edges.append([(0, top, sink)])
        accepting = [not value for value in self.accepting] + [True]
        return trimmed(edges, accepting, [NO_TAG] * len(edges))

    def difference(self, other: Dfa, top: int) -> Dfa:
        """Words of this one that `other` refuses."""
        return intersect(self, other.complement(top))

    def minimized(self) -> Dfa:
        """The least automaton for the same language and tags: from its ends where it has no cycle, else by Moore's
        refinement, which takes as many rounds as a word is long."""
        classes = _classes_from_ends(self) or _refine(self)
        count = max(classes) + 1
        if count == self.state_count:
            return self
        order: dict[int, int] = {classes[0]: 0}
        for value in classes:
            order.setdefault(value, len(order))
        edges: list[tuple[Edge, ...]] = [()] * count
        accepting = [False] * count
        tags = [NO_TAG] * count
        for state, value in enumerate(classes):
            new = order[value]
            if not edges[new]:
                edges[new] = tuple(
                    _merged([(low, high, order[classes[target]]) for low, high, target in self.edges[state]])
                )
            accepting[new] = self.accepting[state]
            tags[new] = self.tags[state]
        return Dfa(tuple(edges), tuple(accepting), tuple(tags))


def _merged(edges: Sequence[Edge]) -> list[Edge]:
    merged: list[Edge] = []
    for low, high, target in edges:
        if merged and merged[-1][2] == target and merged[-1][1] + 1 == low:
            merged[-1] = (merged[-1][0], high, target)
        else:
            merged.append((low, high, target))
    return merged


def _classes_from_ends(dfa: Dfa) -> list[int] | None:
    """Equal for states that go on alike, each classed once all that it leads to is; None where there is a cycle.

    A state may lead to itself; then one that leads there with what it lacks itself goes on alike, too.
    """
    sources: list[list[int]] = [[] for _ in dfa.edges]
    waiting = [0] * len(sources)
    for state, row in enumerate(dfa.edges):
        for _, _, target in row:
            if target != state:
                sources[target].append(state)
                waiting[state] += 1
    ready = [state for state, count in enumerate(waiting) if not count]
    classes = [_SELF] * len(waiting)
    signatures: dict[object, int] = {}
    looping: set[int] = set()
    for state in ready:
        onward = [(low, high, classes[target]) for low, high, target in dfa.edges[state]]
        ending = dfa.accepting[state], dfa.tags[state]
        targets = {target for _, _, target in onward}
        for known in targets & looping:
            returning = _merged([(low, high, _SELF if each == known else each) for low, high, each in onward])
            if signatures.get((ending, tuple(returning))) == known:
                classes[state] = known
                break
        else:
            classes[state] = signatures.setdefault((ending, tuple(_merged(onward))), len(signatures))
            if _SELF in targets:
                looping.add(classes[state])
        for source in sources[state]:
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)
    return classes if len(ready) == len(classes) else None


def _refine(dfa: Dfa) -> list[int]:
    signatures: dict[object, int] = {}
    classes = [
        signatures.setdefault((accepting, tag), len(signatures))
        for accepting, tag in zip(dfa.accepting, dfa.tags, strict=True)
    ]
    count = len(signatures)
    while True:
        signatures = {}
        renamed = []
        for state, row in enumerate(dfa.edges):
            key = (classes[state], tuple(_merged([(low, high, classes[target]) for low, high, target in row])))
            renamed.append(signatures.setdefault(key, len(signatures)))
        if len(signatures) == count:
            return renamed
        classes, count = renamed, len(signatures)


def trimmed(edges: Sequence[Sequence[Edge]], accepting: Sequence[bool], tags: Sequence[int]) -> Dfa:
    """Keeps states that are reachable from 0 and lead to acceptance."""
    parents: list[list[int]] = [[] for _ in edges]
    for state, row in enumerate(edges):
        for _, _, target in row:
            parents[target].append(state)
    alive = list(accepting)
    stack = [state for state, value in enumerate(accepting) if value]
    while stack:
        for parent in parents[stack.pop()]:
            if not alive[parent]:
                alive[parent] = True
                stack.append(parent)
    if not alive[0]:
        return EMPTY
    if all(alive):
        return in_order(edges, accepting, tags)
    return in_order([[edge for edge in row if alive[edge[2]]] for row in edges], accepting, tags)


def in_order(edges: Sequence[Sequence[Edge]], accepting: Sequence[bool], tags: Sequence[int]) -> Dfa:
    """Keeps states that are reachable from 0, all of which lead to acceptance; in breadth-first order."""
    order = {0: 0}
    queue = [0]
    for state in queue:
        for _, _, target in edges[state]:
            if target not in order:
                order[target] = len(order)
                queue.append(target)
    return Dfa(
        tuple(tuple([(low, high, order[target]) for low, high, target in edges[state]]) for state in queue),
        tuple(accepting[state] for state in queue),
        tuple(tags[state] for state in queue),
    )


EMPTY = Dfa(((),), (False,), (NO_TAG,))
"""The automaton that accepts nothing."""


def intersect(first: Dfa, second: Dfa, *, state_limit: int = 200_000) -> Dfa:
    """Words that both accept.

    Raises:
        StateLimitError: the product has too many states.
    """
    names: dict[tuple[int, int], int] = {(0, 0): 0}
    queue = [(0, 0)]
    edges: list[list[Edge]] = []
    for left, right in queue:
        row: list[Edge] = []
        lefts, rights = first.edges[left], second.edges[right]
        i = j = 0
        while i < len(lefts) and j < len(rights):
            low = max(lefts[i][0], rights[j][0])
            high = min(lefts[i][1], rights[j][1])
            if low <= high:
                pair = (lefts[i][2], rights[j][2])
                if pair not in names:
                    names[pair] = len(queue)
                    queue.append(pair)
                    if len(queue) > state_limit:
                        raise StateLimitError(f"more than {state_limit} states")
                row.append((low, high, names[pair]))
            if lefts[i][1] < rights[j][1]:
                i += 1
            else:
                j += 1
        edges.append(_merged(row))
    accepting = [first.accepting[left] and second.accepting[right] for left, right in queue]
    tags = [max(first.tags[left], second.tags[right]) for left, right in queue]
    return trimmed(edges, accepting, tags)
