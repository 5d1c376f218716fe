"""What a finished completion says of its budget, found by replaying it: pure, after the fact, in any process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from pipeline.decoding.guide import Guide
from pipeline.decoding.span_document import SpanDocument

__all__ = ["Marks", "SpanMark", "review"]


@dataclass(frozen=True, slots=True)
class SpanMark:
    """One extractive value: the path of its field, without indices, and its places `[start, end)` in characters."""

    path: str
    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Marks:
    """Read off one completion.

    Attributes:
        is_complete: whether the ids spell a whole record.
        first_tightened: the first step at which the budget forbade an id that the schema allows; None if none did.
            Before this step the completion is the one that no budget at all would have given.
        slack_tokens: budget left when the record ended; None without a budget.
        fields: what each step wrote in, by path, in order: one token may hold several whole values.
        open_fields: the field that could still be gone on with before each step, and at the end; None where none could.
        spans: where each extractive value stands in the document, in the order of the record.
    """

    is_complete: bool
    first_tightened: int | None
    slack_tokens: int | None
    fields: tuple[tuple[str, ...], ...]
    open_fields: tuple[str | None, ...]
    spans: tuple[SpanMark, ...] = ()

    def shaped_fields(self, from_step: int) -> tuple[str, ...]:
        """Paths written at or after a step, each once, in order; first the one that the step may have ended.

        One token may end a value and begin what follows: the value is shaped too.
        """
        ended = (path for path in self.open_fields[from_step : from_step + 1] if path is not None)
        return tuple(dict.fromkeys((*ended, *chain.from_iterable(self.fields[from_step:]))))


def review(
    guide: Guide,
    token_ids: Sequence[int],
    budget_tokens: int | None,
    reserve: Sequence[int] = (),
    document: SpanDocument | None = None,
) -> Marks:
    """Replays `token_ids` (without the end-of-sequence id) under the budget they were decoded with.

    Raises:
        ValueError: an id is illegal under the guide or the budget, so they were not decoded with them.
    """
    cursor = guide.cursor(budget_tokens, reserve, document)
    first_tightened: int | None = None
    fields: list[tuple[str, ...]] = []
    open_fields: list[str | None] = []
    spans: list[SpanMark] = []
    for step, token_id in enumerate(token_ids):
        if first_tightened is None and cursor.is_tightened:
            first_tightened = step
        places, path = cursor.sources(), cursor.path
        open_fields.append(path if cursor.is_open else None)
        written = cursor.passed(token_id)
        if not cursor.advance(token_id):
            raise ValueError(f"id {token_id} at step {step} is not legal under guide {guide.fingerprint}")
        if places and isinstance(cursor.state, int):
            spans.append(SpanMark(path or "", places))
        if not isinstance(cursor.state, int) and cursor.path is not None:
            written = (cursor.path,)
        fields.append(written)
    slack = None if budget_tokens is None else budget_tokens - len(token_ids)
    if first_tightened is None and cursor.is_tightened:
        first_tightened = len(token_ids)
    open_fields.append(cursor.path if cursor.is_open else None)
    return Marks(cursor.is_accepting, first_tightened, slack, tuple(fields), tuple(open_fields), tuple(spans))
