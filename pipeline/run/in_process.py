"""Owns one engine in this very process, for looking before a run: no Ray, and nothing is written to storage."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pipeline.core.spec import JobSpec
from pipeline.engine.base import Engine
from pipeline.engine.shared_guide import shared_guide_file
from pipeline.run.capacity import need_of
from pipeline.run.extract import Extracted, Extractor
from pipeline.run.guidance import guidance_of
from pipeline.run.intake import Row
from pipeline.run.messages import EngineContext, EngineFactory
from pipeline.run.preflight import Job

__all__ = ["OnExtracted", "extract_rows", "extractor_of", "local_engine", "with_spec"]

OnExtracted = Callable[[int, int], None]
"""Told after each document how many are done, and of how many."""


def with_spec(job: Job, spec: JobSpec) -> Job:
    """The same job with another spec, which must differ in budgets and policies only: the guide is kept."""
    return replace(job, spec=spec)


@contextlib.asynccontextmanager
async def local_engine(job: Job, factory: EngineFactory) -> AsyncIterator[Engine]:
    """An engine that a job asks for; it ends with the block.

    Raises:
        EngineStartError: it cannot start as configured.
    """
    paths: dict[str, str] = {}
    if job.guide is not None:
        paths[job.guide.fingerprint] = str(shared_guide_file(job.guide.fingerprint, job.guide.to_bytes()))
    engine = await factory(EngineContext(_without_ray(job.spec), paths))
    try:
        yield engine
    finally:
        await engine.close()


def _without_ray(spec: JobSpec) -> JobSpec:
    """An engine of several ranks keeps them on this machine."""
    if need_of(spec.cluster, spec.model).ranks == 1:
        return spec
    engine = {"distributed_executor_backend": "mp", **spec.model.engine}
    return spec.model_copy(update={"model": spec.model.model_copy(update={"engine": engine})})


async def extract_rows(
    job: Job, engine: Engine, rows: Sequence[Row], on_extracted: OnExtracted | None = None
) -> list[Extracted]:
    """What a run would make of these rows, in their order, as many at a time as the job allows.

    Raises:
        EngineDeadError: the engine is gone.
    """
    slots = asyncio.Semaphore(job.spec.cluster.concurrency)
    done = 0

    with ThreadPoolExecutor(1, "tokenise") as tokenising:
        extractor = extractor_of(job, engine, tokenising)

        async def one(row: Row) -> Extracted:
            nonlocal done
            async with slots:
                extracted = await extractor.extract(row, f"local-{row.index}")
            done += 1
            if on_extracted is not None:
                on_extracted(done, len(rows))
            return extracted

        tasks = [asyncio.create_task(one(row)) for row in rows]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()


def extractor_of(job: Job, engine: Engine, tokenising: ThreadPoolExecutor) -> Extractor:
    """As a worker makes it; `tokenising` has one thread."""
    return Extractor(
        job.spec, job.record, engine, guidance_of(job.spec, job.guide, job.schema), job.prompts, tokenising
    )
