"""Our own contenders: whole runs, by the same call that a user makes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic_core import to_json

from pipeline.core.outcome import RECORD_STATUSES, Status
from pipeline.engine.base import Completion, Engine, EngineMetrics, Request
from pipeline.run.engines import start_engine
from pipeline.run.messages import EngineContext
from pipeline.storage.columns import is_json
from tests.bench.job import CHECKOUT
from tests.bench.versus.judge import Answer, judged
from tests.bench.versus.task import Moments, Result, Task

__all__ = ["MOMENTS_FILE", "TimedEngine", "ours", "ours_extractive"]

MOMENTS_FILE = "RECORDMILL_BENCH_MOMENTS"
_AUDIT = ("_document_id", "_status", "_raw", "_prompt_tokens", "_output_tokens")


class TimedEngine:
    """An engine that notes when it gave its first completion, and each time when it has none left to give."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_first = True
        self._asked = 0

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def max_model_len(self) -> int:
        return self._engine.max_model_len

    async def generate(self, request: Request) -> Completion:
        self._asked += 1
        try:
            completion = await self._engine.generate(request)
        finally:
            self._asked -= 1
            if not self._asked:
                _note("last")
        if self._is_first:
            self._is_first = False
            _note("first")
        return completion

    def metrics(self) -> EngineMetrics:
        return self._engine.metrics()

    async def close(self) -> None:
        await self._engine.close()


async def timed_engine(context: EngineContext) -> Engine:
    """The engine that a run starts anyway; says when it was ready."""
    engine = await start_engine(context)
    _note("ready")
    return TimedEngine(engine)


def _note(moment: str) -> None:
    with Path(os.environ[MOMENTS_FILE]).open("a") as file:
        file.write(json.dumps([moment, time.monotonic()]) + "\n")


def ours(task: Task, **decoding: Any) -> Result:
    """A whole run, S3 to S3.  Its last result is there with the last completion, which is parsed in a millisecond."""
    from pipeline import read_records
    from pipeline.run.job import run

    spec = task.spec("recordmill", **decoding)
    with tempfile.TemporaryDirectory() as scratch:
        noted = Path(scratch) / "moments"
        os.environ[MOMENTS_FILE] = str(noted)
        ended = run(spec, base=CHECKOUT, engine_factory=timed_engine)
        if ended.report is None or not ended.report.is_complete:
            sys.exit(f"ours: {ended.error}")
        noted_at: dict[str, list[float]] = {}
        for line in noted.read_text().splitlines():
            moment, at = json.loads(line)
            noted_at.setdefault(moment, []).append(at)
    job = task.job()
    fields = list(job.record.model_fields)
    table = read_records(task.output_uri, None, s3=spec.s3).to_table(columns=[*fields, *_AUDIT])
    by_id = {row["_document_id"]: row for row in table.to_pylist()}
    ordered = [by_id[document_id] for document_id in task.table()["document_id"].to_pylist()]
    tokens = ended.report.tokens
    return Result(
        judgement=judged([_answer(row, table.schema, fields) for row in ordered], job.record),
        # Of several engines, one after the other, the first is the one that was waited for.
        moments=Moments(noted_at["ready"][0], noted_at["last"][-1], noted_at["first"][0]),
        prompt_tokens=tokens.prompt_tokens,
        cached_tokens=tokens.cached_tokens,
        output_tokens=[_with_end(row["_output_tokens"] or 0, spec.decoding.max_tokens) for row in ordered],
        seconds={item.phase: item.seconds for item in ended.report.phases},
        steady_share=ended.report.engine.steady_share,
    )


def _answer(row: dict[str, Any], schema: pa.Schema, fields: list[str]) -> Answer:
    """What is stored: a record's columns as JSON, or the text that gave none."""
    if row["_status"] not in RECORD_STATUSES:
        return Answer(row["_raw"] or "")
    record = {name: json.loads(row[name]) if is_json(schema.field(name)) else row[name] for name in fields}
    return Answer(to_json(record).decode(), is_marked=row["_status"] == Status.CLOSED)


def _with_end(tokens: int, max_tokens: int) -> int:
    """The end token counts, as it does for the others: the engine made a step for it.  We do not store it."""
    return tokens + 1 if 0 < tokens < max_tokens else tokens


def ours_extractive(task: Task) -> Result:
    """The same, with fields that are copied from the document."""
    return ours(task, extractive=True)
