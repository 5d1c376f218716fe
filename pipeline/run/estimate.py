"""Owns the estimate of a run before it: shards, tokens, engine-hours, cost, and what each budget would cut short.

Prompt tokens are counted, not guessed.  Output tokens come from real generations where some are asked for, and rates
and shares carry an interval, since a few documents say only so much.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import RequestRefusedError
from pipeline.core.outcome import Outcome, Status
from pipeline.core.spec import JobSpec
from pipeline.run.cost import Cost, cost_of
from pipeline.run.engines import start_engine
from pipeline.run.extract import room_to_leave
from pipeline.run.figures import BudgetRow, Spread, budget_rows
from pipeline.run.guidance import guidance_of
from pipeline.run.in_process import OnExtracted, extract_rows, local_engine, with_spec
from pipeline.run.intake import Row
from pipeline.run.lint import likely_tokens
from pipeline.run.messages import EngineFactory
from pipeline.run.plan import make_shards
from pipeline.run.preflight import Job, prepare_job
from pipeline.run.sample import Sample, read_sample
from pipeline.storage.arrow import record_schema
from pipeline.storage.documents import format_of

__all__ = ["Estimate", "Generated", "estimate"]


@dataclass(frozen=True, slots=True)
class Generated:
    """What the sample's generations showed."""

    output: Spread
    unbounded: int
    """Records that even the largest budget tried cut short; their length counts as that budget."""
    largest_budget: int
    documents_per_s: float
    """Without the first one, which warms the engine up; 0 where there is no other."""
    seconds: float
    engine: str
    by_status: dict[str, int]


@dataclass(frozen=True, slots=True)
class Estimate:
    """All that is known of a run before it."""

    objects: int
    formats: dict[str, int]
    """Of these, how many are read as what."""
    unreadable: int
    documents: int
    shards: int
    shard_rows: int
    policy: str
    max_tokens: int
    prompt: Spread
    """Tokens of the prompts that the run would send for the sampled documents."""
    fixed_tokens: int
    """Tokens of a prompt around its document: the same for all, so that the prefix cache serves most of them."""
    prompt_tokens: float
    """Of the whole run."""
    unextracted: int
    """Sampled documents without a prompt: empty, null, unreadable."""
    too_long: int | None
    """Sampled documents that leave no room for a record; None where the context's length is not in the job spec."""
    likely_tokens: int
    likely_from: str
    generated: Generated | None
    budgets: tuple[BudgetRow, ...]
    cost: Cost | None

    @property
    def output_tokens(self) -> float:
        """Of the whole run, at the job's own `max_tokens`."""
        row = next((row for row in self.budgets if row.max_tokens == self.max_tokens), None)
        each = min(self.likely_tokens, self.max_tokens) if row is None else row.output_tokens
        return each * self.documents


def estimate(
    spec: JobSpec,
    base: Path,
    count: int,
    *,
    generations: int = 0,
    documents_per_s: float | None = None,
    price: float | None = None,
    engine_factory: EngineFactory = start_engine,
    on_extracted: OnExtracted | None = None,
) -> Estimate:
    """Estimates a run from a sample of its documents; nothing is written.

    Args:
        spec: the job.
        base: its folder.
        count: documents whose prompts are counted; as many as `generations` at least.
        generations: of these, how many are extracted in this process, with budgets that let them run.
        documents_per_s: the rate of one engine; None to take the measured one.
        price: of one GPU-hour, in any currency; of one engine-hour where engines take no GPU.
        engine_factory: starts the engine.
        on_extracted: told of each generation.

    Raises:
        RecordmillError: the job or its input is wrong, or the engine cannot start or died.
    """
    job = prepare_job(spec, base)
    sample = read_sample(spec, max(count, generations))
    record_schema(job.record, sample.columns)  # raises what a run would refuse: two columns of one name
    counted = _counted(job, sample.rows)
    prompts = counted.prompts
    likely, likely_from = likely_tokens(spec, job.record, job.tokenizer)
    documents = sum(item.rows for item in sample.objects)
    generated: Generated | None = None
    lengths: tuple[tuple[int, bool], ...] = ()
    if generations:
        generated, lengths = asyncio.run(_generated(job, sample, generations, engine_factory, on_extracted))
    cost = None
    if documents_per_s is not None:
        cost = cost_of(spec, documents, documents_per_s, "given", price)
    elif generated is not None and generated.documents_per_s:
        cost = cost_of(spec, documents, generated.documents_per_s, "measured", price)
    return Estimate(
        objects=len(sample.objects),
        formats=dict(Counter(format_of(item.uri, spec.input) for item in sample.objects)),
        unreadable=sum(item.unreadable is not None for item in sample.objects),
        documents=documents,
        shards=len(make_shards(sample.objects, spec.input.shard_rows)),
        shard_rows=spec.input.shard_rows,
        policy=spec.truncation.policy,
        max_tokens=spec.decoding.max_tokens,
        prompt=Spread.of(prompts or [job.prompts.fixed_tokens]),
        fixed_tokens=job.prompts.fixed_tokens,
        prompt_tokens=documents * sum(prompts) / max(1, len(sample.rows)),
        unextracted=len(sample.rows) - len(prompts) - (counted.too_long or 0),
        too_long=counted.too_long,
        likely_tokens=round(sum(likely.values())),
        likely_from=likely_from,
        generated=generated,
        budgets=budget_rows(lengths, [] if generated is None else _up_to(generated.largest_budget, spec, job)),
        cost=cost,
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    prompts: list[int]
    """Tokens of each prompt that a run would send."""
    too_long: int | None
    """Documents whose prompt would leave no room; None where the job does not say how long the context is."""


def _counted(job: Job, rows: Sequence[Row]) -> _Counted:
    """Makes the prompts that a run would make."""
    context = job.spec.model.engine.get("max_model_len")
    limit = None
    if isinstance(context, int):
        limit = context - room_to_leave(job.spec, _least_tokens(job))
    prompts: list[int] = []
    too_long = 0
    for row in rows:
        if isinstance(row.content, Outcome):
            continue
        with contextlib.suppress(RequestRefusedError):
            made = job.prompts.build(row.content.text or "", limit, job.spec.truncation.long_documents)
            if made.is_too_long:
                too_long += 1
            else:
                prompts.append(len(made.ids))
    return _Counted(prompts, None if limit is None else too_long)


def _least_tokens(job: Job) -> int:
    return guidance_of(job.spec, job.guide, job.schema).least_tokens


def _budgets(spec: JobSpec, job: Job) -> tuple[int, ...]:
    """The budgets to choose from: the job's own and its ladder, with some below and above."""
    own = spec.decoding.max_tokens
    least = _least_tokens(job)
    chosen = {own, *spec.truncation.escalate, 2 * own, 4 * own, 3 * own // 2}
    return tuple(sorted(chosen | {tokens for tokens in (own // 4, own // 2, 3 * own // 4) if tokens >= least}))


def _up_to(largest: int, spec: JobSpec, job: Job) -> list[int]:
    """The budgets of which the sample says something."""
    return [budget for budget in _budgets(spec, job) if budget <= largest]


async def _generated(
    job: Job, sample: Sample, count: int, factory: EngineFactory, on_extracted: OnExtracted | None
) -> tuple[Generated, tuple[tuple[int, bool], ...]]:
    """Extracts some rows under the largest budget; their lengths, and whether that budget cut each one short."""
    spec = job.spec
    # Cut documents leave room for the whole budget: with a larger one the sample would read less than the run.
    largest = _budgets(spec, job)[-1] if spec.truncation.long_documents == "reject" else spec.decoding.max_tokens
    roomy = with_spec(
        job,
        spec.model_copy(
            update={
                "decoding": spec.decoding.model_copy(update={"max_tokens": largest}),
                "truncation": spec.truncation.model_copy(update={"escalate": ()}),
            }
        ),
    )
    rows = _evenly([row for row in sample.rows if not isinstance(row.content, Outcome)], count)
    async with local_engine(roomy, factory) as engine:
        # The first document pays for what an engine does once; it is not timed.
        found = [item.outcome for item in await extract_rows(roomy, engine, rows[:1])]
        started = time.perf_counter()
        found += [item.outcome for item in await extract_rows(roomy, engine, rows[1:], on_extracted)]
        seconds = time.perf_counter() - started
        lengths = tuple(
            (outcome.output_tokens, outcome.status in (Status.CLOSED, Status.TRUNCATED))
            for outcome in found
            if outcome.output_tokens is not None
        )
        by_status = {status.value: sum(item.status is status for item in found) for status in Status}
        generated = Generated(
            Spread.of([length for length, _ in lengths] or [0]),
            sum(is_cut for _, is_cut in lengths),
            largest,
            (len(rows) - 1) / seconds if len(rows) > 1 and lengths else 0.0,
            seconds,
            engine.name,
            {name: number for name, number in by_status.items() if number},
        )
        return generated, lengths


def _evenly(items: Sequence[Row], count: int) -> list[Row]:
    return [items[len(items) * number // count] for number in range(count)] if len(items) > count else list(items)
