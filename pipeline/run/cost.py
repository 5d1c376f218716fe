"""Owns what a run costs at one engine's rate.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipeline.core.spec import JobSpec
from pipeline.run.capacity import need_of

__all__ = ["Cost", "RateFrom", "cost_of"]

RateFrom = Literal["measured", "given"]
"""Whether a rate was measured on this machine, or comes from the user."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the run takes at one rate."""

    documents_per_s: float
    """Of one engine."""
    rate_from: RateFrom
    engine_hours: float
    gpu_hours: float
    price: float | None
    """For a GPU-hour, or for an engine-hour where engines take no GPU."""

    @property
    def priced_hours(self) -> float:
        return self.gpu_hours or self.engine_hours

    @property
    def total(self) -> float | None:
        return None if self.price is None else self.price * self.priced_hours


def cost_of(spec: JobSpec, documents: int, documents_per_s: float, rate_from: RateFrom, price: float | None) -> Cost:
    """Hours and price of a run at one engine's rate; more engines take less time and the same hours."""
    hours = documents / documents_per_s / 3600
    need = need_of(spec.cluster, spec.model)
    return Cost(documents_per_s, rate_from, hours, hours * need.gpus * need.ranks, price)
