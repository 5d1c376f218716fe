"""Mask rows of one guide: those made ahead, and those that cursors have asked for, kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import Costs
from pipeline.decoding.row_writers import RowWriters
from pipeline.decoding.trie import Trie
from pipeline.decoding.unescaped import UnescapedIds

__all__ = ["Row", "RowShelf"]

_TIGHT_ROWS_KEPT = 4096
_LAZY_ROWS_KEPT = 4096


@dataclass(slots=True, weakref_slot=True, eq=False)
class Row:
    """One mask row: uint32[words], bit i of word j for id 32 j + i.

    `write` puts the words at an address; None until the row is written for the first time, see `RowShelf.writer`.
    """

    words: Array
    is_empty: bool
    write: Callable[[int], None] | None = None

    @classmethod
    def of(cls, words: Array) -> Row:
        return cls(words, not words.any())

    def has(self, token_id: int) -> bool:
        return bool(self.words[token_id >> 5] >> (token_id & 31) & 1)


class RowShelf:
    """Rows by state, and by what closing may cost.

    Args:
        arrays: a guide's.
        trie: of all ids.
        eos_ids: legal where a record is whole.
    """

    def __init__(self, arrays: Mapping[str, Array], trie: Trie, eos_ids: tuple[int, ...]) -> None:
        self._table, self._class_of_byte, self._onward = arrays["table"], arrays["class_of_byte"], arrays["onward"]
        self._accepting = arrays["accepting"]
        self._trie, self._eos_ids = trie, eos_ids
        self._unescaped = UnescapedIds(arrays["unescaped_rows"], Trie.from_arrays("rest", arrays))
        self._saved = [Row.of(words) for words in arrays["rows"]]
        self._writers = RowWriters(arrays["rows"].shape[1])
        self._index_of_state: list[int] = arrays["row_of_state"].tolist()
        self._lazy: dict[int, Row] = {}
        self._tight: dict[tuple[int, int, int], Row] = {}
        self._lock = threading.Lock()

    def row(self, state: int) -> Row:
        """The legal ids of a state."""
        index = self._index_of_state[state]
        if index < len(self._saved):
            return self._saved[index]
        row = self._lazy.get(index)
        if row is None:
            row = self._keep(self._lazy, index, self._made(state), _LAZY_ROWS_KEPT)
        return row

    def tight_row(self, state: int, limit: int, costs: Costs) -> Row:
        """As `row`, without the ids after which closing would cost more than `limit` tokens."""
        limit = min(limit, costs.most)
        key = (state, limit, costs.index)
        row = self._tight.get(key)
        if row is None:
            row = self._keep(self._tight, key, self._made_tight(state, limit, costs), _TIGHT_ROWS_KEPT)
        return row

    def writer(self, row: Row) -> Callable[[int], None]:
        """What writes a row, kept with it."""
        write = row.write
        if write is None:
            write = row.write = self._writers.writer(row.words)
        return write

    def warm(self, costs: Costs) -> None:
        """Makes a row of each kind, and looks for its like, so that no step waits for machine code or the disk."""
        self._keep({}, None, self._made(0), 1)
        self._keep({}, None, self._made_tight(0, 0, costs), 1)
        for row in self._saved:
            self.writer(row)

    def _made(self, state: int) -> Array:
        from pipeline.decoding.kernels import fill_row
        from pipeline.decoding.unescaped_kernels import APART, legal_reach

        by_length = self._unescaped.rows
        reach = legal_reach(self._onward, state, len(by_length) - 1)
        words, trie = (self._blank, self._trie) if reach == APART else (by_length[reach].copy(), self._unescaped.rest)
        fill_row(self._table, self._class_of_byte, state, *trie.walked, words)
        return self._with_end(state, words)

    def _made_tight(self, state: int, limit: int, costs: Costs) -> Array:
        from pipeline.decoding.kernels import fill_tight_row
        from pipeline.decoding.unescaped_kernels import legal_lengths

        cost, gate = (costs.entry, costs.gate) if costs.has_gate(state) else (costs.cost, self._no_gate)
        legal = np.zeros(len(self._unescaped.rows), np.uint8)
        tells = legal_lengths(self._onward, state, cost, gate, limit, legal)
        words, trie = (self._unescaped.of_lengths(legal), self._unescaped.rest) if tells else (self._blank, self._trie)
        fill_tight_row(self._table, self._class_of_byte, state, cost, gate, limit, *trie.walked, words)
        return self._with_end(state, words)

    @property
    def _blank(self) -> Array:
        return np.zeros(self._unescaped.rows.shape[1], np.uint32)

    @cached_property
    def _no_gate(self) -> Array:
        return np.zeros(len(self._table), bool)

    @cached_property
    def _by_content(self) -> WeakValueDictionary[int, Row]:
        return WeakValueDictionary((_content(row.words), row) for row in self._saved)

    def _with_end(self, state: int, row: Array) -> Array:
        if self._accepting[state]:
            for index in self._eos_ids:
                row[index >> 5] |= np.uint32(1 << (index & 31))
        return row

    def _keep(self, cache: dict[Any, Row], key: Any, words: Array, most: int) -> Row:
        """One row for all keys whose words are equal: fewer bytes for a step to find in no cache."""
        content = _content(words)
        with self._lock:
            row = self._by_content.get(content)
            if row is None or not np.array_equal(row.words, words):
                row = self._by_content[content] = Row.of(words)
            if len(cache) >= most:
                cache.pop(next(iter(cache)))
            cache[key] = row
        return row


def _content(words: Array) -> int:
    return hash(words.tobytes())
