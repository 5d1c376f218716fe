"""Our goals, and what the stored figures say of each."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.bench.simulation.growth import exponent
from tests.bench.versus.contenders import CEILINGS
from tests.bench.versus.figures import Figures, ratios
from tests.bench.versus.table import Entry, by_contender

__all__ = ["GOALS", "Goal", "Reached"]

_Stored = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reached:
    """What was measured, in the goal's unit; `is_met` is None where nothing was, or where there is no bound."""

    values: tuple[float, ...]
    is_met: bool | None

    def shown(self, digits: int) -> str:
        """The median, and the least and the most."""
        if not self.values:
            return "no figures yet"
        median, low, high = (
            f"{value:,.{digits}f}" for value in (statistics.median(self.values), min(self.values), max(self.values))
        )
        return median if low == high else f"{median} ({low}–{high})"


@dataclass(frozen=True, slots=True)
class Goal:
    """One of our goals: what is wanted of the figures of one benchmark.

    `of_each` holds every value against the bound (cases of one kind), else their median (repeats of one measurement).
    """

    text: str
    target: str
    benchmark: str
    values: Callable[[Any], Iterable[float]]
    bound: float | None
    """None where a figure is shown beside a goal and is none itself."""
    is_least: bool = False
    of_each: bool = True
    digits: int = 1

    def reached(self, stored: _Stored) -> Reached:
        """From the figures of each benchmark, by name."""
        figures = stored.get(self.benchmark)
        values = () if figures is None else tuple(self.values(figures))
        if not values:
            return Reached((), None)
        if self.bound is None:
            return Reached(values, None)
        held = values if self.of_each else (statistics.median(values),)
        bound = self.bound
        return Reached(values, all(value >= bound if self.is_least else value <= bound for value in held))


def _masks(key: str, place: int | None = None, model: str | None = None) -> Callable[[Any], list[float]]:
    """Of ours with a budget and without, over vocabularies, and all record types or one; infinite where it failed."""

    def values(figures: Any) -> list[float]:
        found = [
            result.get(key, math.inf)
            for by_engine in figures["vocabularies"].values()
            for engine in ("ours", "ours-budget")
            for name, result in by_engine.get(engine, {}).items()
            if model in (None, name)
        ]
        return found if place is None else [value if value == math.inf else value[place] for value in found]

    return values


def _ours_to(other: str, value: Callable[[Figures], float | None]) -> Callable[[Any], list[float]]:
    """In each round that both came through."""

    def values(figures: Any) -> list[float]:
        runs = by_contender([Entry.read(stored) for stored in figures["runs"]])
        return ratios(runs.get("ours", {}), runs.get(other, {}), value)

    return values


def _largest(key: str, factor: float = 1.0) -> Callable[[Any], list[float]]:
    return lambda figures: [factor * max(figures["growth"], key=lambda item: item["documents"])[key]]


def _growth(figures: Any) -> list[float]:
    """Exponents between the two largest sizes, of planning, resuming and the driver's time."""
    if len(figures["growth"]) < 2:
        return []
    small, large = sorted(figures["growth"], key=lambda item: item["documents"])[-2:]
    sizes = small["documents"], large["documents"]
    return [exponent(sizes, (small[key], large[key])) for key in ("plan_s", "resume_s", "driver_cpu_s")]


def _summary(key: str, factor: float = 1.0) -> Callable[[Any], list[float]]:
    return lambda figures: [factor * figures["summary"]["ours"][key]]


def _steady_share(figures: Any) -> list[float]:
    """Of ours, in percent, in each round."""
    entries = [Entry.read(stored) for stored in figures["runs"]]
    shares = [run.steady_share for run in by_contender(entries).get("ours", {}).values()]
    return [100 * share for share in shares if share is not None]


def _tokens(run: Figures) -> float | None:
    return run.tokens_rate


def _valid(run: Figures) -> float | None:
    return run.valid_rate


GOALS = (
    Goal("Mask and advance, rows made, median", "3 µs", "masks", _masks("both_us", 0), 3.0),
    Goal("Mask and advance, rows made, 99th percentile", "5 µs", "masks", _masks("both_us", 1), 5.0),
    Goal("The same in vLLM's call, median", "15 µs", "masks", _masks("vllm_both_us", 0), 15.0),
    Goal("Masks of a batch of 256", "2 ms", "masks", _masks("vllm_batch_ms"), 2.0),
    Goal("Compiling three fields", "20 ms", "masks", _masks("compile_ms", model="three fields"), 20.0, digits=0),
    Goal("Compiling ten fields, nested", "100 ms", "masks", _masks("compile_ms", model="ten nested"), 100.0, digits=0),
    Goal(
        "Compiling fifteen fields, nested lists",
        "500 ms",
        "masks",
        _masks("compile_ms", model="fifteen nested, lists"),
        500.0,
        digits=0,
    ),
    Goal(
        "Compiling strings bounded at 300",
        "1,500 ms",
        "masks",
        _masks("compile_ms", model="strings of 80 + 300"),
        1500.0,
        digits=0,
    ),
    Goal("Compiling `HttpUrl`", "3,000 ms", "masks", _masks("compile_ms", model="HttpUrl"), 3000.0, digits=0),
    Goal("Size of a guide", "10 MB", "masks", _masks("size_mb"), 10.0),
    Goal("MaskBench: schemas that pass all tests", "95 %", "maskbench", _summary("passes", 100), 95.0, is_least=True),
    Goal(
        "MaskBench: enforced schemas that accept an invalid instance",
        "0",
        "maskbench",
        _summary("unsound"),
        0.0,
        digits=0,
    ),
    *(
        Goal(
            f"Tokens/s to the {ceiling}, {name}",
            "0.95",
            f"versus-{name}",
            _ours_to(ceiling, _tokens),
            0.95,
            is_least=True,
            of_each=False,
            digits=2,
        )
        for ceiling in CEILINGS
        for name in ("receipts", "notes")
    ),
    *(
        Goal(
            f"Valid records/s to {other}, {name}",
            target,
            f"versus-{name}",
            _ours_to(other, _valid),
            bound,
            is_least=True,
            of_each=False,
            digits=2,
        )
        for name, other, target, bound in (
            ("notes", "Ray Data LLM", "1.3", 1.3),
            ("notes", "Ray Data LLM, compact", "1.3", 1.3),
            ("receipts", "Ray Data LLM", "ahead", 1.0),
            ("receipts", "Ray Data LLM, compact", "none", None),
        )
    ),
    *(
        Goal(
            f"Time with a request in the engine, from the first to the last, {name}",
            "97 %",
            f"versus-{name}",
            _steady_share,
            97.0,
            is_least=True,
            of_each=False,
        )
        for name in ("receipts", "notes")
    ),
    Goal("Planning 10 million documents, listing left out", "60 s", "simulation", _largest("plan_s"), 60.0, digits=2),
    Goal(
        "Peak memory of the driver, Ray left out",
        "1,000 MB",
        "simulation",
        _largest("peak_bytes", 1e-6),
        1000.0,
        digits=0,
    ),
    Goal("Useful engine time", "98 %", "simulation", _largest("useful_share", 100), 98.0, is_least=True),
    Goal("Resuming a half-done run, listing left out", "30 s", "simulation", _largest("resume_s"), 30.0, digits=2),
    Goal("Growth, as a power of the documents", "1.15 (1 is linear)", "simulation", _growth, 1.15, digits=2),
)
