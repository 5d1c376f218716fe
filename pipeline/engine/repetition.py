"""When a completion counts as a runaway."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["COPIES", "LONGEST_PATTERN_TOKENS", "ends_in_repetition"]

LONGEST_PATTERN_TOKENS = 24
COPIES = 20
"""A pattern of at most `LONGEST_PATTERN_TOKENS` that stands `COPIES` times in a row ends the completion.  vLLM looks
for it at each token of each sequence, so both are kept small; what they miss, the budget ends."""


def ends_in_repetition(token_ids: Sequence[int]) -> bool:
    """As vLLM's `repetition_detection` has it with these bounds."""
    for size in range(1, min(LONGEST_PATTERN_TOKENS, len(token_ids) // COPIES) + 1):
        tail = token_ids[-size * COPIES :]
        if all(tail[i] == tail[i + size] for i in range(len(tail) - size)):
            return True
    return False
