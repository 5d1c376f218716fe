"""A cursor: the position of one sequence in a guide, and what its budget still allows.

The hot path is `advance` and `write_mask`: a table look-up, and writing one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pipeline.decoding.costs import Costs
    from pipeline.decoding.guide import Guide
    from pipeline.decoding.row_shelf import Row

__all__ = ["ILLEGAL", "Cursor", "affordable"]

_UNBOUNDED = 1 << 40
ILLEGAL = -1


class Cursor:
    """Made by `Guide.cursor`.

    With a budget, an id is legal if the state after it can still close within the tokens that are left; so every
    sequence of legal ids ends in a complete record, on the last token at the latest.
    """

    __slots__ = ("_budget", "_costs", "_ended", "_exact", "_far", "_guide", "_left", "_states", "state")

    def __init__(self, guide: Guide, budget_tokens: int | None, reserve: tuple[int, ...]) -> None:
        kept = affordable(guide, budget_tokens, reserve, guide.least_tokens)
        self._start(guide, budget_tokens, guide.closing.costs(kept), guide.closing.costs())

    def _start(self, guide: Guide, budget_tokens: int | None, costs: Costs, exact: Costs) -> None:
        least_tokens = int(exact.cost[0])
        if budget_tokens is not None and budget_tokens < least_tokens:
            raise ValueError(f"a budget of {budget_tokens} tokens; the least record takes {least_tokens}")
        self._guide = guide
        self._budget = _UNBOUNDED if budget_tokens is None else budget_tokens
        self._costs = costs
        self._exact = exact
        self._far = costs.far
        self.reset()

    def reset(self) -> None:
        """Back to the start."""
        self.state: Any = 0
        self._states: list[Any] = [0]
        self._left = self._budget
        self._ended = False

    @property
    def emitted(self) -> int:
        """Ids taken so far, an end-of-sequence id included."""
        return len(self._states) - 1

    @property
    def _fixed(self) -> int:
        """The guide's state, or the one after what is being copied from a document."""
        return int(self.state)

    @property
    def path(self) -> str | None:
        """Path of the field being written; None between fields."""
        return self._guide.field_of(self._fixed)

    def passed(self, token_id: int) -> tuple[str, ...]:
        """Paths of the fields that an id would write in, each once; empty for an id that copies from a document."""
        return self._guide.fields_along(self._fixed, token_id)

    @property
    def is_open(self) -> bool:
        """Whether the field being written could be gone on with."""
        return self._guide.is_open(self.state)

    def sources(self) -> tuple[tuple[int, int], ...]:
        """Where what is being copied from a document stands in it; nothing here, see `SpanCursor`."""
        return ()

    @property
    def is_accepting(self) -> bool:
        """Whether what was taken so far is a complete record."""
        return self._guide.is_accepting(self.state)

    @property
    def least_left(self) -> int:
        """The fewest tokens that complete the record, whatever the budget."""
        return int(self._guide.distance[self.state])

    @property
    def is_terminated(self) -> bool:
        """Whether an end-of-sequence id was taken."""
        return self._ended

    def _after(self, token_id: int) -> Any:
        """The state after `token_id`, or `ILLEGAL`."""
        guide, state = self._guide, self.state
        if token_id in guide.eos_ids:
            return state if guide.is_accepting(state) else ILLEGAL
        target = guide.next_state(state, token_id)
        limit = self._left - 1
        if target < 0 or self._far[state] <= limit:
            return target
        if self._costs.cost[target] <= limit and not self._costs.has_gate(state):
            return target
        return target if self._row_within(limit).has(token_id) else ILLEGAL

    def advance(self, token_id: int) -> bool:
        """Takes one id; False, and nothing changes, where it is illegal or the sequence has ended."""
        if self._ended:
            return False
        target = self._after(token_id)
        if target == ILLEGAL:
            return False
        self._ended = token_id in self._guide.eos_ids
        self.state = target
        self._states.append(target)
        self._left -= 1
        return True

    def rollback(self, count: int) -> None:
        """Gives back the last `count` ids.

        Raises:
            ValueError: fewer were taken.
        """
        if not 0 <= count <= self.emitted:
            raise ValueError(f"cannot give back {count} of {self.emitted} ids")
        if count:
            del self._states[-count:]
            self.state = self._states[-1]
            self._left += count
            self._ended = False

    def forced(self) -> bytes:
        """What must follow, as far as the schema leaves no choice; empty after the end, or where there is one."""
        return b"" if self._ended else self._guide.forced(self.state)

    def validate(self, token_ids: Iterable[int]) -> list[int]:
        """The longest legal prefix; the cursor stays where it is."""
        legal: list[int] = []
        for token_id in token_ids:
            if not self.advance(token_id):
                break
            legal.append(token_id)
        self.rollback(len(legal))
        return legal

    def row(self) -> Row:
        """The legal ids now."""
        limit = self._left - 1
        if self._far[self.state] <= limit:
            return self._guide.row(self.state)
        return self._row_within(limit)

    def _row_within(self, limit: int) -> Row:
        """The legal ids after which closing costs at most `limit`.

        What is kept back for later fields gives way where it would forbid everything.
        """
        row = self._row_of(limit, self._costs)
        return self._row_of(limit, self._exact) if row.is_empty and self._costs is not self._exact else row

    def _row_of(self, limit: int, costs: Costs) -> Row:
        return self._fixed_row(self.state, limit, costs)

    def _fixed_row(self, state: int, limit: int, costs: Costs) -> Row:
        if costs.far[state] <= limit:
            return self._guide.row(state)
        return self._guide.tight_row(state, limit, costs)

    def write_mask(self, address: int) -> None:
        """Writes the legal ids' bits, `words` 32-bit words, to `address`."""
        row = self.row()
        (row.write or self._guide.writer(row))(address)

    @property
    def is_tightened(self) -> bool:
        """Whether the budget forbids, at this step, an id that the schema allows."""
        if self._far[self.state] <= self._left - 1:
            return False
        return not np.array_equal(self.row().words, self._guide.row(self.state).words)


def affordable(guide: Guide, budget_tokens: int | None, reserve: Sequence[int], least_tokens: int) -> tuple[int, ...]:
    """The reserve, scaled down to what the budget leaves beyond the least record's tokens."""
    if budget_tokens is None or not any(reserve):
        return ()
    # Nothing to keep back is not the same as no reserve: text that could be null still makes room for the rest.
    total = int(guide.closing.kept_back(tuple(reserve))[0])
    spare = budget_tokens - least_tokens
    if total <= spare:
        return tuple(reserve)
    return tuple(tokens * spare // total for tokens in reserve)
