"""Nondeterministic automata: the way to a union, a concatenation or a repetition of languages.

They live only under construction; what leaves is deterministic, by the subset construction (Rabin and Scott 1959).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from pipeline.decoding.assembly import Assembly
from pipeline.decoding.automata import EMPTY, NO_TAG, Dfa, Edge, StateLimitError, in_order, trimmed

__all__ = ["Nfa", "concat", "union"]

_MOST_STATES = 1_000_000
_FEW_STATES = 200
"""States up to which the subset construction takes less time than looking at arrays."""


class Nfa:
    """A nondeterministic automaton under construction."""

    def __init__(self, *, state_limit: int = _MOST_STATES) -> None:
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


def union(parts: Sequence[Dfa], *, state_limit: int = _MOST_STATES) -> Dfa:
    """Words that any of the parts accepts.

    Parts that no word's first symbol can be mistaken for each other's are only laid side by side.

    Args:
        parts: any number of them.
        state_limit: states in which a word can be of several parts, at most.

    Raises:
        StateLimitError: there are too many states.
    """
    parts = [part for part in parts if not part.is_empty]
    groups = _by_first_symbol(parts)
    if len(groups) < 2 or sum(part.state_count for part in parts) < _FEW_STATES:
        return _overlapping_union(parts, state_limit)
    assembly = Assembly(_MOST_STATES)
    end = assembly.state()
    for group in groups:
        assembly.graft([0], _overlapping_union(group, state_limit), end)
    return assembly.finish([end])


def _by_first_symbol(parts: Sequence[Dfa]) -> list[list[Dfa]]:
    """The parts in groups of which no two begin with the same symbol."""
    groups: list[tuple[list[tuple[int, int]], list[Dfa]]] = []
    for part in parts:
        spans = [(low, high) for low, high, _ in part.first_edges]
        alike = [group for group in groups if _overlap(spans, group[0])]
        groups = [group for group in groups if group not in alike]
        groups.append((sum((group[0] for group in alike), spans), sum((group[1] for group in alike), [part])))
    return [members for _, members in groups]


def _overlap(spans: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> bool:
    return any(low <= top and bottom <= high for low, high in spans for bottom, top in others)


def _overlapping_union(parts: Sequence[Dfa], state_limit: int) -> Dfa:
    """Any union.

    The subset construction over copies of the parts: a state that only one part can be in is that part's own, so that
    only what they have in common costs more than copying.

    Raises:
        StateLimitError: there are too many states.
    """
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    edges: list[Sequence[Edge]] = [(), ()]
    accepting, tags = [False, True], [NO_TAG, NO_TAG]
    start = frozenset([_copied(part, edges, accepting, tags) for part in parts])
    copied = len(edges)
    names = {start: 0}
    queue = [start]

    def name(states: tuple[int, ...] | frozenset[int]) -> int:
        if len(states) == 1:
            return next(iter(states))
        key = frozenset(states)
        found = names.get(key)
        if found is None:
            found = names[key] = copied + len(queue) - 1
            queue.append(key)
            if len(queue) > state_limit:
                raise StateLimitError(f"more than {state_limit} states")
        return found

    for states in queue:
        edges.append([(low, high, name(targets)) for low, high, targets in _sweep([edges[state] for state in states])])
        accepting.append(any(accepting[state] for state in states))
        tags.append(max(tags[state] for state in states))
    # What was found first is the start, and takes its name.
    edges[0], accepting[0], tags[0] = edges.pop(copied), accepting.pop(copied), tags.pop(copied)
    return in_order(edges, accepting, tags)


def _copied(part: Dfa, edges: list[Sequence[Edge]], accepting: list[bool], tags: list[int]) -> int:
    """Appends a part's states; the first one.  What only ends the word is state 1, whichever part it is of."""
    if len(edges) + part.state_count > _MOST_STATES:
        raise StateLimitError(f"more than {_MOST_STATES} states")
    own: list[int] = []
    count = len(edges)
    for row, accepts, tag in zip(part.edges, part.accepting, part.tags, strict=True):
        is_end = accepts and not row and tag == NO_TAG
        own.append(1 if is_end else count)
        count += not is_end
    for state, row in enumerate(part.edges):
        if own[state] != 1:
            edges.append([(low, high, own[target]) for low, high, target in row])
            accepting.append(part.accepting[state])
            tags.append(part.tags[state])
    return own[0]


def concat(parts: Sequence[Dfa]) -> Dfa:
    """A word of each part, one after the other."""
    nfa = Nfa()
    start = state = nfa.state()
    for part in parts:
        state = nfa.splice(state, part)
    return nfa.determinized(start, state)
