"""Many small reads at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["in_order"]

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def in_order(
    function: Callable[[_Given], _Made], items: Iterable[_Given], at_once: int, *, ahead: int = 4
) -> Iterator[_Made]:
    """As `map`, in threads, with at most `at_once * ahead` results waiting."""
    remaining = iter(items)
    with ThreadPoolExecutor(at_once) as pool:
        while batch := list(islice(remaining, at_once * ahead)):
            yield from pool.map(function, batch)
