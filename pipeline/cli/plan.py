"""`recordmill plan`: shards, tokens, hours and cost to expect, and which budget to choose."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.cli.output import print_json
from pipeline.cli.preview import extraction_bar
from pipeline.cli.specs import Json, Set, SpecPath, load_spec
from pipeline.core.spec import JobSpec
from pipeline.report.text import compact, count, duration, percent, plural
from pipeline.run.estimate import Estimate, estimate

__all__ = ["register"]


def _finite(value: float | None) -> float | None:
    """A range does not keep out what is no number."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value


Documents = Annotated[int, typer.Option("-n", "--documents", min=1, help="Documents whose prompts are counted.")]
Generations = Annotated[
    int,
    typer.Option("--sample-generations", metavar="N", min=0, help="Extract N of them here, to learn lengths and rate."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", metavar="DOCS", min=1e-6, callback=_finite, help="Documents a second of one engine, if you know it."
    ),
]
Price = Annotated[
    float | None,
    typer.Option(
        metavar="PRICE",
        min=0,
        callback=_finite,
        help="Of one GPU-hour, in any currency; of one engine-hour where engines take no GPU.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command("plan")(plan_command)


def plan_command(
    spec: SpecPath,
    overrides: Set = None,
    documents: Documents = 32,
    generations: Generations = 0,
    rate: Rate = None,
    price: Price = None,
    as_json: Json = False,
) -> int:
    """Say what a run will take: shards, tokens, engine-hours, cost, and how many records each budget would cut short.

    Prompt tokens are counted on a sample. Lengths and rate come from real generations where you ask for some: they
    start one engine on this machine. Nothing is written.

    Example: `recordmill plan jobs/receipts.yaml --sample-generations 16 --price 2.5`
    """
    job = load_spec(spec, overrides)
    with extraction_bar("counting" if not generations else "starting the engine") as on_extracted:
        found = estimate(
            job,
            Path.cwd(),
            documents,
            generations=generations,
            documents_per_s=rate,
            price=price,
            on_extracted=on_extracted,
        )
    if as_json:
        cost = None if found.cost is None else {**asdict(found.cost), "total": found.cost.total}
        print_json({**asdict(found), "output_tokens": found.output_tokens, "cost": cost})
    else:
        Console(highlight=False).print(Group(*_lines(job, found)))
    return 0


def _lines(job: JobSpec, found: Estimate) -> Iterator[RenderableType]:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    facts.add_row("input", _input(found))
    if found.unreadable:
        facts.add_row(
            "", Text(f"{plural(found.unreadable, 'object')} cannot be read and would be left out", style="red")
        )
    facts.add_row("shards", f"{count(found.shards)} of at most {count(found.shard_rows)} documents")
    facts.add_row("prompt", _prompt(found))
    facts.add_row("output", _output(found))
    facts.add_row("time", _time(job, found))
    yield facts
    yield Text()
    if found.budgets:
        yield _budgets(found)
    else:
        yield Text("`--sample-generations 16` shows what each max_tokens would cut short.", style="dim")


def _input(found: Estimate) -> str:
    formats = ", ".join(f"{number} {name}" for name, number in sorted(found.formats.items()))
    kinds = f": {formats}" if len(found.formats) > 1 else ""
    return f"{plural(found.documents, 'document')} in {plural(found.objects, 'object')}{kinds}"


def _prompt(found: Estimate) -> str:
    prompt = found.prompt
    without = f", {found.unextracted} without a text" if found.unextracted else ""
    without += f", {found.too_long} too long for the context" if found.too_long else ""
    return (
        f"{compact(found.prompt_tokens)} tokens; of {plural(prompt.count, 'document')} counted: "
        f"mean {prompt.mean:.0f}, 95% up to {prompt.p95}, most {prompt.most}, "
        f"{found.fixed_tokens} of them the same for all{without}"
    )


def _output(found: Estimate) -> str:
    total = f"{compact(found.output_tokens)} tokens"
    made = found.generated
    if made is None:
        return f"{total}, a guess: {found.likely_tokens} a record, from {found.likely_from}"
    statuses = ", ".join(f"{number} {status}" for status, number in made.by_status.items())
    longer = f", {made.unbounded} longer than {made.largest_budget}" if made.unbounded else ""
    return (
        f"{total}; of {plural(made.output.count, 'generation')}: mean {made.output.mean:.0f}, "
        f"95% up to {made.output.p95}, most {made.output.most}{longer} ({statuses})"
    )


def _time(job: JobSpec, found: Estimate) -> str:
    cost = found.cost
    if cost is None:
        return "not known: give one engine's rate with `--rate`, or let some be generated with `--sample-generations`"
    where = "measured here" if cost.rate_from == "measured" else "given"
    hours = cost.engine_hours
    time = f"{compact(hours)} engine-hours" if hours >= 1 else f"{duration(3600 * hours)} of one engine"
    said = f"{time} at {compact(cost.documents_per_s)} documents a second, {where}"
    if isinstance(job.cluster.engines, int) and job.cluster.engines > 1:
        said += f"; {duration(3600 * cost.engine_hours / job.cluster.engines)} with {job.cluster.engines} engines"
    if cost.total is not None:
        unit = "GPU-hours" if cost.gpu_hours else "engine-hours, which take no GPU,"
        said += f"; {cost.total:,.2f} for {compact(cost.priced_hours)} {unit} at {cost.price:g}"
    if found.generated is not None and cost.rate_from == "measured":
        made = found.generated
        said += f" ({plural(made.output.count - 1, 'document')} in {duration(made.seconds)}: a rough rate)"
    return said


def _budgets(found: Estimate) -> Table:
    word = "closed" if found.policy == "close" else "truncated"
    title = f"expected {word} at each max_tokens"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("max_tokens", justify="right")
    table.add_column(word, justify="right")
    table.add_column("95% interval", justify="right")
    table.add_column("tokens a document", justify="right")
    for row in found.budgets:
        mark = "  ← the job's" if row.max_tokens == found.max_tokens else ""
        table.add_row(
            str(row.max_tokens),
            percent(row.cut_share),
            f"{percent(row.low)} to {percent(row.high)}",
            f"{row.output_tokens:.0f}",
            mark,
        )
    return table
