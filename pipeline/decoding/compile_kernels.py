"""The loops of compiling that need machine code: building the trie, counting tokens to the end.

As in `kernels`, every function takes plain arrays, and numba is imported late.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import numba
import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import NEVER

__all__ = ["build_trie", "distances"]

_QUOTE = 0x22


@numba.njit(cache=True)
def build_trie(data: Array, offsets: Array, token_ids: Array) -> tuple[Array, ...]:
    """The trie of sorted byte strings; see `trie.Trie` for what comes back."""
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
def _components(starts: Array, targets: Array) -> tuple[Array, Array]:
    """Strongly connected components (Tarjan 1972), those that lead nowhere else first.

    Returns:
        members: every state, component after component, within one in the order in which the search left them.
        bounds: where in `members` each component begins, and their number of states at the end.
    """
    count = len(starts) - 1
    members = np.zeros(count, np.int64)
    bounds = np.zeros(count + 1, np.int64)
    found = np.full(count, -1, np.int64)
    lowest = np.zeros(count, np.int64)
    is_placed = np.zeros(count, np.bool_)
    left = np.zeros(count, np.int64)
    left_before = np.zeros(count, np.int64)
    position = np.zeros(count, np.int64)
    path = np.zeros(count, np.int64)
    placed = components = clock = waiting = 0
    for root in range(count):
        if found[root] >= 0:
            continue
        path[0] = root
        size = 1
        while size > 0:
            state = path[size - 1]
            if found[state] < 0:
                found[state] = lowest[state] = clock
                clock += 1
                position[state] = starts[state]
                left_before[state] = waiting
            if position[state] < starts[state + 1]:
                target = targets[position[state]]
                position[state] += 1
                if found[target] < 0:
                    path[size] = target
                    size += 1
                elif not is_placed[target]:
                    lowest[state] = min(lowest[state], found[target])
                continue
            size -= 1
            left[waiting] = state
            waiting += 1
            if size > 0:
                lowest[path[size - 1]] = min(lowest[path[size - 1]], lowest[state])
            if lowest[state] == found[state]:
                for k in range(left_before[state], waiting):
                    members[placed] = left[k]
                    is_placed[left[k]] = True
                    placed += 1
                waiting = left_before[state]
                components += 1
                bounds[components] = placed
    return members, bounds[: components + 1].copy()


@numba.njit(cache=True)
def _note_nearby(
    members: Array, first: int, last: int, distance: Array, starts: Array, targets: Array, nearby: Array
) -> None:
    """Sets `nearby[s, h]` of a component's states: the least distance among the states at most h bytes after s."""
    for k in range(first, last):
        nearby[members[k], :] = distance[members[k]]
    if last - first == 1:
        state = members[first]
        for edge in range(starts[state], starts[state + 1]):
            if targets[edge] != state:
                for h in range(1, nearby.shape[1]):
                    nearby[state, h] = min(nearby[state, h], nearby[targets[edge], h - 1])
        return
    for h in range(1, nearby.shape[1]):
        for k in range(first, last):
            state = members[k]
            for edge in range(starts[state], starts[state + 1]):
                nearby[state, h] = min(nearby[state, h], nearby[targets[edge], h - 1])


@numba.njit(cache=True)
def _nearest(
    table: Array,
    class_of_byte: Array,
    state: int,
    known: int,
    distance: Array,
    nearby: Array,
    plain_nearby: Array,
    byte: Array,
    depth: Array,
    after: Array,
    height: Array,
    has_quote: Array,
    first: Array,
    states: Array,
) -> int:
    """The least distance of a state that one token leads to, where it is below `known`; else `known`."""
    dead = table.shape[0]
    states[0] = state
    best = known
    least = int(nearby[state, nearby.shape[1] - 1])
    node = 0
    count = len(byte)
    while node < count:
        level = depth[node]
        target = table[states[level - 1], class_of_byte[byte[node]]]
        if target == dead:
            node = after[node]
            continue
        if distance[target] < best and first[node + 1] > first[node]:
            best = int(distance[target])
            if best <= least:
                break
        below = height[node]
        if below == 0 or (nearby if has_quote[node] else plain_nearby)[target, below] >= best:
            node = after[node]
            continue
        states[level] = target
        node += 1
    return best


@numba.njit(cache=True)
def distances(
    table: Array,
    class_of_byte: Array,
    accepting: Array,
    starts: Array,
    targets: Array,
    plain_starts: Array,
    plain_targets: Array,
    most_bytes: int,
    byte: Array,
    depth: Array,
    after: Array,
    height: Array,
    has_quote: Array,
    first: Array,
) -> Array:
    """The least number of tokens from each state to acceptance.

    Exact: a state is settled after all that it leads to, by a walk of the trie that leaves out what cannot lead
    anywhere nearer than what was found already (branch and bound); the states of a cycle are gone over until none
    changes (Bellman 1958).  `starts`/`targets` are the automaton's edges in compressed rows; the `plain_` ones leave
    out edges on `"`.
    """
    count = table.shape[0]
    distance = np.full(count, NEVER, np.uint16)
    nearby = np.full((count, most_bytes + 1), NEVER, np.uint16)
    plain_nearby = np.full((count, most_bytes + 1), NEVER, np.uint16)
    states = np.zeros(258, np.int64)
    members, bounds = _components(starts, targets)
    for component in range(len(bounds) - 1):
        start, stop = bounds[component], bounds[component + 1]
        for k in range(start, stop):
            if accepting[members[k]]:
                distance[members[k]] = 0
        is_changed = True
        while is_changed:
            _note_nearby(members, start, stop, distance, starts, targets, nearby)
            _note_nearby(members, start, stop, distance, plain_starts, plain_targets, plain_nearby)
            is_changed = False
            for k in range(start, stop):
                state = members[k]
                known = int(distance[state]) - 1
                best = _nearest(
                    table, class_of_byte, state, known, distance, nearby, plain_nearby,
                    byte, depth, after, height, has_quote, first, states,
                )  # fmt: skip
                if best < known:
                    distance[state] = best + 1
                    is_changed = True
            if stop - start == 1:
                state = members[start]
                nearby[state] = np.minimum(nearby[state], distance[state])
                plain_nearby[state] = np.minimum(plain_nearby[state], distance[state])
                break
    return distance
