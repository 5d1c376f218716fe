"""Where unescaped characters lead in an automaton, and which numbers of them are legal, in machine code.

As in `kernels`, every function takes plain arrays, and numba is imported late.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.class_kernels import nodes_walked
from pipeline.decoding.kernels import fill_row

__all__ = ["APART", "easy_rows", "legal_lengths", "legal_reach", "unescaped_lengths", "unescaped_next"]

APART = -1
"""Where not all unescaped characters lead to the same state."""
_QUOTE, _BACKSLASH = 0x22, 0x5C
_SHAPES = (
    (0xC2, 0xDF, 0x80, 0xBF, 0),
    (0xE0, 0xE0, 0xA0, 0xBF, 1),
    (0xE1, 0xEC, 0x80, 0xBF, 1),
    (0xED, 0xED, 0x80, 0x9F, 1),
    (0xEE, 0xEF, 0x80, 0xBF, 1),
    (0xF0, 0xF0, 0x90, 0xBF, 2),
    (0xF1, 0xF3, 0x80, 0xBF, 2),
    (0xF4, 0xF4, 0x80, 0x8F, 2),
)
"""Characters of several bytes (Unicode 15, table 3-7): first byte, second byte, how many of 80 to BF follow."""


@numba.njit(cache=True)
def _is_unescaped(byte: int) -> Any:
    return 0x20 <= byte < 0x80 and byte != _QUOTE and byte != _BACKSLASH


@numba.njit(cache=True)
def _character_end(data: Array, start: int, stop: int) -> int:
    """Where the unescaped character that begins at `start` ends, or -1 where there is none."""
    first = data[start]
    if first < 0x80:
        return start + 1 if _is_unescaped(first) else -1
    for low, high, second_low, second_high, tail in _SHAPES:
        if low <= first <= high:
            end = start + 2 + tail
            if end > stop or not second_low <= data[start + 1] <= second_high:
                return -1
            for place in range(start + 2, end):
                if not 0x80 <= data[place] <= 0xBF:
                    return -1
            return end
    return -1


@numba.njit(cache=True)
def unescaped_lengths(data: Array, starts: Array) -> Array:
    """int32[n]: of how many characters each string is, where all are unescaped; else 0.

    `data` uint8 holds the strings one after the other, string i at `starts[i]:starts[i + 1]`.
    """
    lengths = np.zeros(len(starts) - 1, np.int32)
    for index in range(len(lengths)):
        place, stop, count = starts[index], starts[index + 1], 0
        while place < stop:
            place = _character_end(data, place, stop)
            if place < 0:
                count = 0
                break
            count += 1
        lengths[index] = count
    return lengths


@numba.njit(cache=True)
def _only_target(table: Array, class_of_byte: Array, state: int, low: int, high: int) -> Any:
    """Where all of the bytes low..high lead, or `APART`."""
    target = np.int64(table[state, class_of_byte[low]])
    for byte in range(low + 1, high + 1):
        if table[state, class_of_byte[byte]] != target:
            return APART
    return target


@numba.njit(cache=True)
def _all_lead(table: Array, class_of_byte: Array, state: int, low: int, high: int, tail: int, goal: int) -> bool:
    """Whether every byte low..high, and then `tail` bytes of 80 to BF, lead to `goal`."""
    for byte in range(low, high + 1):
        target = np.int64(table[state, class_of_byte[byte]])
        for _ in range(tail):
            if target != APART and target != len(table):
                target = _only_target(table, class_of_byte, target, 0x80, 0xBF)
        if target != goal:
            return False
    return True


@numba.njit(cache=True)
def _goal(table: Array, class_of_byte: Array, state: int) -> Any:
    dead = len(table)
    goal = np.int64(table[state, class_of_byte[0x20]])
    for byte in range(0x21, 0x80):
        if _is_unescaped(byte) and table[state, class_of_byte[byte]] != goal:
            return APART
    for low, high, second_low, second_high, tail in _SHAPES:
        for first in range(low, high + 1):
            target = table[state, class_of_byte[first]]
            if goal == dead:
                if target != dead:
                    return APART
            elif target == dead or not _all_lead(table, class_of_byte, target, second_low, second_high, tail, goal):
                return APART
    return goal


@numba.njit(cache=True)
def unescaped_next(table: Array, class_of_byte: Array) -> Array:
    """int32[n]: the state that every unescaped character leads to, the dead state where none is legal, or `APART`."""
    found = np.zeros(len(table), np.int32)
    for state in range(len(table)):
        found[state] = _goal(table, class_of_byte, state)
    return found


@numba.njit(cache=True)
def legal_lengths(onward: Array, state: int, cost: Array, gate: Array, limit: int, legal: Array) -> bool:
    """Which numbers of unescaped characters are legal from `state`, and cost at most `limit` tokens to close after.

    Args:
        onward: as `unescaped_next` gives it.
        cost: of closing, by state; as each state in `gate` must cost at most `limit` that is passed.  Only ends of
            characters are looked at: a text with a gate begins at its quote.
        legal: uint8[1 + most], set to 1 at each such number; zeroed by the caller.

    Returns:
        False where some unescaped characters lead elsewhere than others, so that numbers do not tell.
    """
    for count in range(1, len(legal)):
        state = onward[state]
        if state == APART:
            return False
        if state == len(onward):
            break
        if cost[state] <= limit:
            legal[count] = 1
        elif gate[state]:
            break
    return True


@numba.njit(cache=True)
def legal_reach(onward: Array, state: int, most: int) -> int:
    """How many unescaped characters are legal from `state`, `most` where more are, or `APART` as in `legal_lengths`."""
    for count in range(most):
        target = onward[state]
        if target == len(onward):
            return count
        if target == APART:
            return APART
        state = target
    return most


@numba.njit(cache=True)
def easy_rows(
    table: Array, class_of_byte: Array, onward: Array, states: Array, by_length: Array, rest: Any, whole: Any,
    most_nodes: int, rows: Array,
) -> Array:  # fmt: skip
    """Fills the rows uint32[k, W], zeroed by the caller, of those states whose ids are soon found.

    Args:
        states: int[k].
        by_length: `UnescapedIds.rows`.
        rest: `walked` of the trie of all other ids.
        whole: `walked` of the trie of all ids, walked where that takes fewer than `most_nodes` nodes.

    Returns:
        bool[k]: which were filled.
    """
    is_filled = np.zeros(len(states), np.bool_)
    for k in range(len(states)):
        state = states[k]
        reach = legal_reach(onward, state, len(by_length) - 1)
        if reach != APART:
            rows[k] = by_length[reach]
            fill_row(table, class_of_byte, state, rest[0], rest[1], rest[2], rest[3], rest[4], rows[k])
            is_filled[k] = True
        elif nodes_walked(table, class_of_byte, state, whole[0], whole[2]) < most_nodes:
            fill_row(table, class_of_byte, state, whole[0], whole[1], whole[2], whole[3], whole[4], rows[k])
            is_filled[k] = True
    return is_filled
