"""Named arrays in one flat file: what guides and vocabularies are stored as.  No pickle, nothing executed on reading.

Layout: 8 bytes magic, 8 bytes little-endian length of a JSON header, the header, then each array at a multiple of 64
bytes.  Reading is zero-copy: the arrays are views of the buffer, which may be a memory map shared by all processes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "pack", "unpack"]

Array = npt.NDArray[Any]
_MAGIC = b"RMARRAY1"
_ALIGN = 64
_DTYPES = frozenset({"uint8", "uint16", "uint32", "int16", "int32", "int64"})


def _padded(size: int) -> int:
    return -size % _ALIGN


def pack(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """One buffer of JSON-able `meta` and the arrays."""
    entries = {}
    offset = 0
    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES:
            raise TypeError(f"array {name} has dtype {array.dtype}")
        entries[name] = {"dtype": array.dtype.name, "shape": list(array.shape), "offset": offset}
        offset += array.nbytes + _padded(array.nbytes)
    header = json.dumps({"meta": meta, "arrays": entries}).encode()
    start = len(_MAGIC) + 8 + len(header)
    parts = [_MAGIC, len(header).to_bytes(8, "little"), header, bytes(_padded(start))]
    for array in arrays.values():
        parts += [np.ascontiguousarray(array).tobytes(), bytes(_padded(array.nbytes))]
    return b"".join(parts)


def unpack(buffer: memoryview) -> tuple[dict[str, Any], dict[str, Array]]:
    """The `meta` and read-only views of the arrays.

    Raises:
        ValueError: the buffer is not one that `pack` made, or is cut short.
    """
    if len(buffer) < 16 or bytes(buffer[:8]) != _MAGIC:
        raise ValueError("not a file of guide arrays")
    length = int.from_bytes(buffer[8:16], "little")
    if length > len(buffer):
        raise ValueError("guide arrays are cut short")
    header = json.loads(bytes(buffer[16 : 16 + length]))
    base = 16 + length + _padded(16 + length)
    arrays = {}
    for name, entry in header["arrays"].items():
        if entry["dtype"] not in _DTYPES:
            raise ValueError(f"array {name} has dtype {entry['dtype']}")
        dtype = np.dtype(entry["dtype"])
        count = int(np.prod(entry["shape"], dtype=np.int64))
        start = base + entry["offset"]
        if count < 0 or start + count * dtype.itemsize > len(buffer):
            raise ValueError("guide arrays are cut short")
        array = np.frombuffer(buffer, dtype, count, start).reshape(entry["shape"])
        array.flags.writeable = False
        arrays[name] = array
    return header["meta"], arrays
