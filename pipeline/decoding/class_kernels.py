"""Which states are alike, and mask rows that are made of those of states nearly alike, in machine code.

As in `kernels`, every function takes plain arrays, and numba is imported late.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["fill_row_beside", "hashes_of", "mark_legal", "nearest_row", "nodes_walked", "refined", "rows_of_marks"]


@numba.njit(cache=True)
def refined(table: Array, starts: Array, sources: Array, weights: Array, rounds: int) -> tuple[Array, Array, Array]:
    """Classes of states that allow the same strings of at most `rounds` bytes (Moore's refinement).

    Only states that lead to one whose class was new in the round before can differ from the rest of their class, so
    that long chains cost a few states a round.  `starts`/`sources` are the edges reversed, `weights` odd uint64[width]:
    states are told apart by sums of hashes of 64 bits.

    Returns:
        classes int64[n]; for each class the one that it parted from, int64[k] (-1 for class 0), and the length of the
        shortest strings that tell it from that one, int64[k].  A class has a larger number than that it parted from.
    """
    count, width = table.shape
    parents = np.full(count + 1, -1, np.int64)
    lengths = np.zeros(count + 1, np.int64)
    classes = np.zeros(count, np.int64)
    sizes = np.zeros(count + 1, np.int64)
    sizes[0] = count
    names = 1
    hashes = np.zeros(count + 1, np.uint64)
    hashes[:count] = _mixed(np.uint64(1))
    touched = np.arange(count)
    stamp = np.full(count, -1, np.int64)
    for turn in range(rounds):
        signatures = np.zeros(len(touched), np.uint64)
        for k in range(len(touched)):
            total = np.uint64(classes[touched[k]]) * np.uint64(0x9E3779B97F4A7C15)
            for column in range(width):
                total += hashes[table[touched[k], column]] * weights[column]
            signatures[k] = _mixed(total)
        order = np.argsort(signatures)
        # A class all of whose states were touched keeps its name for its largest group; others stay with their class.
        share = np.zeros(names, np.int64)
        for k in range(len(touched)):
            share[classes[touched[k]]] += 1
        largest = np.zeros(names, np.int64)
        keeper = np.full(names, -1, np.int64)
        begin = 0
        while begin < len(order):
            end = _group_end(signatures, order, begin)
            name = classes[touched[order[begin]]]
            if share[name] == sizes[name] and end - begin > largest[name]:
                largest[name], keeper[name] = end - begin, begin
            begin = end
        changed = np.zeros(len(touched), np.int64)
        changed_count = 0
        begin = 0
        while begin < len(order):
            end = _group_end(signatures, order, begin)
            name = classes[touched[order[begin]]]
            if keeper[name] != begin:
                for k in range(begin, end):
                    classes[touched[order[k]]] = names
                    changed[changed_count] = touched[order[k]]
                    changed_count += 1
                sizes[name] -= end - begin
                sizes[names] = end - begin
                parents[names], lengths[names] = name, turn + 1
                names += 1
            begin = end
        for k in range(changed_count):
            hashes[changed[k]] = _mixed(np.uint64(classes[changed[k]] + 1))
        touched_count = 0
        touched = np.zeros(count, np.int64)
        for k in range(changed_count):
            for edge in range(starts[changed[k]], starts[changed[k] + 1]):
                source = sources[edge]
                if stamp[source] != turn:
                    stamp[source] = turn
                    touched[touched_count] = source
                    touched_count += 1
        touched = touched[:touched_count]
        if touched_count == 0:
            break
    return classes, parents[:names].copy(), lengths[:names].copy()


@numba.njit(cache=True)
def _group_end(signatures: Array, order: Array, begin: int) -> int:
    end = begin + 1
    while end < len(order) and signatures[order[end]] == signatures[order[begin]]:
        end += 1
    return end


@numba.njit(cache=True)
def _mixed(value: Any) -> Any:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014), so that sums of classes do not cancel."""
    mixed = value * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@numba.njit(cache=True)
def _telling(one: int, other: int, parents: Array, lengths: Array) -> int:
    """Length of the shortest strings that tell two classes apart; more than a token has where none do."""
    length = 256
    while one != other:
        if one < other:
            one, other = other, one
        length = lengths[one]
        one = parents[one]
    return length


@numba.njit(cache=True)
def nodes_walked(table: Array, class_of_byte: Array, state: int, byte: Array, after: Array) -> int:
    """Nodes of the trie under first bytes that are legal in `state`."""
    total = node = 0
    while node < len(byte):
        if table[state, class_of_byte[byte[node]]] != len(table):
            total += after[node] - node
        node = after[node]
    return total


@numba.njit(cache=True)
def nearest_row(
    table: Array, class_of_byte: Array, classes: Array, parents: Array, lengths: Array, state: int, others: Array,
    byte: Array, after: Array, height: Array, reaching: Array, share: int,
) -> int:  # fmt: skip
    """Of the states `others` one whose row differs from that of `state` by little.

    Returns:
        its place in `others`, -1 where finding the differences may take more than one part in `share` of the walk that
        makes the row by itself.
    """
    dead = table.shape[0]
    whole = nodes_walked(table, class_of_byte, state, byte, after)
    for k in range(len(others)):
        walked = reaching[_telling(classes[state], classes[others[k]], parents, lengths)]
        total = node = 0
        while node < len(byte) and total < walked:
            kind = class_of_byte[byte[node]]
            ours, theirs = table[state, kind], table[others[k], kind]
            if ours != theirs:
                is_told = ours == dead or theirs == dead
                if is_told or _telling(classes[ours], classes[theirs], parents, lengths) <= height[node]:
                    total += after[node] - node
            node = after[node]
        if min(walked, total) < whole // share:
            return k
    return -1


@numba.njit(cache=True)
def mark_legal(
    steps: Array, dead: int, class_of_byte: Array, lanes: Array, byte: Array, depth: Array, after: Array, marks: Array
) -> None:
    """Marks uint8[N + 1] nodes by which of eight states they are legal in, one bit a state.

    Eight states take a third of the time of eight walks, since none waits for the others.

    Args:
        steps: int32[(states + 1) * classes], where each class of bytes leads; states are named by where their row
            begins.
        dead: the dead state, which leads to itself.
        lanes: int32[8], states.
        marks: zeroed by the caller.
    """
    states = np.full((258, 8), dead, np.int32)
    for lane in range(8):
        states[0, lane] = lanes[lane]
    node = 0
    while node < len(byte):
        level = depth[node]
        kind = np.int32(class_of_byte[byte[node]])
        found = np.int32(0)
        for lane in range(8):
            target = steps[states[level - 1, lane] + kind]
            states[level, lane] = target
            found |= np.int32(target != dead) << lane
        marks[node] = found
        node = node + 1 if found else after[node]


@numba.njit(cache=True)
def rows_of_marks(marks: Array, node_of_id: Array, rows: Array) -> None:
    """Turns marks into rows uint32[8, W]; `node_of_id` is int32[32 W], N where no string ends."""
    for word in range(rows.shape[1]):
        for lane in range(8):
            rows[lane, word] = 0
        for bit in range(32):
            found = np.uint32(marks[node_of_id[word * 32 + bit]])
            for lane in range(8):
                rows[lane, word] |= ((found >> np.uint32(lane)) & np.uint32(1)) << np.uint32(bit)


@numba.njit(cache=True)
def hashes_of(rows: Array) -> Array:
    """uint64[k] of rows uint32[k, W]: equal rows have equal ones, and a thousand others collide with odds of 2^-44."""
    found = np.zeros(len(rows), np.uint64)
    for k in range(len(rows)):
        # Four sums, so that no product waits for the one before it.
        a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
        factor = np.uint64(0x9E3779B97F4A7C15)
        whole = rows.shape[1] // 4 * 4
        for word in range(0, whole, 4):
            a = (a ^ np.uint64(rows[k, word])) * factor
            b = (b ^ np.uint64(rows[k, word + 1])) * factor
            c = (c ^ np.uint64(rows[k, word + 2])) * factor
            d = (d ^ np.uint64(rows[k, word + 3])) * factor
            a, b, c, d = a ^ a >> np.uint64(29), b ^ b >> np.uint64(29), c ^ c >> np.uint64(29), d ^ d >> np.uint64(29)
        for word in range(whole, rows.shape[1]):
            a = _mixed(a ^ np.uint64(rows[k, word]))
        found[k] = _mixed(_mixed(_mixed(_mixed(a) ^ b) ^ c) ^ d)
    return found


@numba.njit(cache=True)
def fill_row_beside(
    table: Array, class_of_byte: Array, classes: Array, parents: Array, lengths: Array, state: int, kin: int,
    byte: Array, depth: Array, after: Array, height: Array, first: Array, ids: Array, words: Array,
) -> None:  # fmt: skip
    """Makes the row of `kin`, which `words` uint32[W] holds, that of `state`, by the ids where the two differ.

    Subtrees whose strings are too short to tell the two states apart are left out.
    """
    dead = table.shape[0]
    ours, theirs = np.full(258, dead, np.int64), np.full(258, dead, np.int64)
    telling = np.zeros(258, np.int64)
    ours[0], theirs[0] = state, kin
    telling[0] = _telling(classes[state], classes[kin], parents, lengths)
    node = 0
    while node < len(byte):
        level = depth[node]
        if telling[level - 1] > height[node] + 1:
            node = after[node]
            continue
        kind = class_of_byte[byte[node]]
        ours[level] = dead if ours[level - 1] == dead else table[ours[level - 1], kind]
        theirs[level] = dead if theirs[level - 1] == dead else table[theirs[level - 1], kind]
        if ours[level] == theirs[level]:
            node = after[node]
        elif ours[level] == dead:
            for k in range(first[node], first[after[node]]):
                words[ids[k] >> 5] &= ~(np.uint32(1) << np.uint32(ids[k] & 31))
            node = after[node]
        elif theirs[level] == dead:
            telling[level] = 0
            for k in range(first[node], first[node + 1]):
                words[ids[k] >> 5] |= np.uint32(1) << np.uint32(ids[k] & 31)
            node += 1
        else:
            telling[level] = _telling(classes[ours[level]], classes[theirs[level]], parents, lengths)
            node += 1
