"""Owns a preview: a few documents, carried through one engine in this process, and nothing written anywhere."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.document import Document
from pipeline.core.outcome import Outcome
from pipeline.core.spec import JobSpec
from pipeline.run.engines import start_engine
from pipeline.run.in_process import OnExtracted, extract_rows, local_engine
from pipeline.run.messages import EngineFactory
from pipeline.run.preflight import prepare_job
from pipeline.run.sample import Sample, read_document, read_sample
from pipeline.storage.arrow import record_schema, storable

__all__ = ["Preview", "preview"]


@dataclass(frozen=True, slots=True)
class Preview:
    """Documents with what a run would store of them."""

    pairs: tuple[tuple[Document, Outcome], ...]
    engine: str
    documents: int
    """Documents of the whole input."""


def preview(
    spec: JobSpec,
    base: Path,
    count: int,
    *,
    document_id: str | None = None,
    engine_factory: EngineFactory = start_engine,
    on_extracted: OnExtracted | None = None,
) -> Preview:
    """Extracts a sample of a job's documents as a run would.

    Args:
        spec: the job; its output is neither looked at nor written to.
        base: the job's folder.
        count: how many documents, spread over the input; the same ones each time.
        document_id: this document alone, instead.
        engine_factory: starts the engine.
        on_extracted: told of each document done.

    Raises:
        RecordmillError: the job or its input is wrong, or the engine cannot start or died.
    """
    job = prepare_job(spec, base)
    sample = read_sample(spec, count) if document_id is None else read_document(spec, document_id)
    schema = record_schema(job.record, sample.columns)

    async def extracted() -> Preview:
        async with local_engine(job, engine_factory) as engine:
            found = await extract_rows(job, engine, sample.rows, on_extracted)
            outcomes = [storable(item.outcome, schema) for item in found]
            return Preview(tuple(zip(sample.documents, outcomes, strict=True)), engine.name, _documents(sample))

    return asyncio.run(extracted())


def _documents(sample: Sample) -> int:
    return sum(item.rows for item in sample.objects)
