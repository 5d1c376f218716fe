"""Owns the arithmetic of a sample: numbers in short, and what each budget would do to records of its lengths.  Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["BudgetRow", "Spread", "budget_rows", "share_interval"]

_Z = 1.96
"""Of a 95% interval."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Some numbers in short."""

    count: int
    mean: float
    median: int
    p95: int
    most: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """Raises:
        ValueError: there are none.
        """
        ordered = sorted(values)
        if not ordered:
            raise ValueError("a spread of no numbers")
        return cls(
            len(ordered), sum(ordered) / len(ordered), _quantile(ordered, 0.5), _quantile(ordered, 0.95), ordered[-1]
        )


def _quantile(ordered: Sequence[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """What one `max_tokens` would do."""

    max_tokens: int
    cut_share: float
    """Share of documents whose record would be closed (policy `close`) or truncated."""
    low: float
    high: float
    """Its 95% interval (Wilson, 1927)."""
    output_tokens: float
    """Expected of a document."""


def budget_rows(lengths: Sequence[tuple[int, bool]], budgets: Sequence[int]) -> tuple[BudgetRow, ...]:
    """What each budget would do to records of these lengths.

    Args:
        lengths: tokens of each record, and whether its budget cut it short: then it is longer than any budget asked.
        budgets: values of `max_tokens`.
    """
    if not lengths:
        return ()
    rows = []
    for budget in budgets:
        cut = sum(is_cut or length > budget for length, is_cut in lengths)
        low, high = share_interval(cut, len(lengths))
        tokens = sum(min(length, budget) for length, _ in lengths) / len(lengths)
        rows.append(BudgetRow(budget, cut / len(lengths), low, high, tokens))
    return tuple(rows)


def share_interval(hits: int, total: int) -> tuple[float, float]:
    """The 95% interval of a share (Wilson, 1927): honest for few trials, and for none or all of them."""
    share = hits / total
    spread = _Z * math.sqrt(share * (1 - share) / total + _Z**2 / (4 * total**2))
    middle = share + _Z**2 / (2 * total)
    scale = 1 + _Z**2 / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
