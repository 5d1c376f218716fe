"""From what a string may say to how JSON spells it, in bytes.

Each character has exactly one spelling: itself in UTF-8, except `"` and `\\`, which are escaped, and control
characters, which take their short escape or `\\u00xx` in lower case (as RFC 8259 needs, and as
Python, serde and pydantic write it).  So the length of a string is known from its bytes, and no invalid UTF-8, lone
surrogate or raw control can occur.
"""

from __future__ import annotations

import functools

from pipeline.decoding.automata import Dfa, Edge, trimmed
from pipeline.decoding.nfa import Nfa
from pipeline.decoding.strings import any_string

__all__ = ["encoded_chars", "json_literal", "json_string", "string_of"]

_SHORT = {8: b"b", 9: b"t", 10: b"n", 12: b"f", 13: b"r", 0x22: b'"', 0x5C: b"\\"}
_PLAIN = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))
_MULTI = ((0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))
"""Characters of several bytes; complements may hold surrogates, which have no spelling."""


@functools.lru_cache(maxsize=4096)
def _utf8(low: int, high: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Sequences of byte ranges that spell the code points low..high, which all take the same number of bytes."""
    first, last = chr(low).encode(), chr(high).encode()
    if len(first) == 1:
        return (((low, high),),)
    for index in range(1, len(first)):
        mask = (1 << (6 * (len(first) - index))) - 1
        if low & ~mask != high & ~mask:
            if low & mask:
                return _utf8(low, low | mask) + _utf8((low | mask) + 1, high)
            if high & mask != mask:
                return _utf8(low, (high & ~mask) - 1) + _utf8(high & ~mask, high)
    return (tuple(zip(first, last, strict=True)),)


class _Speller:
    """Adds the spellings of characters to a byte automaton, sharing the states of equal tails."""

    def __init__(self) -> None:
        self.nfa = Nfa(state_limit=400_000)
        self._tails: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}

    def _tail(self, ranges: tuple[tuple[int, int], ...], target: int) -> int:
        if not ranges:
            return target
        key = (target, ranges)
        state = self._tails.get(key)
        if state is None:
            state = self._tails[key] = self.nfa.state()
            self.nfa.edge(state, *ranges[0], self._tail(ranges[1:], target))
        return state

    def _word(self, source: int, word: bytes, target: int) -> None:
        ranges = tuple((byte, byte) for byte in word)
        self.nfa.edge(source, *ranges[0], self._tail(ranges[1:], target))

    def add(self, source: int, low: int, high: int, target: int) -> None:
        for point in range(low, min(high, 0x1F) + 1):
            self._word(source, b"\\" + _SHORT[point] if point in _SHORT else b"\\u%04x" % point, target)
        for point in (0x22, 0x5C):
            if low <= point <= high:
                self._word(source, b"\\" + _SHORT[point], target)
        for start, stop in _PLAIN:
            if max(low, start) <= min(high, stop):
                self.nfa.edge(source, max(low, start), min(high, stop), target)
        for start, stop in _MULTI:
            if max(low, start) <= min(high, stop):
                for ranges in _utf8(max(low, start), min(high, stop)):
                    self.nfa.edge(source, *ranges[0], self._tail(ranges[1:], target))


@functools.lru_cache(maxsize=4096)
def _block(groups: tuple[tuple[tuple[tuple[int, int], ...], int], ...]) -> tuple[Dfa, tuple[int, ...]]:
    """One character: an automaton for its spellings, and for each state the index of the group it ends in, or -1."""
    speller = _Speller()
    nfa = speller.nfa
    start = nfa.state()
    end = nfa.state()
    for ranges, index in groups:
        target = nfa.state(index)
        for low, high in ranges:
            speller.add(start, low, high, target)
        nfa.link(target, end)
    dfa = nfa.determinized(start, end)
    return dfa, tuple(tag if accepting else -1 for tag, accepting in zip(dfa.tags, dfa.accepting, strict=True))


@functools.lru_cache(maxsize=4096)
def _inner_first(block: Dfa) -> tuple[int, ...]:
    """The states of an automaton without loops, each after those it leads to."""
    order: dict[int, None] = {}
    stack = [0]
    while stack:
        state = stack[-1]
        missing = [target for _, _, target in block.edges[state] if target not in order]
        if missing:
            stack += missing
        else:
            order.setdefault(stack.pop())
    return tuple(order)


def _spelt(dfa: Dfa, before: bytes, after: bytes) -> Dfa:
    """Each state keeps its place and gains the inner states of its characters: spellings are prefix-free, so it stays
    deterministic without a subset construction.  Inner states that go on alike are one, whichever state they began at.
    """
    lead = len(before)
    base = lead
    count = dfa.state_count
    edges: list[list[Edge]] = [[] for _ in range(base + count)]
    inside: dict[tuple[Edge, ...], int] = {}
    for index, byte in enumerate(before):
        edges[index].append((byte, byte, index + 1))
    for state, row in enumerate(dfa.edges):
        targets: dict[int, list[tuple[int, int]]] = {}
        for low, high, target in row:
            targets.setdefault(target, []).append((low, high))
        order = list(targets)
        if not order:
            continue
        block, ends = _block(tuple((tuple(targets[target]), index) for index, target in enumerate(order)))
        names = {inner: base + order[group] for inner, group in enumerate(ends) if group >= 0}
        for inner in _inner_first(block):
            if inner in names:
                continue
            spelt = [(low, high, names[target]) for low, high, target in block.edges[inner]]
            if inner == 0:
                edges[base + state] = spelt
                continue
            names[inner] = inside.setdefault(tuple(spelt), len(edges))
            if names[inner] == len(edges):
                edges.append(spelt)
    accepting = [False] * len(edges)
    finals = [base + state for state in range(count) if dfa.accepting[state]]
    for byte in after:
        target = len(edges)
        edges.append([])
        accepting.append(False)
        for state in finals:
            edges[state] = sorted([*edges[state], (byte, byte, target)])
        finals = [target]
    for state in finals:
        accepting[state] = True
    return trimmed(edges, accepting, [-1] * len(edges))


@functools.lru_cache(maxsize=1024)
def json_string(dfa: Dfa) -> Dfa:
    """The JSON strings, quotes included, whose characters `dfa` accepts."""
    return _spelt(dfa, b'"', b'"')


@functools.lru_cache(maxsize=256)
def encoded_chars(dfa: Dfa) -> Dfa:
    """As `json_string`, without the quotes."""
    return _spelt(dfa, b"", b"")


@functools.lru_cache(maxsize=256)
def string_of(least: int = 0, most: int | None = None) -> Dfa:
    """JSON strings of `least` to `most` characters."""
    return json_string(any_string(least, most))


def json_literal(data: bytes) -> Dfa:
    """Exactly these bytes."""
    edges = tuple(((byte, byte, index + 1),) for index, byte in enumerate(data))
    return Dfa((*edges, ()), (False,) * len(data) + (True,), (-1,) * (len(data) + 1))
