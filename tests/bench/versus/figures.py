"""Owns the figures of the comparison: of one run, over several, and one contender beside another."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.bench.versus.judge import Judgement

__all__ = ["COLUMNS", "Figures", "ratios", "spread"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One run of one contender.

    Rates are from the moment when the engine could take its first request, the schema compiled, to the last result.
    """

    documents: int
    judgement: Judgement | None
    start_s: float
    """From the start of the process until the engine was ready."""
    first_s: float | None
    """From there to the first result; None where all results come at once."""
    working_s: float
    """From there to the last result."""
    wall_s: float
    """From the start of the process to its end."""
    prompt_tokens: int
    cached_tokens: int | None
    output_tokens: int
    peak_bytes: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    steady_share: float | None = None
    """Share of the time from its first request to its last in which the engine had one; None where nobody says."""

    @property
    def documents_rate(self) -> float | None:
        return self._rate(self.documents)

    @property
    def valid_rate(self) -> float | None:
        return None if self.judgement is None else self._rate(self.judgement.valid)

    @property
    def tokens_rate(self) -> float | None:
        return self._rate(self.output_tokens)

    @property
    def hit_rate(self) -> float | None:
        """Share of the prompt tokens that the prefix cache served."""
        if self.cached_tokens is None or not self.prompt_tokens:
            return None
        return self.cached_tokens / self.prompt_tokens

    def _rate(self, count: int) -> float | None:
        return count / self.working_s if self.working_s > 0 else None

    def counted(self, name: str) -> int | None:
        """One of the judge's counts."""
        return None if self.judgement is None else int(getattr(self.judgement, name))

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """From what `dataclasses.asdict` made of it."""
        judgement = None if stored["judgement"] is None else Judgement(**stored["judgement"])
        return cls(**{**stored, "judgement": judgement})


COLUMNS: Mapping[str, tuple[Callable[[Figures], float | None], int]] = {
    "complete": (lambda run: run.counted("complete"), 0),
    "valid": (lambda run: run.counted("valid"), 0),
    "closed": (lambda run: run.counted("closed"), 0),
    "start s": (lambda run: run.start_s, 1),
    "documents/s": (lambda run: run.documents_rate, 2),
    "valid/s": (lambda run: run.valid_rate, 2),
    "tokens/s": (lambda run: run.tokens_rate, 0),
    "whole s": (lambda run: run.wall_s, 0),
    "GB": (lambda run: run.peak_bytes / 1e9, 1),
}
"""Each column of the table: its value for a run, and the digits after the point."""


def spread(values: Sequence[float], digits: int) -> str:
    """The median, and where runs differ the least and the most; a dash for none."""
    if not values:
        return "–"
    median, low, high = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return median if low == high else f"{median} ({low}–{high})"


def ratios(
    mine: Mapping[int, Figures], others: Mapping[int, Figures], value: Callable[[Figures], float | None]
) -> list[float]:
    """One to another in each round that both came through, in the order of the rounds."""
    found = []
    for turn in sorted(mine.keys() & others.keys()):
        above, below = value(mine[turn]), value(others[turn])
        if above is not None and below:
            found.append(above / below)
    return found
