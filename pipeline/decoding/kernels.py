"""Loops that need machine code while an engine decodes: rows of masks, what a document's content costs, masked logits.

This module and those named after it alone import numba.  Import them late: a vLLM CPU worker must register its own
kernels first.  Every function takes plain arrays; `table` is `[states, classes]` with the dead state named by its own
row count.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import NEVER

__all__ = ["fill_row", "fill_span_row", "fill_tight_row", "forbid_ids", "span_costs"]

_BARRIER = 0xFF
_ALL_LEGAL = 0xFFFFFFFF
_WORD_BITS = 32


@numba.njit(cache=True)
def fill_row(
    table: Array,
    class_of_byte: Array,
    state: int,
    byte: Array,
    depth: Array,
    after: Array,
    first: Array,
    ids: Array,
    words: Array,
) -> None:
    """Sets the bit of each id that is legal in `state`; `words` is uint32[W], zeroed by the caller."""
    dead = table.shape[0]
    states = np.zeros(258, np.int64)
    states[0] = state
    node = 0
    count = len(byte)
    while node < count:
        level = depth[node]
        target = table[states[level - 1], class_of_byte[byte[node]]]
        if target == dead:
            node = after[node]
            continue
        states[level] = target
        for k in range(first[node], first[node + 1]):
            index = ids[k]
            words[index >> 5] |= np.uint32(1) << np.uint32(index & 31)
        node += 1


@numba.njit(cache=True)
def fill_tight_row(
    table: Array,
    class_of_byte: Array,
    state: int,
    cost: Array,
    gate: Array,
    limit: int,
    byte: Array,
    depth: Array,
    after: Array,
    first: Array,
    ids: Array,
    words: Array,
) -> None:
    """As `fill_row`, for ids whose next state costs at most `limit` tokens to close, as each state in `gate` must
    that they pass."""
    dead = table.shape[0]
    states = np.zeros(258, np.int64)
    states[0] = state
    node = 0
    count = len(byte)
    while node < count:
        level = depth[node]
        target = table[states[level - 1], class_of_byte[byte[node]]]
        if target == dead:
            node = after[node]
            continue
        states[level] = target
        if cost[target] <= limit:
            for k in range(first[node], first[node + 1]):
                index = ids[k]
                words[index >> 5] |= np.uint32(1) << np.uint32(index & 31)
        elif gate[target]:
            node = after[node]
            continue
        node += 1


@numba.njit(cache=True)
def _child(node: int, byte: int, roots: Array, bytes_: Array, after: Array) -> Any:
    """The child of a trie node (-1: the root) for a byte, or -1."""
    if node < 0:
        return roots[byte]
    child = node + 1
    while child < after[node]:
        if bytes_[child] == byte:
            return child
        if bytes_[child] > byte:
            return -1
        child = after[child]
    return -1


@numba.njit(cache=True)
def span_costs(buffer: Array, is_end: Array, roots: Array, byte: Array, after: Array, first: Array) -> Any:
    """For each position of a buffer the nearest end at or after it and the ids that spell the stretch up to it.

    Returns:
        nearest int32[N + 1] (-1: none before the next barrier); cost uint16[N + 1] of the stretch; first_cost
        uint16[N + 1], of a stretch that starts here and holds something.
    """
    count = len(buffer)
    nearest = np.full(count + 1, -1, np.int32)
    cost = np.full(count + 1, NEVER, np.uint16)
    first_cost = np.full(count + 1, NEVER, np.uint16)
    for position in range(count, -1, -1):
        if position < count and buffer[position] != _BARRIER:
            goal = nearest[position + 1]
            node = -1
            best = NEVER
            for end in range(position + 1, goal + 1):
                node = _child(node, buffer[end - 1], roots, byte, after)
                if node < 0:
                    break
                if first[node + 1] > first[node] and nearest[end] == goal and cost[end] + 1 < best:
                    best = cost[end] + 1
            first_cost[position] = best
            nearest[position] = goal
            cost[position] = best
        if is_end[position]:
            nearest[position] = position
            cost[position] = 0
    return nearest, cost, first_cost


@numba.njit(cache=True)
def fill_span_row(
    buffer: Array,
    positions: Array,
    lasts: Array,
    nearest: Array,
    cost: Array,
    base: int,
    limit: int,
    roots: Array,
    byte: Array,
    after: Array,
    first: Array,
    ids: Array,
    words: Array,
) -> None:
    """Sets the bit of each id that goes on along the buffer from any position, and can still be closed in `limit`."""
    count = len(buffer)
    for k in range(len(positions)):
        node = -1
        for end in range(positions[k] + 1, min(lasts[k], count) + 1):
            node = _child(node, buffer[end - 1], roots, byte, after)
            if node < 0:
                break
            if first[node + 1] == first[node]:
                continue
            if nearest[end] < 0 or nearest[end] > lasts[k] or cost[end] + base > limit:
                continue
            for j in range(first[node], first[node + 1]):
                index = ids[j]
                words[index >> 5] |= np.uint32(1) << np.uint32(index & 31)


@numba.njit(cache=True)
def forbid_ids(masks: Array, rows: Array, logits: Array, minus_infinity: int) -> None:
    """Writes `minus_infinity` for each id whose bit is 0; words of ids that are all legal, or all not, go as one.

    Args:
        masks: uint32[m, W], the lowest bit first; bits beyond the last id do not count.
        rows: int64[m], for each mask the row of logits that it is for, or -1 for none.
        logits: [n, ids], W words at most, as unsigned integers of their width.
        minus_infinity: as such an integer.
    """
    count = logits.shape[1]
    for m in range(len(rows)):
        if rows[m] < 0:
            continue
        row = logits[rows[m]]
        for w in range((count + _WORD_BITS - 1) // _WORD_BITS):
            word = masks[m, w]
            if word == _ALL_LEGAL:
                continue
            first = w * _WORD_BITS
            last = min(first + _WORD_BITS, count)
            if word == 0:
                row[first:last] = minus_infinity
                continue
            for index in range(first, last):
                if not (word >> np.uint32(index - first)) & np.uint32(1):
                    row[index] = minus_infinity
