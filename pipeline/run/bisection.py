"""Owns how a shard that kills its workers is divided, down to the one document, and what its part is made of."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.core.document import Shard

__all__ = ["Bisection", "Leaf"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A piece of a divided shard: stored under its own id, or a single document that brought the engine down."""

    shard_id: str
    shard: Shard
    is_crashed: bool = False


class Bisection:
    """The leaves of one divided shard, in the order of its rows."""

    def __init__(self, root: Shard, root_id: str) -> None:
        self.root = root
        self._leaves: list[Leaf] = [Leaf(root_id, root)]
        self._owed: set[str] = {root_id}

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(self._leaves)

    @property
    def is_settled(self) -> bool:
        """Whether every leaf is stored or known to crash."""
        return not self._owed

    @property
    def settled_rows(self) -> int:
        """Rows of the leaves that are stored or known to crash."""
        return sum(leaf.shard.rows for leaf in self._leaves if leaf.shard_id not in self._owed)

    def divide(self, shard_id: str) -> tuple[tuple[str, Shard], tuple[str, Shard]]:
        """Puts two halves in the place of one leaf and returns them with their ids.

        Raises:
            ValueError: the leaf has fewer than two rows.
        """
        position = self._position(shard_id)
        first, second = self._leaves[position].shard.halves()
        halves = (first.shard_id, first), (second.shard_id, second)
        self._leaves[position : position + 1] = [Leaf(half_id, half) for half_id, half in halves]
        self._owed.discard(shard_id)
        self._owed.update(half_id for half_id, _ in halves)
        return halves

    def before(self, shard_id: str) -> Shard | None:
        """The rows of the divided shard that stand before a leaf's; None for its first leaf."""
        pieces = [piece for leaf in self._leaves[: self._position(shard_id)] for piece in leaf.shard.pieces]
        return Shard(tuple(pieces)) if pieces else None

    def settle(self, shard_id: str, *, is_crashed: bool) -> None:
        """A leaf's outcomes are known."""
        if is_crashed:
            position = self._position(shard_id)
            leaf = self._leaves[position]
            self._leaves[position] = Leaf(leaf.shard_id, leaf.shard, is_crashed=True)
        self._owed.discard(shard_id)

    def _position(self, shard_id: str) -> int:
        return next(index for index, leaf in enumerate(self._leaves) if leaf.shard_id == shard_id)
