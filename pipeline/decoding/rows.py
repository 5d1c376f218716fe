"""Mask rows made ahead: one for each class of states that allow the same strings up to the longest token.

Classes come of Moore's refinement, that many rounds, so that an automaton of 20,000 states needs a few hundred rows.
States that allow much often differ only in what long tokens they allow, as those of a bounded string do near its end:
such a row is made of another one by the ids where the two differ.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.edges import edges_of
from pipeline.decoding.vocabulary import Vocabulary

__all__ = ["StateClasses", "mask_rows"]

_ROW_BYTES_KEPT = 6 * 1024 * 1024
"""Rows beyond this many bytes are made when a state first needs them; each takes one walk of the vocabulary."""
_SHORT_WALK = 65_536
"""Nodes of the trie up to which a row is made by itself."""
_FEW_WALKS = 2
"""Rows up to which walks one after the other take less time than a walk of eight states at once."""
_BESIDE_SHARE = 8
"""A row is made beside another where finding the differences takes at most this part of a walk: an eighth is what a
walk takes beside seven others, or less."""


class StateClasses:
    """Classes of the states of a table that allow the same strings of at most `rounds` bytes.

    Attributes:
        of_state: int64[n].
        parents: for each class the one that it parted from, -1 for class 0.
        lengths: for each class the length of the shortest strings that tell it from its parent.
    """

    def __init__(self, table: Array, rounds: int) -> None:
        from pipeline.decoding.class_kernels import refined

        rng = np.random.default_rng(0xC1A55)
        weights = np.asarray(rng.integers(1, 2**63, size=table.shape[1], dtype=np.uint64)) | np.uint64(1)
        backward = edges_of(table, reverse=True)
        self.of_state, self.parents, self.lengths = refined(table, backward.starts, backward.other, weights, rounds)

    def split_by(self, accepting: Array) -> tuple[Array, Array]:
        """Which states have equal rows: a number for each state, most frequent first, and a state of each number."""
        _, named = np.unique(self.of_state * 2 + accepting, return_inverse=True)
        order = np.argsort(-np.bincount(named), kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        row_of_state = rank[named].astype(np.int32)
        samples = np.zeros(len(order), np.int64)
        samples[row_of_state] = np.arange(len(row_of_state))
        return row_of_state, samples


def mask_rows(
    table: Array, class_of_byte: Array, accepting: Array, onward: Array, vocabulary: Vocabulary
) -> tuple[Array, Array]:
    """The row of each state int32[n], and the first of the rows uint32[k, words]; further ones are made when needed.

    `onward` is as `unescaped_next` gives it.
    """
    from pipeline.decoding.class_kernels import hashes_of

    classes = StateClasses(table, vocabulary.max_token_bytes)
    row_of_state, samples = classes.split_by(accepting)
    words = (vocabulary.size + 31) // 32
    kept = min(len(samples), max(1, _ROW_BYTES_KEPT // (words * 4)))
    rows = _Rows(table, class_of_byte, onward, classes, vocabulary).of(samples[:kept])
    for token_id in vocabulary.eos_ids:
        rows[accepting[samples[:kept]] != 0, token_id >> 5] |= np.uint32(1 << (token_id & 31))
    _, chosen, named = np.unique(hashes_of(rows), return_index=True, return_inverse=True)
    names = np.arange(len(samples), dtype=np.int32) - kept + len(chosen)
    names[:kept] = named
    return names[row_of_state], rows[chosen]


class _Rows:
    """Rows of states, without what ends a record."""

    def __init__(
        self, table: Array, class_of_byte: Array, onward: Array, classes: StateClasses, vocabulary: Vocabulary
    ) -> None:
        self._table, self._class_of_byte, self._onward = table, class_of_byte, onward
        self._tree = classes.of_state, classes.parents, classes.lengths
        self._trie, self._paths, self._unescaped = vocabulary.trie, vocabulary.paths, vocabulary.unescaped
        self._words = (vocabulary.size + 31) // 32

    def of(self, states: Array) -> Array:
        """Rows uint32[len(states), words]: easy ones one by one, rows near another beside it, the rest by eights."""
        from pipeline.decoding.class_kernels import fill_row_beside, nearest_row
        from pipeline.decoding.unescaped_kernels import easy_rows

        trie = self._trie
        rows = np.zeros((len(states), self._words), np.uint32)
        is_filled = easy_rows(
            self._table, self._class_of_byte, self._onward, states,
            self._unescaped.rows, self._unescaped.rest.walked, trie.walked, _SHORT_WALK, rows,
        )  # fmt: skip
        apart: list[int] = []
        beside: list[tuple[int, int]] = []
        for index in np.flatnonzero(~is_filled).tolist():
            near = nearest_row(
                self._table, self._class_of_byte, *self._tree, states[index], states[apart],
                trie.byte, trie.after, trie.height, self._paths.reaching, _BESIDE_SHARE,
            )  # fmt: skip
            if near >= 0:
                beside.append((index, apart[near]))
            else:
                apart.append(index)
        for first in range(0, len(apart), 8):
            eight = apart[first : first + 8]
            if len(eight) > _FEW_WALKS:
                self._fill_together(states, eight, rows)
            else:
                for index in eight:
                    self._fill(int(states[index]), rows[index])
        for index, near in beside:
            rows[index] = rows[near]
            fill_row_beside(
                self._table, self._class_of_byte, *self._tree, states[index], states[near],
                trie.byte, trie.depth, trie.after, trie.height, trie.first, trie.ids, rows[index],
            )  # fmt: skip
        return rows

    def _fill(self, state: int, row: Array) -> None:
        from pipeline.decoding.kernels import fill_row

        fill_row(self._table, self._class_of_byte, state, *self._trie.walked, row)

    def _fill_together(self, states: Array, chosen: list[int], rows: Array) -> None:
        from pipeline.decoding.class_kernels import mark_legal, rows_of_marks

        trie, width = self._trie, self._table.shape[1]
        dead = len(self._table) * width
        lanes = np.full(8, dead, np.int32)
        lanes[: len(chosen)] = states[chosen] * width
        marks = np.zeros(len(trie.byte) + 1, np.uint8)
        mark_legal(self._steps, dead, self._class_of_byte, lanes, trie.byte, trie.depth, trie.after, marks)
        made = np.zeros((8, self._words), np.uint32)
        rows_of_marks(marks, self._paths.node_of_id, made)
        rows[chosen] = made[: len(chosen)]

    @cached_property
    def _steps(self) -> Array:
        """The table flat, with a row for the dead state, and states named by where their row begins."""
        count, width = self._table.shape
        steps = np.full((count + 1, width), count, np.int32)
        steps[:count] = self._table
        steps *= np.int32(width)
        return steps.reshape(-1)
