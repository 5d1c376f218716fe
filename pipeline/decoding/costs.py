"""What closing costs from each state: the exact distance, and tokens kept back for fields that are still to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["NEVER", "Costs", "farthest", "through_holes"]

NEVER = 65535
"""The distance of a state from which no sequence of tokens reaches acceptance."""


@dataclass(frozen=True, slots=True)
class Costs:
    """`cost` int32[n] of each state; `far` a list whose entry is at least the greatest cost of any id's next state.

    With r tokens left, every legal id can be afforded if `far[state] <= r - 1`: one comparison, and the plain row
    serves.
    """

    index: int
    cost: Array
    far: list[int]
    gives_way: bool = False
    """Whether the costs are more than closing needs, so that they are set aside where they would forbid everything."""

    @classmethod
    def build(cls, arrays: Mapping[str, Array], max_token_bytes: int, reserve: tuple[int, ...], index: int) -> Costs:
        """The costs under `reserve` (tokens by field index; empty for the distance alone).

        With extractive fields the distance takes one token for each; `for_document` knows better.
        """
        cost = arrays["distance"].astype(np.int32)
        if not any(reserve):
            return cls(index, cost, arrays["far"].tolist())
        cost = cost + _kept_back(arrays, reserve)
        far = farthest(arrays["edge_start"], arrays["edge_target"], cost, max_token_bytes)
        return cls(index, cost, far.tolist(), gives_way=True)

    @classmethod
    def for_document(
        cls, arrays: Mapping[str, Array], max_token_bytes: int, least: tuple[int, ...], index: int
    ) -> Costs:
        """The costs where the document's content takes at least `least[k]` tokens for kind k (`NEVER`: it has none)."""
        holes = arrays["holes"]
        content = np.array(least, np.int64)[holes[:, 1]]
        whole = through_holes(arrays["direct_distance"], arrays["hole_distance"], holes, content).astype(np.int32)
        return cls(index, whole, farthest(arrays["edge_start"], arrays["edge_target"], whole, max_token_bytes).tolist())


def through_holes(direct: Array, to_hole: Array, holes: Array, content: Array) -> Array:
    """Tokens from each state to acceptance, by ways through places that the document fills.

    Args:
        direct: uint16[n], by ways through none of them.
        to_hole: uint16[H, n], to each such place.
        holes: int32[H, 3], state, kind, state after.
        content: int64[H], tokens that the content of each takes.

    Returns:
        int64[n]; `NEVER` or more where there is no way.
    """
    reach = np.where(to_hole == NEVER, 1 << 20, to_hole.astype(np.int64))
    plain = np.where(direct == NEVER, 1 << 20, direct.astype(np.int64))
    if not len(holes):
        return np.asarray(np.minimum(plain, NEVER))
    after = holes[:, 2]
    from_hole = content + plain[after]
    for _ in range(len(holes)):
        shorter = np.minimum(from_hole, content + (reach[:, after] + from_hole[:, None]).min(axis=0))
        if (shorter == from_hole).all():
            break
        from_hole = shorter
    through = np.minimum(plain, (reach + from_hole[:, None]).min(axis=0))
    return np.asarray(np.minimum(through, NEVER))


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
