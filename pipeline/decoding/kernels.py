"""The loops that need machine code: building the trie, walking it through an automaton, counting tokens to the end.

The only importer of numba.  Import it late: a vLLM CPU worker must register its own kernels first.  Every function
takes plain arrays; `table` is `[states, classes]` with the dead state named by its own row count.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import NEVER

__all__ = ["build_trie", "distances", "fill_row", "fill_span_row", "fill_tight_row", "span_costs"]

_QUOTE = 0x22
_BARRIER = 0xFF


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
