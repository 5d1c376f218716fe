"""A cursor through a guide with extractive fields: where the guide leaves a place open, the document decides.

A position is either a state of the guide, or content: the stretches of the document that what was written so far may
belong to.  Content begins and ends on the bounds of tokens, so that the guide's own rows hold for every document.
"""

from __future__ import annotations

from ctypes import memmove
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.decoding.arrays import Array
from pipeline.decoding.costs import NEVER, Costs
from pipeline.decoding.cursor import ILLEGAL, Cursor, affordable
from pipeline.decoding.span_document import SpanDocument, SpanView

if TYPE_CHECKING:
    from pipeline.decoding.guide import Guide
    from pipeline.decoding.row_shelf import Row

__all__ = ["NoSpanError", "SpanCursor", "Walker"]

_NO_LIMIT = NEVER - 1
"""The budget that forbids nothing but what can never be closed."""


class NoSpanError(ValueError):
    """A field that must be copied from the document has no candidate in it; no record can be written."""


@dataclass(frozen=True, slots=True, eq=False)
class _Content:
    """Inside a place that the document fills.

    `positions`, `lasts` and `origins` are int32[T], one for each stretch still possible: how far it is written, where
    it must end, and which of the view's starts it began at.
    """

    kind: int
    after: int
    positions: Array
    lasts: Array
    origins: Array
    is_at_end: bool


class Walker:
    """One view of a document against a vocabulary."""

    def __init__(self, guide: Guide, view: SpanView) -> None:
        from pipeline.decoding.kernels import span_costs

        trie = guide.trie
        self._guide = guide
        self.view = view
        self._nearest, self._cost, first_cost = span_costs(
            view.buffer, view.is_end, guide.roots, trie.byte, trie.after, trie.first
        )
        starts = np.asarray(view.starts)
        next_end = self._nearest[starts + 1] if len(starts) else starts
        fits = (next_end >= 0) & (next_end <= view.lasts) & (first_cost[starts] < NEVER)
        self.starts, self.lasts = starts[fits], view.lasts[fits]
        self.origins = np.flatnonzero(fits).astype(np.int32)
        self.least = int(first_cost[self.starts].min()) if len(self.starts) else NEVER
        self.most = int(self._cost[self._cost < NEVER].max(initial=0))
        self._first_rows: dict[int, Array] = {}

    def cost(self, content: _Content) -> int:
        """The fewest tokens that end the content."""
        return int(self._cost[content.positions].min())

    def begin(self, kind: int, after: int, token: bytes) -> _Content | None:
        return self._moved(kind, after, self.starts, self.lasts, self.origins, token)

    def go_on(self, content: _Content, token: bytes) -> _Content | None:
        return self._moved(content.kind, content.after, content.positions, content.lasts, content.origins, token)

    def _moved(
        self, kind: int, after: int, positions: Array, lasts: Array, origins: Array, token: bytes
    ) -> _Content | None:
        buffer = self.view.buffer
        length = len(token)
        fits = positions + length <= lasts
        for offset, byte in enumerate(token):
            positions_left = positions[fits]
            if not len(positions_left):
                return None
            fits[fits] = buffer[positions_left + offset] == byte
        positions, lasts, origins = positions[fits] + length, lasts[fits], origins[fits]
        ends = self._nearest[positions]
        alive = (ends >= 0) & (ends <= lasts)
        if not alive.any():
            return None
        positions = positions[alive]
        is_at_end = bool(self.view.is_end[positions].any())
        return _Content(kind, after, positions, lasts[alive], origins[alive], is_at_end)

    def fill(self, positions: Array, lasts: Array, base: int, limit: int, words: Array) -> None:
        """Sets the bits of the tokens that go on from these positions and can be closed within `limit`."""
        from pipeline.decoding.kernels import fill_span_row

        trie = self._guide.trie
        fill_span_row(
            self.view.buffer, positions, lasts, self._nearest, self._cost, base, limit,
            self._guide.roots, trie.byte, trie.after, trie.first, trie.ids, words,
        )  # fmt: skip

    def first_row(self, slack: int) -> Array:
        """The tokens that may begin content, where closing it may take `slack` tokens beyond the first."""
        key = min(slack, self.most)
        row = self._first_rows.get(key)
        if row is None:
            row = np.zeros(self._guide.words, np.uint32)
            self.fill(self.starts, self.lasts, 0, key, row)
            self._first_rows[key] = row
        return row


class SpanCursor(Cursor):
    """See `Cursor`; made by `Guide.cursor` where the guide has extractive fields.

    Raises:
        NoSpanError: the document holds no value for a field that must have one.
    """

    __slots__ = ("_walkers", "_words")

    def __init__(
        self, guide: Guide, budget_tokens: int | None, reserve: tuple[int, ...], document: SpanDocument
    ) -> None:
        if len(document.views) != len(guide.span_kinds):
            raise ValueError(f"{len(document.views)} views for {len(guide.span_kinds)} kinds of extractive fields")
        self._walkers = guide.walkers(document)
        least = tuple(walker.least for walker in self._walkers)
        exact = guide.closing.costs((), least)
        least_tokens = int(exact.cost[0])
        if least_tokens >= NEVER:
            raise NoSpanError(f"the document holds no value for {', '.join(self._missing(guide))}")
        self._words = np.zeros(guide.words, np.uint32)
        kept = affordable(guide, budget_tokens, reserve, least_tokens)
        self._start(guide, budget_tokens, guide.closing.costs(kept, least), exact)

    def _missing(self, guide: Guide) -> list[str]:
        """Fields that must be copied from the document and for which it holds nothing."""
        count = len(self._walkers)
        needed = set()
        for kind, walker in enumerate(self._walkers):
            least = tuple(NEVER if other == kind else 1 for other in range(count))
            if not len(walker.starts) and guide.closing.costs((), least).cost[0] >= NEVER:
                needed.add(kind)
        fields = {guide.field_of(after) for kind, after in guide.hole_of_state.values() if kind in needed}
        return sorted(field for field in fields if field is not None)

    @property
    def is_accepting(self) -> bool:
        state = self.state
        if isinstance(state, _Content):
            return state.is_at_end and self._guide.is_accepting(state.after)
        return self._guide.is_accepting(state)

    @property
    def least_left(self) -> int:
        return self._cost_of(self.state, self._exact)

    def sources(self) -> tuple[tuple[int, int], ...]:
        """Where the content written now stands in the document's text, as `(start, end)` in characters.

        Several where the same text stands at several places; none outside of content, or before it may end.
        """
        content = self.state
        if not isinstance(content, _Content):
            return ()
        view = self._walkers[content.kind].view
        ends = np.flatnonzero(view.is_end[content.positions])
        found = (
            (int(view.source_start[content.origins[index]]), int(view.source_end[content.positions[index]]))
            for index in ends.tolist()
        )
        return tuple(sorted(set(found)))

    def forced(self) -> bytes:
        """See `Cursor.forced`; content is never forced."""
        return b"" if isinstance(self.state, _Content) else super().forced()

    def _after(self, token_id: int) -> Any:
        target = self._next(self.state, token_id)
        limit = self._limit
        if target == ILLEGAL or token_id in self._guide.eos_ids:
            return target
        if self._cost_of(target, self._exact) > limit:
            return ILLEGAL
        if self._costs is self._exact or self._is_ample(limit):
            return target
        return target if self._row_within(limit).has(token_id) else ILLEGAL

    def _next(self, state: Any, token_id: int) -> Any:
        """The position after `token_id`, or `ILLEGAL`, whatever is left of the budget."""
        guide = self._guide
        if token_id in guide.eos_ids:
            return state if self.is_accepting else ILLEGAL
        if isinstance(state, _Content):
            spelt = guide.decode((token_id,))
            longer = self._walkers[state.kind].go_on(state, spelt) if spelt else None
            if longer is not None:
                return longer
            return guide.next_state(state.after, token_id) if state.is_at_end else ILLEGAL
        target = guide.next_state(state, token_id)
        if target != ILLEGAL or (hole := guide.hole_of_state.get(state)) is None:
            return target
        spelt = guide.decode((token_id,))
        content = self._walkers[hole[0]].begin(*hole, spelt) if spelt else None
        return ILLEGAL if content is None else content

    def _cost_of(self, position: Any, costs: Costs) -> int:
        """The fewest tokens that complete the record, and those that `costs` keep back."""
        if isinstance(position, _Content):
            return self._walkers[position.kind].cost(position) + int(costs.cost[position.after])
        return int(costs.cost[position])

    @property
    def _limit(self) -> int:
        """The most tokens that closing may take after the next id; a value that the document lacks is never closed."""
        return min(self._left - 1, _NO_LIMIT)

    def row(self) -> Row:
        return self._row_within(self._limit)

    def _row_of(self, limit: int, costs: Costs) -> Row:
        state = self.state
        if isinstance(state, _Content):
            words = self._fixed_row(state.after, limit, costs).words.copy() if state.is_at_end else self._blank()
            base = int(costs.cost[state.after])
            self._walkers[state.kind].fill(state.positions, state.lasts, base, limit, words)
            return self._keep(words)
        hole = self._guide.hole_of_state.get(state)
        if hole is None:
            return self._fixed_row(state, limit, costs)
        first = self._walkers[hole[0]].first_row(limit - int(costs.cost[hole[1]]))
        return self._keep(self._fixed_row(state, limit, costs).words | first)

    def _blank(self) -> Array:
        self._words[:] = 0
        return self._words

    def _keep(self, words: Array) -> Row:
        """The row, good until the next one is asked for."""
        from pipeline.decoding.row_shelf import Row

        self._words = words
        return Row(words, not words.any(), partial(_copy, words))

    @property
    def _fixed(self) -> int:
        return int(self.state.after if isinstance(self.state, _Content) else self.state)

    @property
    def is_open(self) -> bool:
        return isinstance(self.state, _Content) or super().is_open

    def _is_ample(self, limit: int) -> bool:
        """Whether no token that is legal without a budget could cost more than `limit`; may say no too often."""
        state = self.state
        if isinstance(state, _Content):
            kind, after, fixed = state.kind, state.after, state.after
        elif state in self._guide.hole_of_state:
            (kind, after), fixed = self._guide.hole_of_state[state], state
        else:
            return bool(self._far[state] <= limit)
        return bool(self._far[fixed] <= limit and self._walkers[kind].most + int(self._costs.cost[after]) <= limit)

    @property
    def is_tightened(self) -> bool:
        if self._is_ample(self._limit):
            return False
        tight = self.row().words.copy()
        return not np.array_equal(tight, self._row_of(_NO_LIMIT, self._exact).words)


def _copy(words: Array, address: int) -> None:
    """Writes a row that is needed once."""
    memmove(address, words.ctypes.data, words.nbytes)
