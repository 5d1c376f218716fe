"""A file made of ranged reads: the seekable file that Arrow wants over a store that answers ranges."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO, cast

__all__ = ["ranged_input"]


def ranged_input(size_bytes: int, read_range: Callable[[int, int], bytes]) -> BinaryIO:
    """An unbuffered file of `size_bytes`; `read_range(start, stop)` gives exactly those bytes or raises."""
    return cast(BinaryIO, _RangedInput(size_bytes, read_range))


class _RangedInput(io.RawIOBase):
    def __init__(self, size_bytes: int, read_range: Callable[[int, int], bytes]) -> None:
        self._size = size_bytes
        self._read_range = read_range
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        position = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence] + offset
        if position < 0:
            raise ValueError(f"negative position {position}")
        self._position = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        data = self._read_range(self._position, self._position + wanted)
        self._position += wanted
        return data

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
