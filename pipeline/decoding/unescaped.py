"""Ids that spell nothing but unescaped characters, by how many, so that the rows of a string need no walk of them.

Inside a string without a pattern every unescaped character leads on alike, and nearly all ids spell such characters
only: which of them are legal follows from how many characters the string may still hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.trie import Trie

__all__ = ["UnescapedIds"]

_MOST_CHARACTERS = 32
"""Ids of more characters are left to the walk; there are few."""


@dataclass(frozen=True, slots=True)
class UnescapedIds:
    """What spells one or more unescaped characters, as RFC 8259 calls those that JSON spells as themselves.

    Attributes:
        rows: uint32[1 + most, words]: in row i the ids of up to i characters.
        rest: all other ids.
    """

    rows: Array
    rest: Trie

    @classmethod
    def of(cls, tokens: Sequence[bytes | None], data: Array, starts: Array) -> UnescapedIds:
        """Of a vocabulary's byte strings, which `data[starts[i]:starts[i + 1]]` are, too."""
        from pipeline.decoding.unescaped_kernels import unescaped_lengths

        lengths = unescaped_lengths(data, starts)
        lengths[lengths > _MOST_CHARACTERS] = 0
        counts = np.arange(1 + lengths.max(initial=0))[:, None]
        bits = np.zeros((len(counts), -len(lengths) % 32 + len(lengths)), bool)
        bits[:, : len(lengths)] = (lengths > 0) & (lengths <= counts)
        rows = np.packbits(bits, axis=1, bitorder="little").view("<u4").astype(np.uint32)
        rest = Trie.of([None if length else token for token, length in zip(tokens, lengths.tolist(), strict=True)])
        return cls(rows, rest)

    def of_lengths(self, legal: Array) -> Array:
        """uint32[words]: the ids of those numbers of characters at which `legal` uint8[1 + most] is 1."""
        row = np.zeros(self.rows.shape[1], np.uint32)
        turns = np.flatnonzero(np.diff(legal, append=0))
        for before, last in zip(turns[::2].tolist(), turns[1::2].tolist(), strict=True):
            row |= self.rows[last] & ~self.rows[before]
        return row
