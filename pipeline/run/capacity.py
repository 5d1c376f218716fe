"""Owns how many engines fit on a cluster's machines, and the words for what is missing.  Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.core.sections import ClusterSpec, ModelSpec
from pipeline.engine.vllm_args import RANK_SIZES

__all__ = ["Need", "engines_that_fit", "missing", "need_of"]

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Need:
    """What one engine takes: all of it on one machine, or, with several ranks, a GPU each wherever there is one."""

    cpus: float
    gpus: float
    """Of one rank."""
    ranks: int = 1
    """Places that need not be on one machine; the CPUs go with the first."""

    def __str__(self) -> str:
        if self.ranks == 1:
            return f"{self.gpus:g} GPU and {self.cpus:g} CPU on one machine"
        return f"{self.ranks} times {self.gpus:g} GPU, one of them with {self.cpus:g} CPU beside it"

    @property
    def bundles(self) -> list[dict[str, float]]:
        """The ranks' resources by Ray's names, the first one's first."""
        first = {"CPU": self.cpus, "GPU": self.gpus}
        return [first, *({"GPU": self.gpus} for _ in range(self.ranks - 1))]


def need_of(cluster: ClusterSpec, model: ModelSpec) -> Need:
    """What an engine of this job takes.

    A model that vLLM divides among more GPUs than `cluster.gpus_per_engine` has one rank of one GPU for each, as
    vLLM's Ray executor wants it.
    """
    ranks = math.prod(_size(model, name) for name in RANK_SIZES)
    if ranks == 1 or not cluster.gpus_per_engine or ranks <= cluster.gpus_per_engine:
        return Need(cluster.cpus_per_engine, cluster.gpus_per_engine)
    return Need(cluster.cpus_per_engine, 1.0, ranks)


def _size(model: ModelSpec, name: str) -> int:
    """A size from `model.engine`; one that makes no sense is left for vLLM to refuse."""
    value = model.engine.get(name, 1)
    return value if isinstance(value, int) and value > 0 else 1


def engines_that_fit(machines: Sequence[Mapping[str, float]], need: Need) -> int:
    """How many engines the machines hold together; an engine of one rank never spans two.

    Args:
        machines: each one's resources in all, by Ray's names `CPU` and `GPU`.
        need: of one engine.
    """
    first = sum(_on_one(machine, {"CPU": need.cpus, "GPU": need.gpus}) for machine in machines)
    if need.ranks == 1:
        return first
    return min(first, sum(_on_one(machine, {"GPU": need.gpus}) for machine in machines) // need.ranks)


def _on_one(machine: Mapping[str, float], wanted: Mapping[str, float]) -> int:
    return min(int((machine.get(name, 0.0) + _EPSILON) / amount) for name, amount in wanted.items() if amount > 0)


def missing(machines: Sequence[Mapping[str, float]], need: Need) -> str:
    """What keeps a cluster from running one engine, in a sentence that says what to do."""
    has = "; ".join(f"{machine.get('GPU', 0):g} GPU, {machine.get('CPU', 0):g} CPU" for machine in machines[:8])
    more = f" and {len(machines) - 8} more machines" if len(machines) > 8 else ""
    if engines_that_fit(machines, need):
        return f"one engine needs {need}; all of it is taken (machines: {has}{more}): wait, or end what else runs there"
    advice = "add machines, or lower cluster.gpus_per_engine or cluster.cpus_per_engine"
    if need.gpus and not any(machine.get("GPU", 0.0) for machine in machines):
        advice = "add a machine with a GPU, or set cluster.gpus_per_engine: 0 to run on CPU"
    elif need.ranks > 1:
        advice = "add machines, or lower model.engine.tensor_parallel_size"
    return f"one engine needs {need}; {_lack(machines, need)} (machines: {has or 'none'}{more}): {advice}"


def _lack(machines: Sequence[Mapping[str, float]], need: Need) -> str:
    lacks = [
        name
        for name, amount in (("GPU", need.gpus), ("CPU", need.cpus))
        if amount > max((machine.get(name, 0.0) for machine in machines), default=0.0) + _EPSILON
    ]
    if lacks:
        return f"no machine has enough {' or '.join(lacks)}"
    if need.ranks > 1 and any(_on_one(machine, {"CPU": need.cpus, "GPU": need.gpus}) for machine in machines):
        return "the machines together have fewer GPUs"
    return "no machine has both"
