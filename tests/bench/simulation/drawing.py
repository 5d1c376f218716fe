"""What a simulation prints and draws: tables, how figures grow, and a picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from tests.bench.simulation.growth import exponent
from tests.bench.simulation.measured import Figures
from tests.bench.simulation.order import Tail

__all__ = ["draw", "growth", "growth_table", "order_table"]


def growth_table(found: Sequence[Figures]) -> Table:
    """A line a size."""
    table = Table(title="the driver's own code on a simulated cluster", title_justify="left")
    columns = ("documents", "shards", "engines", "plan", "plan file", "plan peak", "resume", "driver CPU", "a shard")
    for name in (*columns, "peak", "wall", "useful", "lost engines", "failed", "attempts"):
        table.add_column(name, justify="right")
    for item in found:
        table.add_row(
            f"{item.documents:,}",
            f"{item.shards:,}",
            f"{item.engines:,}",
            f"{item.plan_s:.2f} s",
            f"{item.plan_file_bytes / 1e6:.2f} MB",
            f"{item.plan_peak_bytes / 1e6:.0f} MB",
            f"{item.resume_s:.2f} s",
            f"{item.driver_cpu_s:.1f} s",
            f"{1e6 * item.driver_cpu_s / item.shards:.0f} µs",
            f"{item.peak_bytes / 1e6:.0f} MB",
            f"{item.simulated_s:,.0f} s",
            f"{item.useful_share:.1%}",
            f"{item.lost_engines:,}",
            f"{item.failed_attempts:,}",
            f"{item.attempts:,}",
        )
    return table


def order_table(found: Sequence[Tail]) -> Table:
    """A line a way of handing out."""
    table = Table(title="the order of the shards, where row groups differ in length", title_justify="left")
    columns = (
        "documents",
        "engines",
        "order",
        "backup attempts",
        "wall",
        "least wall",
        "idle at the end",
        "doubled",
        "lost",
    )
    for name in (*columns, "attempts"):
        table.add_column(name, justify="left" if name == "order" else "right")
    for item in found:
        table.add_row(
            f"{item.documents:,}",
            f"{item.engines:,}",
            item.order,
            "yes" if item.has_backups else "no",
            f"{item.wall_s:,.0f} s",
            f"{item.least_wall_s:,.0f} s",
            f"{item.idle_s:,.0f} engine-s",
            f"{item.doubled_s:,.0f} engine-s",
            f"{item.lost_share:.1%}",
            f"{item.attempts:,.0f}",
        )
    return table


def growth(found: Sequence[Figures]) -> str:
    """How each grows with the number of documents: the exponent between the two largest sizes; 1 is linear."""
    if len(found) < 2:
        return ""
    small, large = found[-2], found[-1]
    sizes = small.documents, large.documents
    pairs = {
        "plan time": (small.plan_s, large.plan_s),
        "resume": (small.resume_s, large.resume_s),
        "driver CPU": (small.driver_cpu_s, large.driver_cpu_s),
        "peak memory": (small.peak_bytes, large.peak_bytes),
    }
    return "growth, as a power of the documents: " + ", ".join(
        f"{name} {exponent(sizes, values):.2f}" for name, values in pairs.items()
    )


def draw(found: Sequence[Figures], path: Path) -> None:
    """Each figure over the number of documents, both axes logarithmic, beside a line that is linear."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot

    sizes = [item.documents for item in found]
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    series = {
        "plan": [item.plan_s for item in found],
        "resume": [item.resume_s for item in found],
        "driver CPU, whole run": [item.driver_cpu_s for item in found],
    }
    for name, values in series.items():
        times.plot(sizes, values, marker="o", label=name)
    last = series["driver CPU, whole run"][-1]
    times.plot(sizes, [last * size / sizes[-1] for size in sizes], linestyle=":", color="gray", label="linear")
    times.set(title="time", ylabel="seconds")
    memory.plot(sizes, [item.peak_bytes / 1e6 for item in found], marker="o", label="driver, peak")
    memory.plot(sizes, [item.plan_file_bytes / 1e6 for item in found], marker="o", label="plan file")
    memory.set(title="size", ylabel="MB")
    for axes in (times, memory):
        axes.set(xscale="log", yscale="log", xlabel="documents")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    figure.savefig(path, metadata={"Date": None})
