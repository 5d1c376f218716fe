"""How a mask row is written: as another one, or a blank one, and the few words where it differs.

A row of 262,144 ids has 32 KB, and a guide dozens of them, more than a core's second cache holds.  But most rows allow
a handful of ids, and those of strings differ from each other in a handful: what is read for them is a few hundred
bytes, and the row that many are like, which stays in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_void_p
from functools import partial

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["RowWriters"]

_CHANGED_SHARE = 16
"""At most one word in so many may differ; reading and placing more takes as long as reading a whole row."""
_MOST_BASES = 64
"""Rows that others are compared with; most are given up after some hundred words."""


class RowWriters:
    """Writers of the rows of one guide, uint32[words] each."""

    def __init__(self, words: int) -> None:
        self._blank = np.zeros(words, np.uint32)
        self._bases = [self._blank]

    def writer(self, row: Array) -> Callable[[int], None]:
        """What writes `row` to an address.  It must not change; the writer keeps what it reads."""
        from pipeline.decoding.write_kernels import write_row

        base, changed = self._nearest(row)
        recipe = np.empty(3 + 2 * len(changed), np.uint32)
        recipe[:3] = len(row), base is not self._blank, len(changed)
        recipe[3::2] = changed
        recipe[4::2] = row[changed]
        return partial(write_row, _pointer(recipe), _pointer(base))

    def _nearest(self, row: Array) -> tuple[Array, Array]:
        """A row that differs little from `row`, and which words differ."""
        from pipeline.decoding.write_kernels import differing

        changed = np.empty(len(row) // _CHANGED_SHARE, np.int64)
        for base in self._bases:
            count = differing(row, base, changed)
            if count >= 0:
                return base, changed[:count]
        if len(self._bases) < _MOST_BASES:
            self._bases.append(row)
        return row, changed[:0]


def _pointer(array: Array) -> c_void_p:
    """To its memory; keeps the array."""
    return array.ctypes.data_as(c_void_p)
