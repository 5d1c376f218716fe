"""The least automaton, by either way to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding.automata import Dfa, _classes_from_ends, _refine
from pipeline.decoding.code_points import TOP
from pipeline.decoding.nfa import Nfa
from pipeline.decoding.regex import full_match
from pipeline.decoding.strings import any_string


def _partition(classes: list[int]) -> set[frozenset[int]]:
    return {frozenset(state for state, each in enumerate(classes) if each == one) for one in classes}


@given(texts=st.lists(st.text(alphabet="abc", max_size=5), min_size=1), tags=st.lists(st.integers(-1, 1), min_size=1))
def test_states_are_classed_from_the_ends_as_by_refinement(texts: list[str], tags: list[int]) -> None:
    """Fails when states are one that differ in what follows, in acceptance or in their tag."""
    nfa = Nfa()
    start, end = nfa.state(), nfa.state()
    for index, text in enumerate(texts):
        nfa.link(nfa.literal(start, map(ord, text), tags[index % len(tags)]), end)
    dfa = nfa.determinized(start, end)
    for automaton in (dfa, dfa.complement(ord("c")), dfa.complement(TOP)):
        classes = _classes_from_ends(automaton)
        assert classes is not None
        assert _partition(classes) == _partition(_refine(automaton))


def test_an_automaton_with_a_cycle_is_refined() -> None:
    dfa = full_match("(ab)*|(abab)*a")
    assert _classes_from_ends(dfa) is None
    assert dfa.minimized().state_count == dfa.state_count


def test_states_that_lead_to_themselves_and_to_each_other_are_one() -> None:
    """Fails when a state that leads to its like is not seen to go on as that does."""
    rows = (((97, 97, 2), (98, 98, 1)), ((97, 97, 1), (98, 98, 2)), ((97, 98, 2),))
    dfa = Dfa(rows, (True,) * 3, (-1,) * 3)
    assert _classes_from_ends(dfa) is not None
    assert dfa.minimized().state_count == 1


@pytest.mark.parametrize("most", [3, 3000])
def test_a_chain_keeps_its_states(most: int) -> None:
    assert any_string(1, most).minimized().state_count == most + 1
