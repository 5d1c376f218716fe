"""Owns the question whether a record's tokens end in a repetition, and where that begins."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.engine.repetition import LONGEST_PATTERN_TOKENS

__all__ = ["repetition_start"]


_COPIES = 4


def repetition_start(token_ids: Sequence[int], *, least_tokens: int = 48) -> int | None:
    """Where the second copy of a pattern begins that the tokens end in, or None.

    A pattern counts when it is at most `LONGEST_PATTERN_TOKENS` long, stands at least four times in a row at the end,
    and its copies are at least `least_tokens` together.
    """
    size = len(token_ids)
    for period in range(1, min(LONGEST_PATTERN_TOKENS, size // _COPIES) + 1):
        run = 0
        while run < size - period and token_ids[size - 1 - run] == token_ids[size - 1 - run - period]:
            run += 1
        repeated = run + period
        if repeated >= max(_COPIES * period, least_tokens):
            return size - repeated + period
    return None
