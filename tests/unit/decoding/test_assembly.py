"""Assemblies and unions of pieces against the subset construction of the same pieces, loops and dead ends included."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import nfa as nfa_module
from pipeline.decoding.assembly import Assembly
from pipeline.decoding.automata import EMPTY, Dfa
from pipeline.decoding.nfa import Nfa, union

A, B, AGAIN = b"ab;"
PIECES = {
    "a": Dfa((((A, A, 1),), ()), (False, True), (-1, -1)),
    "ab or b": Dfa((((A, A, 1), (B, B, 2)), ((B, B, 2),), ()), (False, False, True), (-1,) * 3),
    "a, then any b": Dfa((((A, A, 1),), ((B, B, 1),)), (False, True), (-1, -1)),
    "pairs, from the start again": Dfa((((A, A, 1),), ((B, B, 2),), ((A, A, 1),)), (False, False, True), (-1,) * 3),
    "back to the start": Dfa((((A, A, 1),), ((A, A, 0), (B, B, 2)), ()), (False, False, True), (-1,) * 3),
    "any b, then a": Dfa((((A, A, 1), (B, B, 0)), ()), (False, True), (-1, -1)),
    "nothing": EMPTY,
}

pieces = st.tuples(st.sampled_from(sorted(PIECES)), st.integers(0, 3), st.integers(0, 3), st.booleans())
"""A piece, the place that it is entered from, the one it leads to, and whether it is entered a second way."""


@given(st.lists(pieces, min_size=1, max_size=4), st.sets(st.integers(0, 3)), st.sets(st.integers(0, 3)))
def test_an_assembly_accepts_what_its_pieces_do_and_is_trimmed(
    drawn: list[tuple[str, int, int, bool]], accepting: set[int], hurried: set[int]
) -> None:
    """Fails when a state stays that nothing reaches or that leads nowhere, or when an edge is lost or doubled."""
    assembly, nfa = Assembly(1000), Nfa()
    places = [0, *(assembly.state() for _ in range(3))]
    wanted_places = [nfa.state() for _ in range(4)]
    for index, (name, source, target, is_twice) in enumerate(drawn):
        starts, entry = [], nfa.state()
        for byte in (0x30 + index, 0x40 + index)[: 1 + is_twice]:
            starts.append(assembly.state())
            assembly.byte(places[source], byte, starts[-1])
            nfa.edge(wanted_places[source], byte, byte, entry)
        assembly.graft(starts, PIECES[name], places[target])
        nfa.link(nfa.splice(entry, PIECES[name]), wanted_places[target])
    end, wanted_end, final = assembly.state(), nfa.state(), nfa.state()
    assembly.byte(end, AGAIN, end)
    nfa.edge(wanted_end, AGAIN, AGAIN, wanted_end)
    for place in hurried:
        # The edge of what it follows is its own as well.
        assembly.byte(places[place], AGAIN, end)
        assembly.follow(places[place], end)
        nfa.link(wanted_places[place], wanted_end)
    for place in (*(wanted_places[place] for place in accepting), wanted_end):
        nfa.link(place, final)
    found = assembly.finish([*(places[place] for place in accepting), end])
    assert _is_trimmed(found)
    assert _is_same(found, nfa.determinized(wanted_places[0], final))


@given(st.lists(st.tuples(st.sampled_from(sorted(PIECES)), st.integers(0, 2)), max_size=4), st.booleans())
def test_a_union_accepts_what_any_part_does(drawn: list[tuple[str, int]], is_large: bool) -> None:
    """Fails when parts whose words begin alike are laid side by side, or when one is lost among those beside it."""
    parts = [_shifted(PIECES[name], shift) for name, shift in drawn]
    wanted = Nfa()
    start, end = wanted.state(), wanted.state()
    for part in parts:
        wanted.link(wanted.splice(start, part), end)
    with mock.patch.object(nfa_module, "_FEW_STATES", 0 if is_large else 1_000):
        found = union(parts)
    assert _is_trimmed(found)
    assert _is_same(found, wanted.determinized(start, end))


def _shifted(dfa: Dfa, shift: int) -> Dfa:
    """The same words in letters further on; shifted by one, some begin alike and some do not."""
    edges = tuple(tuple((low + shift, high + shift, target) for low, high, target in row) for row in dfa.edges)
    return Dfa(edges, dfa.accepting, dfa.tags)


def _is_trimmed(dfa: Dfa) -> bool:
    if dfa.is_empty:
        return dfa.state_count == 1
    ways = {state: {target for *_, target in row} for state, row in enumerate(dfa.edges)}
    reached = {0}
    alive = {state for state, accepts in enumerate(dfa.accepting) if accepts}
    for _ in ways:
        reached |= {target for state in reached for target in ways[state]}
        alive |= {state for state, targets in ways.items() if targets & alive}
    return len(reached) == len(alive) == dfa.state_count


def _is_same(found: Dfa, wanted: Dfa) -> bool:
    """Whether both accept the same words, by walking both at once."""
    if found.is_empty or wanted.is_empty:
        return found.is_empty == wanted.is_empty
    seen = {(0, 0)}
    stack = [(0, 0)]
    while stack:
        ours, theirs = stack.pop()
        if found.accepting[ours] != wanted.accepting[theirs]:
            return False
        for byte in range(256):
            after = found.step(ours, byte), wanted.step(theirs, byte)
            if (after[0] < 0) != (after[1] < 0):
                return False
            if after[0] >= 0 and after not in seen:
                seen.add(after)
                stack.append(after)
    return True
