"""The least automaton, by either way to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding.automata import _classes_from_ends, _refine
from pipeline.decoding.nfa import Nfa, union
from pipeline.decoding.strings import any_string, words


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
    classes = _classes_from_ends(dfa)
    assert classes is not None
    assert _partition(classes) == _partition(_refine(dfa))


def test_an_automaton_with_a_cycle_is_refined() -> None:
    dfa = union([any_string(2, None), words(["ab", "cb"])])
    assert _classes_from_ends(dfa) is None
    assert dfa.minimized().state_count == 3


@pytest.mark.parametrize("most", [3, 3000])
def test_a_chain_keeps_its_states(most: int) -> None:
    assert any_string(1, most).minimized().state_count == most + 1
