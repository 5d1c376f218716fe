"""The costs of closing that one guide's cursors have asked for, kept: documents and budgets ask for few of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import Costs, kept_back, optional_text

__all__ = ["CostShelf"]

_COSTS_KEPT = 256
_RESERVES_KEPT = 64


class CostShelf:
    """Costs by reserve and by what a document's content takes.

    Args:
        arrays: a guide's.
        most_bytes: of one token.
    """

    def __init__(self, arrays: Mapping[str, Array], most_bytes: int) -> None:
        self._arrays = arrays
        self._most_bytes = most_bytes
        self._costs: dict[tuple[tuple[int, ...] | None, tuple[int, ...]], Costs] = {}
        self._built = 0
        self._reserves: dict[tuple[int, ...], Array] = {}
        self._lock = threading.Lock()

    def costs(self, reserve: tuple[int, ...] = (), least: tuple[int, ...] | None = None) -> Costs:
        """Tokens to close from each state.

        Args:
            reserve: tokens kept back for each field, by its index; `()` keeps none.
            least: tokens that the document's content takes at least, by kind of extractive field; None without one.
        """
        key = (least, reserve)
        found = self._costs.get(key)
        if found is None:
            with self._lock:
                # No index is given twice: rows made with costs that had to make room are never taken for others.
                self._built += 1
                found = self._costs[key] = self._build(self._built, reserve, least)
                if len(self._costs) > _COSTS_KEPT:
                    self._costs.pop(next(iter(self._costs)))
        return found

    def _build(self, index: int, reserve: tuple[int, ...], least: tuple[int, ...] | None) -> Costs:
        kept, text = (self.kept_back(reserve), self._optional_text) if reserve else (None, None)
        return Costs.build(self._arrays, self._most_bytes, index, least, kept, text)

    def kept_back(self, reserve: tuple[int, ...]) -> Array:
        """int32[n]: what `reserve` keeps back in each state for the fields that are still to come."""
        found = self._reserves.get(reserve)
        if found is None:
            if len(self._reserves) >= _RESERVES_KEPT:
                self._reserves.clear()
            found = self._reserves[reserve] = kept_back(self._arrays, reserve)
        return found

    @cached_property
    def _optional_text(self) -> Array:
        return optional_text(self._arrays["table"], self._arrays["class_of_byte"])
