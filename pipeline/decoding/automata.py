"""Finite automata over integers: bytes (0-255) where records are spelt, code points where strings are described.

This module owns the algebra (union, concatenation, repetition, intersection, complement, minimisation) and knows
nothing of JSON.  Edges are intervals, so that a state of "any character" costs a handful of tuples at any alphabet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["EMPTY", "Dfa", "Edge", "Nfa", "StateLimitError", "concat", "intersect", "repeat", "trimmed", "union"]

Edge = tuple[int, int, int]
"""`(low, high, target)`: symbols low..high, both included, lead to target."""

NO_TAG = -1


class StateLimitError(Exception):
    """An automaton grew beyond the states it was allowed; the caller decides what that means."""


@dataclass(frozen=True, slots=True, eq=False)
class Dfa:
    """A trimmed deterministic automaton: state 0 is the start, every other state leads to acceptance.

    `edges[s]` are sorted, disjoint intervals; `tags[s]` names what is being written in state s (`NO_TAG` for nothing).
    """

    edges: tuple[tuple[Edge, ...], ...]
    accepting: tuple[bool, ...]
    tags: tuple[int, ...]

    @property
    def state_count(self) -> int:
        return len(self.edges)

    @property
    def is_empty(self) -> bool:
        """Whether no word at all is accepted."""
        return not self.accepting[0] and not self.edges[0]

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
        """The least automaton for the same language and tags, by Moore's refinement."""
        classes = _refine(self)
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
    order = {0: 0}
    queue = [0]
    for state in queue:
        for _, _, target in edges[state]:
            if alive[target] and target not in order:
                order[target] = len(order)
                queue.append(target)
    if all(alive):
        kept = tuple(tuple([(low, high, order[t]) for low, high, t in edges[state]]) for state in queue)
    else:
        kept = tuple(tuple([(low, high, order[t]) for low, high, t in edges[state] if alive[t]]) for state in queue)
    return Dfa(kept, tuple(accepting[state] for state in queue), tuple(tags[state] for state in queue))


class Nfa:
    """A nondeterministic automaton under construction."""

    def __init__(self, *, state_limit: int = 1_000_000) -> None:
        self._edges: list[list[Edge]] = []
        self._empty: list[list[int]] = []
        self._tags: list[int] = []
        self._state_limit = state_limit

    def state(self, tag: int = NO_TAG) -> int:
        """A new state.

        Raises:
            StateLimitError: there are too many.
        """
        if len(self._edges) >= self._state_limit:
            raise StateLimitError(f"more than {self._state_limit} states")
        self._edges.append([])
        self._empty.append([])
        self._tags.append(tag)
        return len(self._edges) - 1

    def edge(self, source: int, low: int, high: int, target: int) -> None:
        self._edges[source].append((low, high, target))

    def link(self, source: int, target: int) -> None:
        """A step that reads nothing."""
        self._empty[source].append(target)

    def literal(self, source: int, word: Iterable[int], tag: int = NO_TAG) -> int:
        """Appends the word; the state after it."""
        for symbol in word:
            target = self.state(tag)
            self.edge(source, symbol, symbol, target)
            source = target
        return source

    def splice(self, source: int, dfa: Dfa, retag: Callable[[int], int] | None = None) -> int:
        """Appends a copy of `dfa`; the state that follows each of its words."""
        base = len(self._edges)
        if base + dfa.state_count > self._state_limit:
            raise StateLimitError(f"more than {self._state_limit} states")
        for row in dfa.edges:
            self._edges.append([(low, high, base + target) for low, high, target in row])
            self._empty.append([])
        self._tags.extend(dfa.tags if retag is None else map(retag, dfa.tags))
        end = self.state()
        for state, accepting in enumerate(dfa.accepting):
            if accepting:
                self.link(base + state, end)
        self.link(source, base)
        return end

    def determinized(self, start: int, end: int) -> Dfa:
        """The subset construction from `start`; words that can reach `end` are accepted."""
        closures: dict[int, tuple[int, ...]] = {}
        names: dict[tuple[int, ...], int] = {}
        queue: list[tuple[int, ...]] = []
        edges: list[list[Edge]] = []

        def name(targets: frozenset[int] | tuple[int, ...]) -> int:
            if len(targets) == 1:
                (only,) = targets
                key = closures.get(only) or closures.setdefault(only, self._closure((only,), end))
            else:
                key = self._closure(targets, end)
            found = names.get(key)
            if found is None:
                found = names[key] = len(queue)
                queue.append(key)
                if found > self._state_limit:
                    raise StateLimitError(f"more than {self._state_limit} states")
            return found

        name((start,))
        for members in queue:
            sources = [self._edges[member] for member in members if self._edges[member]]
            if len(sources) == 1 and len(sources[0]) == 1:
                low, high, target = sources[0][0]
                edges.append([(low, high, name((target,)))])
            else:
                edges.append([(low, high, name(targets)) for low, high, targets in _sweep(sources)])
        accepting = [end in members for members in queue]
        tags = [max(self._tags[member] for member in members) for members in queue]
        return trimmed(edges, accepting, tags)

    def _closure(self, states: Iterable[int], end: int) -> tuple[int, ...]:
        seen = set(states)
        stack = list(seen)
        while stack:
            for target in self._empty[stack.pop()]:
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        kept = (s for s in seen if self._edges[s] or s == end or self._tags[s] >= 0)
        return tuple(sorted(kept)) or (min(seen),)


def _sweep(sources: Sequence[Sequence[Edge]]) -> list[tuple[int, int, tuple[int, ...] | frozenset[int]]]:
    """Overlapping edges cut into disjoint intervals, each with the set of its targets."""
    edges = sorted(edge for source in sources for edge in source)
    if all(edges[i][1] < edges[i + 1][0] for i in range(len(edges) - 1)):
        return [(low, high, (target,)) for low, high, target in edges]
    points = sorted({low for low, _, _ in edges} | {high + 1 for _, high, _ in edges})
    swept: list[tuple[int, int, tuple[int, ...] | frozenset[int]]] = []
    active: list[Edge] = []
    position = 0
    for low, after in pairwise(points):
        active = [edge for edge in active if edge[1] >= low]
        while position < len(edges) and edges[position][0] <= low:
            active.append(edges[position])
            position += 1
        if not active:
            continue
        targets = frozenset(target for _, _, target in active)
        if swept and swept[-1][2] == targets and swept[-1][1] + 1 == low:
            swept[-1] = (swept[-1][0], after - 1, targets)
        else:
            swept.append((low, after - 1, targets))
    return swept


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


def union(parts: Sequence[Dfa]) -> Dfa:
    """Words that any of the parts accepts."""
    if len(parts) == 1:
        return parts[0]
    if (joined := _side_by_side(parts)) is not None:
        return joined
    nfa = Nfa()
    start, end = nfa.state(), nfa.state()
    for part in parts:
        nfa.link(nfa.splice(start, part), end)
    return nfa.determinized(start, end)


def _side_by_side(parts: Sequence[Dfa]) -> Dfa | None:
    """The union of parts that begin with different symbols: no subset construction is needed."""
    first = sorted((low, high) for part in parts for low, high, _ in part.edges[0])
    if any(part.accepting[0] for part in parts) or any(a[1] >= b[0] for a, b in pairwise(first)):
        return None
    edges: list[tuple[Edge, ...]] = [()]
    accepting, tags = [False], [NO_TAG]
    start: list[Edge] = []
    for part in parts:
        base = len(edges)
        edges.extend(tuple([(low, high, base + target) for low, high, target in row]) for row in part.edges)
        start += edges[base]
        accepting += part.accepting
        tags += part.tags
    edges[0] = tuple(sorted(start))
    return trimmed(edges, accepting, tags)


def concat(parts: Sequence[Dfa]) -> Dfa:
    """A word of each part, one after the other."""
    nfa = Nfa()
    start = state = nfa.state()
    for part in parts:
        state = nfa.splice(state, part)
    return nfa.determinized(start, state)


def repeat(part: Dfa, least: int, most: int | None) -> Dfa:
    """`least` to `most` words of the part, one after the other; without end where `most` is None."""
    nfa = Nfa()
    start = state = nfa.state()
    for _ in range(least):
        state = nfa.splice(state, part)
    end = nfa.state()
    nfa.link(state, end)
    if most is None:
        loop = nfa.state()
        nfa.link(state, loop)
        after = nfa.splice(loop, part)
        nfa.link(after, loop)
        nfa.link(after, end)
    else:
        for _ in range(most - least):
            state = nfa.splice(state, part)
            nfa.link(state, end)
    return nfa.determinized(start, end)
