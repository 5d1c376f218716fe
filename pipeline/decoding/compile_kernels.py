"""The loops of compiling that need machine code: building the trie, counting tokens to the end.

As in `kernels`, every function takes plain arrays, and numba is imported late.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import NEVER

__all__ = ["build_trie", "distances"]

_QUOTE = 0x22


@numba.njit(cache=True)
def build_trie(data: Array, offsets: Array, token_ids: Array) -> tuple[Array, ...]:
    """The trie of sorted byte strings; see `vocabulary.Trie` for what comes back."""
    count = len(offsets) - 1
    total = len(data)
    byte = np.zeros(total, np.uint8)
    depth = np.zeros(total, np.uint8)
    after = np.zeros(total, np.int32)
    height = np.zeros(total, np.uint8)
    has_quote = np.zeros(total, np.uint8)
    ends = np.zeros(count, np.int32)
    stack = np.zeros(257, np.int32)
    nodes = 0
    open_depth = 0
    for token in range(count):
        start, stop = offsets[token], offsets[token + 1]
        common = 0
        if token > 0:
            before, before_stop = offsets[token - 1], offsets[token]
            while (
                common < stop - start
                and common < before_stop - before
                and data[start + common] == data[before + common]
            ):
                common += 1
        while open_depth > common:
            open_depth -= 1
            after[stack[open_depth]] = nodes
        for position in range(common, stop - start):
            byte[nodes] = data[start + position]
            depth[nodes] = position + 1
            stack[open_depth] = nodes
            open_depth += 1
            nodes += 1
        ends[token] = ends[token - 1] if common == stop - start else nodes - 1
    while open_depth > 0:
        open_depth -= 1
        after[stack[open_depth]] = nodes
    for node in range(nodes - 1, -1, -1):
        child = node + 1
        while child < after[node]:
            height[node] = max(height[node], height[child] + 1)
            if has_quote[child] or byte[child] == _QUOTE:
                has_quote[node] = 1
            child = after[child]
    # Sorted strings end at nodes in preorder, so that one pass counts the ids that stand before each node.
    first = np.zeros(nodes + 1, np.int32)
    token = 0
    for node in range(nodes + 1):
        while token < count and ends[token] < node:
            token += 1
        first[node] = token
    return (
        byte[:nodes].copy(),
        depth[:nodes].copy(),
        after[:nodes].copy(),
        height[:nodes].copy(),
        has_quote[:nodes].copy(),
        first,
        token_ids,
    )


@numba.njit(cache=True)
def _flood(
    starts: Array, sources: Array, goals: Array, goal_count: int, most: int, reach: Array, touched: Array
) -> int:
    """Bytes from each state to the nearest goal, up to `most`, against the edges; how many states were reached."""
    size = 0
    for k in range(goal_count):
        reach[goals[k]] = 0
        touched[size] = goals[k]
        size += 1
    at = 0
    while at < size:
        state = touched[at]
        at += 1
        if reach[state] >= most:
            continue
        for k in range(starts[state], starts[state + 1]):
            source = sources[k]
            if reach[source] > most:
                reach[source] = reach[state] + 1
                touched[size] = source
                size += 1
    return size


@numba.njit(cache=True)
def _finds(
    table: Array,
    class_of_byte: Array,
    state: int,
    reach: Array,
    plain_reach: Array,
    byte: Array,
    depth: Array,
    after: Array,
    height: Array,
    has_quote: Array,
    first: Array,
    states: Array,
) -> Any:
    """A state with `reach` 0 that one token leads to, or -1.  Subtrees that cannot hold one are skipped."""
    dead = table.shape[0]
    states[0] = state
    node = 0
    count = len(byte)
    while node < count:
        level = depth[node]
        target = table[states[level - 1], class_of_byte[byte[node]]]
        if target == dead:
            node = after[node]
            continue
        if reach[target] == 0 and first[node + 1] > first[node]:
            return target
        if reach[target] > height[node] or (has_quote[node] == 0 and plain_reach[target] > height[node]):
            node = after[node]
            continue
        states[level] = target
        node += 1
    return -1


@numba.njit(cache=True)
def distances(
    table: Array,
    class_of_byte: Array,
    accepting: Array,
    starts: Array,
    sources: Array,
    plain_starts: Array,
    plain_sources: Array,
    most_bytes: int,
    byte: Array,
    depth: Array,
    after: Array,
    height: Array,
    has_quote: Array,
    first: Array,
) -> tuple[Array, Array]:
    """The least number of tokens from each state to acceptance, and a next state on such a way.

    Exact: breadth-first by tokens from the accepting states backwards.  `starts`/`sources` are the automaton's edges
    reversed, in compressed rows; the `plain_` ones leave out edges on `"`.
    """
    count = table.shape[0]
    distance = np.full(count, NEVER, np.uint16)
    following = np.full(count, -1, np.int32)
    reach = np.full(count, most_bytes + 1, np.int64)
    plain_reach = np.full(count, most_bytes + 1, np.int64)
    touched = np.zeros(count + 1, np.int64)
    plain_touched = np.zeros(count + 1, np.int64)
    goals = np.zeros(count, np.int64)
    found = np.zeros(count, np.int64)
    states = np.zeros(258, np.int64)
    goal_count = 0
    for state in range(count):
        if accepting[state]:
            distance[state] = 0
            goals[goal_count] = state
            goal_count += 1
    level = 0
    while goal_count > 0:
        size = _flood(starts, sources, goals, goal_count, most_bytes, reach, touched)
        plain_size = _flood(plain_starts, plain_sources, goals, goal_count, most_bytes, plain_reach, plain_touched)
        found_count = 0
        for k in range(size):
            state = touched[k]
            if distance[state] != NEVER:
                continue
            target = _finds(
                table, class_of_byte, state, reach, plain_reach, byte, depth, after, height, has_quote, first, states
            )
            if target >= 0:
                following[state] = target
                found[found_count] = state
                found_count += 1
        for k in range(size):
            reach[touched[k]] = most_bytes + 1
        for k in range(plain_size):
            plain_reach[plain_touched[k]] = most_bytes + 1
        level += 1
        for k in range(found_count):
            distance[found[k]] = level
            goals[k] = found[k]
        goal_count = found_count
    return distance, following
