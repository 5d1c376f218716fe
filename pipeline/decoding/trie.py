"""Byte strings of a vocabulary in one tree, in preorder, so that a walk that leaves out a subtree is one jump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["Trie", "TriePaths"]


@dataclass(frozen=True, slots=True)
class Trie:
    """Nodes in preorder, without a root.

    `byte` uint8[N], `depth` uint8[N] (1 for a first byte), `after` int32[N] (the first node outside the subtree),
    `height` uint8[N] (most bytes below), `has_quote` uint8[N] (whether a `"` is among the bytes below),
    `first` int32[N+1] (node i's ids are `ids[first[i]:first[i+1]]`), `ids` int32[T].
    """

    byte: Array
    depth: Array
    after: Array
    height: Array
    has_quote: Array
    first: Array
    ids: Array

    @classmethod
    def of(cls, tokens: Sequence[bytes | None]) -> Trie:
        """Of the byte strings of ids; None for those that are left out."""
        from pipeline.decoding.compile_kernels import build_trie

        spelling = sorted((token, index) for index, token in enumerate(tokens) if token is not None)
        offsets = np.zeros(len(spelling) + 1, np.int64)
        np.cumsum([len(token) for token, _ in spelling], out=offsets[1:])
        data = np.frombuffer(b"".join(token for token, _ in spelling), np.uint8)
        return cls(*build_trie(data, offsets, np.array([index for _, index in spelling], np.int32)))

    @classmethod
    def from_arrays(cls, name: str, arrays: Mapping[str, Array]) -> Trie:
        """One that `to_arrays` took apart."""
        return cls(*(arrays[f"{name}_{field}"] for field in cls.__dataclass_fields__))

    def to_arrays(self, name: str) -> dict[str, Array]:
        return {f"{name}_{field}": getattr(self, field) for field in self.__dataclass_fields__}

    @property
    def walked(self) -> tuple[Array, ...]:
        """What a walk that fills a row needs."""
        return self.byte, self.depth, self.after, self.first, self.ids


@dataclass(frozen=True, slots=True)
class TriePaths:
    """What making rows by the dozen needs of a trie.

    `node_of_id` int32[32 * words] (the node where an id's string ends; N for those without one), `reaching` int64[257]
    (nodes on the way to a string of at least so many bytes).
    """

    node_of_id: Array
    reaching: Array

    @classmethod
    def of(cls, trie: Trie, size: int) -> TriePaths:
        """Of the trie of a vocabulary of `size` ids."""
        nodes = len(trie.byte)
        node_of_id = np.full((size + 31) // 32 * 32, nodes, np.int32)
        node_of_id[trie.ids] = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(trie.first))
        reached = np.bincount(trie.depth.astype(np.int64) + trie.height, minlength=257)
        return cls(node_of_id, reached[::-1].cumsum()[::-1].copy())
