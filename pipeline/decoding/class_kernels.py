"""Which states are alike, in machine code.

As in `kernels`, every function takes plain arrays, and numba is imported late.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["refined"]


@numba.njit(cache=True)
def refined(table: Array, starts: Array, sources: Array, weights: Array, rounds: int) -> Array:
    """Classes int64[n] of states that allow the same strings of at most `rounds` bytes (Moore's refinement).

    Only states that lead to one whose class was new in the round before can differ from the rest of their class, so
    that long chains cost a few states a round.  `starts`/`sources` are the edges reversed, `weights` odd uint64[width]:
    states are told apart by sums of hashes of 64 bits.
    """
    count, width = table.shape
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
    return classes


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
