"""The keys of an object: which of its properties a key names, and which may still be named once part of it is written.

One automaton tells all keys of an object apart.  What may follow differs from place to place in the object, but only by
which properties are still allowed; so places share the rest of a key as soon as it decides alike for both.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.decoding.automata import Dfa
from pipeline.decoding.nfa import Nfa

__all__ = ["Keys"]


class Keys:
    """Keys as JSON strings, each with the number of the property that it names.

    Args:
        languages: disjoint; the keys of each property, or of each group of undeclared ones.

    Attributes:
        dfa: accepts every key; the tag of an accepting state is the number of the language.
        reachable: for each state of `dfa` the numbers that it can still lead to, as bits.
    """

    def __init__(self, languages: Sequence[Dfa]) -> None:
        self.dfa = _labelled(languages)
        self.reachable = _reachable(self.dfa)


def _labelled(languages: Sequence[Dfa]) -> Dfa:
    """The union of disjoint languages; the tag of an accepting state is the number of the language that it ends."""
    nfa = Nfa()
    start, end = nfa.state(), nfa.state()
    for number, language in enumerate(languages):
        ending = nfa.state(number)
        nfa.link(nfa.splice(start, language), ending)
        nfa.link(ending, end)
    return nfa.determinized(start, end)


def _reachable(dfa: Dfa) -> list[int]:
    found = [1 << tag if accepting else 0 for tag, accepting in zip(dfa.tags, dfa.accepting, strict=True)]
    is_changed = True
    while is_changed:
        is_changed = False
        for state in range(dfa.state_count - 1, -1, -1):
            bits = found[state]
            for _, _, target in dfa.edges[state]:
                bits |= found[target]
            if bits != found[state]:
                found[state] = bits
                is_changed = True
    return found
