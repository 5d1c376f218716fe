"""Loops that compare mask rows, and the one that writes a row, as a C function: it runs for each request and step.

Import it late, as `kernels`.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import ctypes
from typing import Any

import numba
from numba import types

from pipeline.decoding.arrays import Array

__all__ = ["differing", "write_row"]

_words = types.CPointer(types.uint32)
_row = types.Array(types.uint32, 1, "C", readonly=True)


# Compiled once, here: rows of a memory map are of another type than those made later, and no step waits for a compiler.
@numba.njit(types.int64(_row, _row, types.int64[::1]), cache=True)
def differing(words: Array, others: Array, found: Array) -> int:
    """How many words differ, and in `found` int64[M] which; -1 where more than M do."""
    count = 0
    for i in range(len(words)):
        if words[i] != others[i]:
            if count == len(found):
                return -1
            found[count] = i
            count += 1
    return count


@numba.cfunc(types.void(_words, _words, _words), cache=True)
def _write_row(recipe: Any, base: Any, target: Any) -> None:
    """Writes `recipe[0]` words: `base`, or zeros where `recipe[1]` is 0; then `recipe[2]` pairs of place and word."""
    width = recipe[0]
    if recipe[1]:
        for i in range(width):
            target[i] = base[i]
    else:
        for i in range(width):
            target[i] = 0
    for i in range(recipe[2]):
        target[recipe[3 + 2 * i]] = recipe[4 + 2 * i]


# A call this short keeps Python's lock: who gives it up for a microsecond may wait milliseconds to have it back.
write_row = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(_write_row.address)
