"""Owns how many engines fit on a cluster's machines, and the words for what is missing.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Need", "engines_that_fit", "missing"]

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Need:
    """What one engine takes, on one machine."""

    cpus: float
    gpus: float

    def __str__(self) -> str:
        return f"{self.gpus:g} GPU and {self.cpus:g} CPU on one machine"


def engines_that_fit(machines: Sequence[Mapping[str, float]], need: Need) -> int:
    """How many engines the machines hold together; an engine never spans two.

    Args:
        machines: each one's resources in all, by Ray's names `CPU` and `GPU`.
        need: of one engine.
    """
    return sum(_on_one(machine, need) for machine in machines)


def _on_one(machine: Mapping[str, float], need: Need) -> int:
    wanted = {"CPU": need.cpus, "GPU": need.gpus}
    return min(int((machine.get(name, 0.0) + _EPSILON) / amount) for name, amount in wanted.items() if amount > 0)


def missing(machines: Sequence[Mapping[str, float]], need: Need) -> str:
    """What keeps a cluster from running one engine, in a sentence that says what to do."""
    has = "; ".join(f"{machine.get('GPU', 0):g} GPU, {machine.get('CPU', 0):g} CPU" for machine in machines[:8])
    more = f" and {len(machines) - 8} more machines" if len(machines) > 8 else ""
    if engines_that_fit(machines, need):
        return f"one engine needs {need}; all of it is taken (machines: {has}{more}): wait, or end what else runs there"
    lacks = [
        name
        for name, amount in (("GPU", need.gpus), ("CPU", need.cpus))
        if amount > max((machine.get(name, 0.0) for machine in machines), default=0.0) + _EPSILON
    ]
    what = f"no machine has enough {' or '.join(lacks)}" if lacks else "no machine has both"
    advice = "add machines, or lower cluster.gpus_per_engine or cluster.cpus_per_engine"
    if need.gpus and not any(machine.get("GPU", 0.0) for machine in machines):
        advice = "add a machine with a GPU, or set cluster.gpus_per_engine: 0 to run on CPU"
    return f"one engine needs {need}; {what} (machines: {has or 'none'}{more}): {advice}"
