"""What a finished completion says of its budget, found by replaying it: pure, after the fact, in any process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        spans: where each extractive value stands in the document, in the order of the record.
    """

    is_complete: bool
    first_tightened: int | None
    slack_tokens: int | None
    spans: tuple[SpanMark, ...]
    _guide: Guide
    _token_ids: Sequence[int]
    _document: SpanDocument | None

    def shaped_fields(self, from_step: int) -> tuple[str, ...]:
        """Paths written at or after a step, each once, in order; first the one that the step may have ended.

        One token may end a value and begin what follows, or hold several whole values: all of them are shaped.
        Replays the completion once more, since few records ask.
        """
        cursor = self._guide.cursor(document=self._document)
        for token_id in self._token_ids[:from_step]:
            cursor.advance(token_id)
        paths = {cursor.path: None} if cursor.is_open else {}
        for token_id in self._token_ids[from_step:]:
            written = cursor.passed(token_id)
            cursor.advance(token_id)
            is_copying = not isinstance(cursor.state, int)
            paths.update(dict.fromkeys((cursor.path,) if is_copying else written))
        return tuple(path for path in paths if path is not None)


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
    spans: list[SpanMark] = []
    for step, token_id in enumerate(token_ids):
        if first_tightened is None and cursor.is_tightened:
            first_tightened = step
        places, path = (cursor.sources(), cursor.path) if document is not None else ((), None)
        if not cursor.advance(token_id):
            raise ValueError(f"id {token_id} at step {step} is not legal under guide {guide.fingerprint}")
        if places and isinstance(cursor.state, int):
            spans.append(SpanMark(path or "", places))
    if first_tightened is None and cursor.is_tightened:
        first_tightened = len(token_ids)
    slack = None if budget_tokens is None else budget_tokens - len(token_ids)
    return Marks(cursor.is_accepting, first_tightened, slack, tuple(spans), guide, token_ids, document)
