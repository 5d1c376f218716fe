"""How a figure grows with the size of a run."""

from __future__ import annotations

import math

__all__ = ["exponent"]


def exponent(sizes: tuple[float, float], values: tuple[float, float]) -> float:
    """Of which power of the size the values are, between two sizes; 1 is linear."""
    return math.log(values[1] / values[0]) / math.log(sizes[1] / sizes[0])
