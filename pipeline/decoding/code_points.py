"""Sets of characters, as sorted intervals of code points without surrogates."""

from __future__ import annotations

import sys
from collections.abc import Iterable

__all__ = ["ANY_CHAR", "TOP", "Ranges", "invert", "normalized"]

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint intervals of code points."""

TOP = sys.maxunicode
ANY_CHAR: Ranges = ((0, 0xD7FF), (0xE000, TOP))


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted, disjoint, and without surrogates."""
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return tuple((low, high) for low, high in merged)


def invert(ranges: Ranges) -> Ranges:
    """Every other character."""
    inverted = []
    position = 0
    for low, high in (*normalized((*ranges, (0xD800, 0xDFFF))), (TOP + 1, TOP + 1)):
        if position < low:
            inverted.append((position, low - 1))
        position = high + 1
    return tuple(inverted)
