"""What closing costs from each state: the exact distance, and tokens kept back for fields that are still to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["Costs", "farthest"]


@dataclass(frozen=True, slots=True)
class Costs:
    """`cost` int32[n] of each state; `far` a list whose entry is at least the greatest cost of any id's next state.

    With r tokens left, every legal id can be afforded if `far[state] <= r - 1`: one comparison, and the plain row
    serves.
    """

    index: int
    cost: Array
    far: list[int]

    @classmethod
    def build(cls, arrays: Mapping[str, Array], max_token_bytes: int, reserve: tuple[int, ...], index: int) -> Costs:
        """The costs under `reserve` (tokens by field index; empty for the distance alone)."""
        cost = arrays["distance"].astype(np.int32)
        if not any(reserve):
            return cls(index, cost, arrays["far"].tolist())
        cost = cost + _kept_back(arrays, reserve)
        return cls(index, cost, farthest(arrays["edge_start"], arrays["edge_target"], cost, max_token_bytes).tolist())


def _kept_back(arrays: Mapping[str, Array], reserve: tuple[int, ...]) -> Array:
    """Reserves of the fields entered on the least way from each state to the end."""
    before = np.concatenate([[0], np.cumsum(np.array(reserve, np.int64))])
    following = arrays["following"]
    field = arrays["field_of_state"]
    kept = np.zeros(len(following), np.int32)
    for state in np.argsort(arrays["distance"], kind="stable").tolist():
        after = int(following[state])
        if after < 0:
            continue
        here, there = int(field[state]), int(field[after])
        entered = int(before[there + 1] - before[here + 1]) if there > here else 0
        kept[state] = kept[after] + entered
    return kept


def farthest(starts: Array, targets: Array, cost: Array, most_bytes: int) -> Array:
    """The greatest cost of any state within `most_bytes` bytes: no less than that of any id's next state."""
    far = np.full(len(cost), -1, np.int32)
    has_edges = starts[1:] > starts[:-1]
    if not has_edges.any():
        return far
    for _ in range(most_bytes):
        reached = np.maximum(cost, far)[targets]
        widened = far.copy()
        widened[has_edges] = np.maximum.reduceat(reached, starts[:-1][has_edges])
        if (widened == far).all():
            break
        far = widened
    return far
