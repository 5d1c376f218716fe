"""Which states lead to which, in compressed rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["Edges", "edges_of"]


@dataclass(frozen=True, slots=True)
class Edges:
    """Distinct edges int32 in compressed rows: `other[starts[s]:starts[s + 1]]`, ascending."""

    starts: Array
    other: Array


def edges_of(table: Array, *, reverse: bool = False, without: int | None = None) -> Edges:
    """The edges of a table `[states, classes]` whose dead state is named by the row count.

    Args:
        reverse: from targets to sources.
        without: a class whose edges are left out.
    """
    count = len(table)
    kept = table if without is None else np.delete(table, without, axis=1)
    targets = np.sort(kept, axis=1)
    is_new = np.ones(targets.shape, bool)
    is_new[:, 1:] = targets[:, 1:] != targets[:, :-1]
    sources, columns = np.nonzero(is_new & (targets != count))
    other = targets[sources, columns]
    if reverse:
        # Ascending within a target, since the sort is stable.
        order = np.argsort(other, kind="stable")
        sources, other = other[order], sources[order]
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(sources, minlength=count)[:count], out=starts[1:])
    return Edges(starts, other.astype(np.int32))
