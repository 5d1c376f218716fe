"""The table of one engine's MaskBench results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

__all__ = ["print_report", "summary"]


class _Result(Protocol):
    name: str
    status: str
    stage: str
    message: str
    verdict: str
    compile_s: float | None
    mask_us: list[float]

    @property
    def passes(self) -> bool: ...
    @property
    def accepts_invalid(self) -> bool: ...
    @property
    def refuses_valid(self) -> bool: ...


def _quantiles(values: Sequence[float], unit: str) -> str:
    if not values:
        return "-"
    middle, high = np.percentile(values, (50, 99))
    return f"{middle:.3g} {unit} / {high:.3g} {unit}"


def summary(results: Sequence[_Result]) -> dict[str, Any]:
    """The same as numbers: schemas, the share that passes, and how many fail in which way; compile times in ms.

    `unsound` counts schemas called enforced under which an invalid instance is accepted.
    """
    times = [result.compile_s * 1e3 for result in results if result.compile_s]
    return {
        "schemas": len(results),
        "passes": sum(result.passes for result in results) / len(results),
        "accepts_invalid": sum(result.accepts_invalid for result in results),
        "refuses_valid": sum(result.refuses_valid for result in results),
        "uncompiled": sum(result.status != "compiled" for result in results),
        "enforced": sum(result.verdict == "enforced" for result in results),
        "unsound": sum(result.accepts_invalid and result.verdict == "enforced" for result in results),
        "compile_ms": [float(value) for value in np.percentile(times, (50, 99))] if times else None,
    }


def print_report(name: str, results: Sequence[_Result], *, is_listing: bool) -> None:
    """Prints shares over all schemas; compile and mask times as p50 / p99."""
    total = len(results)
    passed = sum(result.passes for result in results)
    status = Counter(result.status for result in results)
    compiled = [result for result in results if result.compile_s is not None]
    print(f"\n{name}: {total} schemas")
    print(f"  passes all its tests        {passed} ({passed / total:.1%})")
    print(f"  accepts an invalid instance {sum(result.accepts_invalid for result in results)}")
    print(f"  refuses a valid instance    {sum(result.refuses_valid for result in results)}")
    print(f"  did not compile             {total - status['compiled']}: {dict(status - Counter(compiled=total))}")
    print(f"  compile p50 / p99           {_quantiles([r.compile_s * 1e3 for r in compiled if r.compile_s], 'ms')}")
    print(f"  mask p50 / p99              {_quantiles([us for r in compiled for us in r.mask_us], 'us')}")
    for verdict in sorted({result.verdict for result in compiled} - {"-"}):
        some = [result for result in compiled if result.verdict == verdict]
        print(
            f"  of {len(some)} called {verdict}: {sum(r.passes for r in some)} pass, "
            f"{sum(r.accepts_invalid for r in some)} accept an invalid instance, "
            f"{sum(r.refuses_valid for r in some)} refuse a valid one"
        )
    if is_listing:
        _print_list(results)


def _print_list(results: Sequence[_Result]) -> None:
    groups = {
        "accepts an invalid instance, called enforced": [
            r for r in results if r.accepts_invalid and r.verdict == "enforced"
        ],
        "accepts an invalid instance": [r for r in results if r.accepts_invalid and r.verdict != "enforced"],
        "refuses a valid instance": [r for r in results if r.refuses_valid],
        "does not compile": [r for r in results if r.status != "compiled"],
    }
    for title, some in groups.items():
        print(f"  {title}: {len(some)}")
        for result in some:
            print(f"    {result.name}: {result.status} in {result.stage} {result.verdict} {result.message[:160]}")
