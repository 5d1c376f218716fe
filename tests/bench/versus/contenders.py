"""The contenders that need no cluster of their own, and ours: each takes a task and returns its result."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.outcome import RECORD_STATUSES, Cause, Status
from pipeline.run.parse import strip_fence
from tests.bench.job import CHECKOUT
from tests.bench.versus.ray_data import file_system, ray_data
from tests.bench.versus.task import WORKLOADS, Result, Task, is_valid, judged

__all__ = ["CEILING", "CONTENDERS", "OURS"]

OURS = "ours"
CEILING = "engine alone"

RETRY_TEMPERATURE = 0.7
ATTEMPTS = 3


def ours(task: Task, **decoding: Any) -> Result:
    """A whole run, S3 to S3."""
    from pipeline import read_records, run_job

    spec = task.spec("recordmill", **decoding)
    ended = run_job(spec, base=CHECKOUT)
    if ended.report is None or not ended.report.is_complete:
        sys.exit(f"ours: {ended.error}")
    rows = read_records(task.output_uri, None, s3=spec.s3).to_table(
        columns=["_document_id", "_status", "_cause", "_prompt_tokens", "_output_tokens"]
    )
    by_id = {row["_document_id"]: row for row in rows.to_pylist()}
    ordered = [by_id[document_id] for document_id in task.table()["document_id"].to_pylist()]
    valid = sum(row["_status"] in RECORD_STATUSES for row in ordered)
    refused = sum(row["_status"] == Status.INVALID and row["_cause"] == Cause.VALIDATOR for row in ordered)
    phases = {item.phase: item.seconds for item in ended.report.phases}
    return Result(
        complete=valid + refused,
        valid=valid,
        prompt_tokens=sum(row["_prompt_tokens"] or 0 for row in ordered),
        output_tokens=[_with_end(row["_output_tokens"] or 0, spec.decoding.max_tokens) for row in ordered],
        seconds=phases,
    )


def _with_end(tokens: int, max_tokens: int) -> int:
    """The end token counts, as it does for the others: the engine made a step for it.  We do not store it."""
    return tokens + 1 if 0 < tokens < max_tokens else tokens


def ours_extractive(task: Task) -> Result:
    """The same, with fields that are copied from the document."""
    return ours(task, extractive=True)


def ray_data_xgrammar(task: Task) -> Result:
    """Ray Data LLM as it comes: JSON structured output with vLLM's default backend."""
    return ray_data(task, "auto")


def ray_data_outlines(task: Task) -> Result:
    """Ray Data LLM with vLLM's Outlines backend."""
    return ray_data(task, "outlines")


def plain_loop(task: Task) -> Result:
    """`LLM.generate` over all documents with JSON structured output, then a Parquet file."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    job = task.job()
    work = WORKLOADS[task.workload]
    guided = StructuredOutputsParams(json=json.dumps(job.schema))
    params = SamplingParams(temperature=0.0, max_tokens=work.max_tokens, structured_outputs=guided)
    table = _read(task)
    prompts = [job.prompts.build(text).ids for text in table["text"].to_pylist()]
    outputs = _generate(_llm(task), prompts, params)
    texts = [output.outputs[0].text for output in outputs]
    _save(task, table, texts)
    complete, valid = judged(texts, job.record)
    return Result(complete, valid, sum(map(len, prompts)), [len(output.outputs[0].token_ids) for output in outputs])


def validate_and_retry(task: Task) -> Result:
    """No guide: ask, validate with Pydantic, and ask again at a higher temperature, three times at most."""
    from vllm import SamplingParams

    job = task.job()
    work = WORKLOADS[task.workload]
    table = _read(task)
    prompts = [job.prompts.build(text).ids for text in table["text"].to_pylist()]
    llm = _llm(task)
    texts, lengths = [""] * len(prompts), [0] * len(prompts)
    waiting = list(range(len(prompts)))
    for attempt in range(ATTEMPTS):
        params = SamplingParams(
            temperature=RETRY_TEMPERATURE if attempt else 0.0, max_tokens=work.max_tokens, seed=attempt
        )
        outputs = _generate(llm, [prompts[index] for index in waiting], params)
        for index, output in zip(waiting, outputs, strict=True):
            texts[index] = output.outputs[0].text
            lengths[index] += len(output.outputs[0].token_ids)
        waiting = [index for index in waiting if not is_valid(strip_fence(texts[index]), job.record)]
        if not waiting:
            break
    _save(task, table, texts)
    complete, valid = judged(texts, job.record)
    return Result(complete, valid, sum(map(len, prompts)), lengths)


def ceiling(task: Task) -> Result:
    """The engine alone: the same prompts, as many tokens as ours wrote, no guide, no text, nothing read or written.

    It is asked as ours asks, for the final output alone, and is given all requests at once, so that no slot waits.
    """
    return asyncio.run(_ceiling(task))


async def _ceiling(task: Task) -> Result:
    from vllm import AsyncEngineArgs, SamplingParams, TokensPrompt
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM

    job = task.job()
    prompts = [job.prompts.build(text).ids for text in task.table()["text"].to_pylist()]
    lengths = task.output_lengths()
    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(model=task.model_folder, disable_log_stats=True, **task.engine))
    final = RequestOutputKind.FINAL_ONLY

    async def one(index: int) -> None:
        if not lengths[index]:
            return
        exactly = {"max_tokens": lengths[index], "ignore_eos": True}
        params = SamplingParams(temperature=0.0, detokenize=False, output_kind=final, **exactly)
        async for _ in engine.generate(TokensPrompt(prompt_token_ids=prompts[index]), params, f"r{index}"):
            pass

    started = time.perf_counter()
    await asyncio.gather(*(one(index) for index in range(len(prompts))))
    took_s = time.perf_counter() - started
    engine.shutdown()
    return Result(0, 0, sum(map(len, prompts)), lengths, {"decoding_s": took_s})


def _llm(task: Task) -> Any:
    from vllm import LLM

    return LLM(model=task.model_folder, disable_log_stats=True, **task.engine)


def _generate(llm: Any, prompts: Sequence[list[int]], params: Any) -> list[Any]:
    from vllm import TokensPrompt

    outputs: list[Any] = llm.generate([TokensPrompt(prompt_token_ids=ids) for ids in prompts], params, use_tqdm=False)
    return outputs


def _read(task: Task) -> pa.Table:
    return pq.read_table(task.input_uri.removeprefix("s3://").rstrip("/"), filesystem=file_system(task))


def _save(task: Task, table: pa.Table, texts: Sequence[str]) -> None:
    target = task.output_uri.removeprefix("s3://") + "records.parquet"
    pq.write_table(table.append_column("generated_text", pa.array(texts)), target, filesystem=file_system(task))


CONTENDERS = {
    OURS: ours,
    "ours, extractive": ours_extractive,
    "Ray Data LLM": ray_data_xgrammar,
    "Ray Data LLM, outlines": ray_data_outlines,
    "LLM.generate": plain_loop,
    "validate and retry": validate_and_retry,
    CEILING: ceiling,
}
