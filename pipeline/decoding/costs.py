"""What closing costs from each state: the exact distance, and tokens kept back for fields that are still to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["NEVER", "TEXT_TOKENS", "Costs", "farthest", "kept_back", "optional_text", "through_holes"]

NEVER = 65535
"""The distance of a state from which no sequence of tokens reaches acceptance."""
TEXT_TOKENS = 4
"""A text that could be null begins where the budget leaves it so many tokens; with fewer it would say nothing."""
_FREE_TEXT_BYTES = 64
"""A string whose first character may be so many bytes is free text; an enum's is not."""


@dataclass(frozen=True, slots=True)
class Costs:
    """`cost` int32[n] of each state; `far` a list whose entry is at least the greatest cost of any id's next state.

    With r tokens left, every legal id can be afforded if `far[state] <= r - 1`: one comparison, and the plain row
    serves.
    """

    index: int
    cost: Array
    far: list[int]
    most: int
    """The greatest cost of a state that can be closed: a greater limit allows no more."""
    entry: Array | None = None
    """int32[n]: `cost`, and the price of beginning a text that could be null; None where there is no such price."""
    gate: Array | None = None
    """bool[n]: states inside such a text, which a step from outside may pass only where `entry` can be afforded."""

    @classmethod
    def build(
        cls,
        arrays: Mapping[str, Array],
        max_token_bytes: int,
        index: int,
        least: tuple[int, ...] | None = None,
        kept: Array | None = None,
        optional_text: Array | None = None,
    ) -> Costs:
        """The exact costs, or those of a reserve.

        Args:
            least: with a document, the tokens that its content takes at least, by kind of extractive field (`NEVER`: it
                holds none); without one, a token for each such field.
            kept: int32[n] of a reserve, from `kept_back`; None for the exact costs.
            optional_text: bool[n], from `optional_text`; such text begins only where `TEXT_TOKENS` are left for it, so
                that what has no room becomes null and not an empty string.
        """
        cost = arrays["distance"].astype(np.int32)
        if least is not None:
            holes = arrays["holes"]
            content = np.array(least, np.int64)[holes[:, 1]]
            cost = through_holes(arrays["direct_distance"], arrays["hole_distance"], holes, content).astype(np.int32)
        elif kept is None:
            return cls(index, cost, arrays["far"].tolist(), _greatest(cost))
        if kept is None:
            return cls(index, cost, _far(arrays, cost, max_token_bytes), _greatest(cost))
        cost = cost + kept
        gate = optional_text if optional_text is not None and optional_text.any() else None
        entry = None if gate is None else cost + TEXT_TOKENS * gate.astype(np.int32)
        asked = cost if entry is None else entry
        return cls(index, cost, _far(arrays, asked, max_token_bytes), _greatest(asked), entry=entry, gate=gate)

    def has_gate(self, state: int) -> bool:
        """Whether a step from `state` has to ask for more than the cost of the state after it."""
        return self.gate is not None and not self.gate[state]


def _greatest(cost: Array) -> int:
    return int(cost[cost < NEVER].max(initial=0))


def optional_text(table: Array, class_of_byte: Array) -> Array:
    """bool[n]: states inside a JSON string of free text that could have been null instead.

    Args:
        table: uint[n, classes], the state after each class of bytes; n where there is none.
        class_of_byte: uint8[256].
    """
    dead = len(table)
    bytes_of_class = np.bincount(class_of_byte, minlength=table.shape[1])
    choices = (table != dead) @ bytes_of_class
    quote, slash = int(class_of_byte[0x22]), int(class_of_byte[0x5C])
    begins_null = table[:, class_of_byte[0x6E]]
    could_be_null = begins_null != dead
    could_be_null[could_be_null] = choices[begins_null[could_be_null]] == 1
    opened = np.unique(table[could_be_null, quote])
    inside = np.zeros(dead, bool)
    waiting = [(int(state), False) for state in opened if state != dead and choices[state] >= _FREE_TEXT_BYTES]
    inside[[state for state, _ in waiting]] = True
    while waiting:
        state, is_escaped = waiting.pop()
        for kind in np.flatnonzero(table[state] != dead).tolist():
            target = int(table[state, kind])
            if not inside[target] and (is_escaped or kind != quote):
                inside[target] = True
                waiting.append((target, kind == slash and not is_escaped))
    return inside


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


def kept_back(arrays: Mapping[str, Array], reserve: tuple[int, ...]) -> Array:
    """int32[n]: reserves of the fields entered on the shortest way from each state to the end, each time that it is.

    The way is one of bytes, since a token may pass over whole fields.  A field stands after what it is part of, and is
    entered from there or from between fields.
    """
    order, after = _ways_out(arrays)
    tags = arrays["tag_of_state"].tolist()
    kept = [0] * len(tags)
    for state in order:
        there = after[state]
        if there >= 0:
            kept[state] = kept[there] + (reserve[tags[there]] if tags[there] > tags[state] else 0)
    return np.array(kept, np.int32)


def _ways_out(arrays: Mapping[str, Array]) -> tuple[list[int], list[int]]:
    """The states, those nearest to the end first, and for each the one after it on the shortest way (-1: it accepts).

    A place that the document fills is passed in one step.
    """
    starts, holes = arrays["edge_start"], arrays["holes"]
    count = len(starts) - 1
    sources = np.concatenate([np.repeat(np.arange(count), np.diff(starts)), holes[:, 0]])
    targets = np.concatenate([arrays["edge_target"], holes[:, 2]])
    by_target = np.argsort(targets, kind="stable")
    bounds = np.searchsorted(targets[by_target], np.arange(count + 1)).tolist()
    before = sources[by_target].tolist()
    order: list[int] = np.flatnonzero(arrays["accepting"]).tolist()
    after = [-1] * count
    is_seen = arrays["accepting"].tolist()
    for state in order:
        for other in before[bounds[state] : bounds[state + 1]]:
            if not is_seen[other]:
                is_seen[other] = 1
                after[other] = state
                order.append(other)
    return order, after


def _far(arrays: Mapping[str, Array], cost: Array, max_token_bytes: int) -> list[int]:
    far: list[int] = farthest(arrays["edge_start"], arrays["edge_target"], cost, max_token_bytes).tolist()
    return far


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
