"""The loops that compile a guide, against what they say they count, on automata drawn at random, cycles included."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import Vocabulary
from pipeline.decoding import rows as rows_module
from pipeline.decoding.costs import NEVER
from pipeline.decoding.rows import StateClasses, mask_rows
from pipeline.decoding.tables import _Ways
from pipeline.decoding.unescaped_kernels import unescaped_next

QUOTE = 0x22
TOKENS = (b"a", b"b", b'"', b"aa", b"ab", b'a"', b'"b', b"aba", b'b"ab', b"bbbb", b"b" * 9)
VOCABULARY = Vocabulary((*TOKENS, None), {len(TOKENS)})
LETTERS = (ord("a"), ord("b"), QUOTE)


@st.composite
def automata(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table of states and three byte classes, the class of each byte, and which states accept.

    From each state there is a way to the next one, so that some are as far apart as a token is long.
    """
    count = draw(st.integers(1, 14))
    row = st.lists(st.sampled_from([*range(count), *[count] * count]), min_size=3, max_size=3)
    table = np.array([[*draw(row), count] for _ in range(count)], np.uint16)
    for state in range(count):
        table[state, draw(st.sampled_from([0, 1, 1, 2]))] = state + 1
    class_of_byte = np.full(256, 3, np.uint8)
    class_of_byte[list(LETTERS)] = range(3)
    accepting = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.uint8)
    return table, class_of_byte, accepting


def _after(table: np.ndarray, class_of_byte: np.ndarray, state: int, text: bytes) -> int:
    for byte in text:
        if state == len(table):
            break
        state = int(table[state, class_of_byte[byte]])
    return state


@given(automata())
def test_distances_are_the_least_numbers_of_tokens(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Fails when a way is left out for being no nearer than it is, as when states on a cycle are gone over once."""
    table, class_of_byte, accepting = drawn
    count = len(table)
    least = np.where(accepting, 0, NEVER)
    for _ in range(count):
        for state in range(count):
            targets = [_after(table, class_of_byte, state, token) for token in TOKENS]
            reached = [least[target] + 1 for target in targets if target < count and least[target] < NEVER]
            least[state] = min([least[state], *reached])
    assert _Ways(table, class_of_byte, VOCABULARY).to(accepting).tolist() == least.tolist()


@given(automata(), st.integers(1, 9))
def test_states_are_of_one_class_when_they_allow_the_same_strings_so_far(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray], rounds: int
) -> None:
    """Fails when a state whose successor's class changed is not looked at again."""
    table, _, accepting = drawn
    count = len(table)
    names = [*([0] * count), -1]
    for _ in range(rounds):
        seen: dict[tuple[int, ...], int] = {}
        names = [*(seen.setdefault(tuple(names[t] for t in row), len(seen)) for row in table.tolist()), -1]
    wanted = [(names[state], accepting[state]) for state in range(count)]
    found, samples = StateClasses(table, rounds).split_by(accepting)
    pairs = set(zip(found.tolist(), wanted, strict=True))
    assert len(pairs) == len({name for name, _ in pairs}) == len({name for _, name in pairs}) == len(samples)
    assert found[samples].tolist() == list(range(len(samples)))


@given(automata(), st.sampled_from([(1_000, 8), (0, 8), (0, 1)]))
def test_rows_hold_the_legal_ids(drawn: tuple[np.ndarray, np.ndarray, np.ndarray], how: tuple[int, int]) -> None:
    """Fails when a subtree is left out though it tells two states apart, or when two lanes are mixed up."""
    table, class_of_byte, accepting = drawn
    with mock.patch.multiple(rows_module, _SHORT_WALK=how[0], _BESIDE_SHARE=how[1]):
        row_of_state, rows = mask_rows(
            table, class_of_byte, accepting, unescaped_next(table, class_of_byte), VOCABULARY
        )
    for state in range(len(table)):
        legal = [_after(table, class_of_byte, state, token) < len(table) for token in TOKENS]
        row = rows[row_of_state[state]]
        found = [bool(row[index >> 5] >> (index & 31) & 1) for index in range(VOCABULARY.size)]
        assert found == [*legal, accepting[state]]
