"""The contenders that ask vLLM in their own process: a loop, validate and retry, and the engine alone.

An engine is ready when it has answered one request of one token, so that what is compiled at a first request counts as
start.  Reading and tokenising come after that, as they do in whole jobs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.unguided import Unguided
from tests.bench.versus.judge import Answer, is_valid, judged
from tests.bench.versus.ray_data import file_system
from tests.bench.versus.task import WORKLOADS, Moments, Result, Task

__all__ = ["ceiling", "plain_loop", "validate_and_retry"]

RETRY_TEMPERATURE = 0.7
ATTEMPTS = 3


def plain_loop(task: Task) -> Result:
    """`LLM.generate` over all documents with JSON structured output, then a Parquet file."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    job = task.job()
    work = WORKLOADS[task.workload]
    guided = StructuredOutputsParams(json=json.dumps(job.schema))
    params = SamplingParams(temperature=0.0, max_tokens=work.max_tokens, structured_outputs=guided)
    llm = _llm(task)
    _generate(llm, [job.prompts.build("").ids], SamplingParams(max_tokens=1, structured_outputs=guided))
    ready = time.monotonic()
    table = _read(task)
    prompts = [job.prompts.build(text).ids for text in table["text"].to_pylist()]
    outputs = _generate(llm, prompts, params)
    last = time.monotonic()
    texts = [output.outputs[0].text for output in outputs]
    _save(task, table, texts)
    return Result(
        judgement=judged(map(Answer, texts), job.record),
        moments=Moments(ready, last),
        prompt_tokens=sum(map(len, prompts)),
        cached_tokens=sum(output.num_cached_tokens or 0 for output in outputs),
        output_tokens=[len(output.outputs[0].token_ids) for output in outputs],
    )


def validate_and_retry(task: Task) -> Result:
    """No guide: ask, validate with Pydantic, and ask again at a higher temperature, three times at most.

    It stops after the record, and takes the first object of what was said.
    """
    job = task.job()
    work = WORKLOADS[task.workload]
    engine = Unguided(task.model_folder, task.engine)
    engine.ask([job.prompts.build("").ids], [1])
    ready = time.monotonic()
    table = _read(task)
    prompts = [job.prompts.build(text).ids for text in table["text"].to_pylist()]
    texts, lengths = [""] * len(prompts), [0] * len(prompts)
    waiting = list(range(len(prompts)))
    for attempt in range(ATTEMPTS):
        said = engine.ask(
            [prompts[index] for index in waiting],
            [work.max_tokens] * len(waiting),
            temperature=RETRY_TEMPERATURE if attempt else 0.0,
            seed=attempt,
        )
        for index, answer in zip(waiting, said, strict=True):
            texts[index] = answer.text
            lengths[index] += answer.tokens
        waiting = [index for index in waiting if not is_valid(texts[index], job.record)]
        if not waiting:
            break
    last = time.monotonic()
    _save(task, table, texts)
    return Result(
        judgement=judged(map(Answer, texts), job.record),
        moments=Moments(ready, last),
        prompt_tokens=sum(map(len, prompts)),
        output_tokens=lengths,
    )


def ceiling(task: Task, *, in_engine_core: bool = False) -> Result:
    """The engine alone: the same prompts, as many tokens as ours wrote, no guide, no text, nothing read or written.

    It is asked as ours asks, for the final output alone, and is given all requests at once, so that no slot waits.  Its
    prompts are made before it is ready.

    Args:
        in_engine_core: whether the model shares the engine core's process, as ours does without a GPU.
    """
    return asyncio.run(_ceiling(task, in_engine_core))


async def _ceiling(task: Task, in_engine_core: bool) -> Result:
    from vllm import AsyncEngineArgs, SamplingParams, TokensPrompt
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.executor.uniproc_executor import UniProcExecutor

    job = task.job()
    prompts = [job.prompts.build(text).ids for text in task.table()["text"].to_pylist()]
    lengths = task.output_lengths()
    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=task.model_folder,
            disable_log_stats=True,
            distributed_executor_backend=UniProcExecutor if in_engine_core else None,
            **task.engine,
        )
    )
    cached = 0
    done: list[float] = []

    async def one(name: str, prompt: list[int], length: int) -> None:
        nonlocal cached
        params = SamplingParams(
            temperature=0.0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            max_tokens=length,
            ignore_eos=True,
        )
        async for output in engine.generate(TokensPrompt(prompt_token_ids=prompt), params, name):
            cached += output.num_cached_tokens or 0
        done.append(time.monotonic())

    await one("warm", job.prompts.build("").ids, 1)
    cached = 0
    done.clear()
    ready = time.monotonic()
    asked = zip(prompts, lengths, strict=True)
    await asyncio.gather(*(one(f"r{number}", *each) for number, each in enumerate(asked) if each[1]))
    engine.shutdown()
    return Result(
        judgement=None,
        moments=Moments(ready, max(done), min(done)),
        prompt_tokens=sum(map(len, prompts)),
        cached_tokens=cached,
        output_tokens=lengths,
    )


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
