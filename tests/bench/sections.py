"""Markdown tables of each benchmark's stored figures; what has none is shown as its command printed it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.bench.versus.figures import COLUMNS, Figures
from tests.bench.versus.table import Entry, compared, table_rows

__all__ = ["SECTIONS", "markdown_table"]


def markdown_table(names: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """With the first columns to the left, all others to the right."""
    lines = [names, ["---"] * left + ["---:"] * (len(names) - left), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _versus(figures: Any) -> str:
    entries = [Entry.read(stored) for stored in figures["runs"]]
    rows = table_rows(entries)
    whole = [row if len(row) > 2 else [row[0], *(["–"] * len(COLUMNS))] for row in rows]
    parts = [f"{figures['title']}; medians, and the least and the most of several rounds."]
    parts.append(markdown_table(["contender", *COLUMNS], whole))
    parts += [f"{row[0]}: {row[1]}." for row in rows if len(row) == 2]
    beside = compared(entries, "ours")
    if beside:
        parts.append("Ours to each, within each round:")
        parts.append(markdown_table(["contender", "tokens/s", "valid/s"], beside))
    names = list(dict.fromkeys(name for entry in entries if entry.figures for name in entry.figures.seconds))
    own = [
        [entry.contender, str(entry.turn + 1), *_own(entry.figures, names)]
        for entry in entries
        if entry.figures is not None and entry.figures.seconds
    ]
    if own:
        parts.append("What ours says of a document, in ms (the times of documents overlap):")
        parts.append(markdown_table(["contender", "round", *names, "prefix cache", "engine's share"], own))
    return "\n\n".join(parts)


def _own(figures: Figures, names: Sequence[str]) -> list[str]:
    hit_rate = "–" if figures.hit_rate is None else f"{figures.hit_rate:.0%}"
    times = (figures.seconds.get(name) for name in names)
    share = "–" if figures.steady_share is None else f"{figures.steady_share:.1%}"
    return [*("–" if value is None else f"{1000 * value / figures.documents:.1f}" for value in times), hit_rate, share]


def _masks(figures: Any) -> str:
    parts = []
    names = [
        "engine",
        "compile ms",
        "MB",
        "mask and advance µs",
        "in vLLM's call µs",
        "256 ms",
        "cold max µs",
        "refused",
    ]
    for vocabulary, by_engine in figures["vocabularies"].items():
        models = next(iter(by_engine.values()), {})
        for model in models:
            rows = [[engine, *_mask_cells(found[model], len(names) - 1)] for engine, found in by_engine.items()]
            parts.append(f"**{model}**, `{vocabulary}`, median / 99th percentile")
            parts.append(markdown_table(names, rows))
    parts.append("A `~` is growth of the process, where the engine gives no size.")
    return "\n\n".join(parts)


def _mask_cells(found: Mapping[str, Any], count: int) -> list[str]:
    compiled = f"{found['compile_ms']:.1f}" if "compile_ms" in found else "–"
    if "error" in found:
        return [compiled, str(found["error"])[:80], *(["–"] * (count - 2))]
    both, called = (f"{found[key][0]:.3g} / {found[key][1]:.3g}" for key in ("both_us", "vllm_both_us"))
    size = f"{'~' * found['size_is_growth']}{found['size_mb']:.1f}"
    batch, cold = f"{found['vllm_batch_ms']:.2f}", f"{found['cold_both_us_max']:.0f}"
    return [compiled, size, both, called, batch, cold, str(found["rejected"])]


def _maskbench(figures: Any) -> str:
    names = [
        "engine",
        "passes all",
        "accepts invalid",
        "refuses valid",
        "does not compile",
        "compile ms, median / 99th",
    ]
    rows = [
        [
            engine,
            f"{found['passes']:.1%} of {found['schemas']}",
            str(found["accepts_invalid"]),
            str(found["refuses_valid"]),
            str(found["uncompiled"]),
            "–" if found["compile_ms"] is None else "{:.3g} / {:.3g}".format(*found["compile_ms"]),
        ]
        for engine, found in figures["summary"].items()
    ]
    sound = [
        f"Of ours, {found['enforced']} schemas are called enforced, and {found['unsound']} of them accept an invalid "
        "instance."
        for engine, found in figures["summary"].items()
        if engine == "ours"
    ]
    return "\n\n".join([markdown_table(names, rows), *sound])


def _receipts(figures: Any) -> str:
    variants = figures["variants"]
    statuses = list(dict.fromkeys(status for row in variants for status in row["counts"]))
    fields = list(variants[0]["right"])
    rows = [
        [
            row["variant"],
            *(str(row["counts"].get(status, 0)) for status in statuses),
            *("{} / {}".format(*row["right"][field]) for field in fields),
            str(row["output_tokens"]),
            f"{row['documents'] / row['wall_s']:.2f}",
        ]
        for row in variants
    ]
    return (
        f"{variants[0]['documents']} receipts, {figures['model']}; right exactly / as normalised.\n\n"
        + markdown_table(["variant", *statuses, *fields, "tokens", "documents/s"], rows)
    )


def _simulation(figures: Any) -> str:
    names = [
        "documents",
        "shards",
        "engines",
        "plan s",
        "resume s",
        "driver's CPU s",
        "peak MB",
        "useful",
        "lost engines",
    ]
    rows = [
        [
            f"{item['documents']:,}",
            f"{item['shards']:,}",
            f"{item['engines']:,}",
            f"{item['plan_s']:.2f}",
            f"{item['resume_s']:.2f}",
            f"{item['driver_cpu_s']:.1f}",
            f"{item['peak_bytes'] / 1e6:.0f}",
            f"{item['useful_share']:.1%}",
            f"{item['lost_engines']:,}",
        ]
        for item in figures["growth"]
    ]
    order = [
        [
            item["order"],
            "yes" if item["has_backups"] else "no",
            f"{item['documents']:,}",
            f"{item['engines']:,}",
            f"{item['wall_s']:,.0f}",
            f"{item['least_wall_s']:,.0f}",
            f"{item['idle_s']:,.0f}",
            f"{item['lost_share']:.1%}",
        ]
        for item in figures["order"]
    ]
    told = ["order", "backup attempts", "documents", "engines", "wall s", "least wall s", "idle engine s", "lost"]
    return (
        f"{markdown_table(names, rows, left=0)}\n\nThe order of the shards, where row groups differ in length:\n\n"
        + markdown_table(told, order, left=2)
    )


def _sheets(figures: Any) -> str:
    return "\n\n".join(
        f"{sheet['title']}\n\n{markdown_table(sheet['columns'], sheet['rows'])}" for sheet in figures["sheets"]
    )


SECTIONS: Mapping[str, Callable[[Any], str]] = {
    "versus": _versus,
    "masks": _masks,
    "maskbench": _maskbench,
    "receipts": _receipts,
    "budgets": _sheets,
    "simulation": _simulation,
    "rows": _sheets,
    "apply": _sheets,
    "drafts": _sheets,
    "closing": _sheets,
    "spans": _sheets,
    "memory": _sheets,
}
"""By a benchmark's module."""
