"""Ray Data LLM, as its documentation shows: read Parquet, vLLM engine stage, write Parquet."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs

from tests.bench.versus.judge import Answer, judged
from tests.bench.versus.task import WORKLOADS, Moments, Result, Task

__all__ = ["file_system", "ray_data"]


def file_system(task: Task) -> pyarrow.fs.S3FileSystem:
    """Arrow's own, with credentials from the environment."""
    scheme, _, host = task.endpoint_url.partition("://")
    return pyarrow.fs.S3FileSystem(endpoint_override=host, scheme=scheme, region=task.region)


@functools.cache
def _prompts(task: Task) -> Any:
    """Once in each process of Ray Data's."""
    return task.job().prompts


def ray_data(task: Task, guide: Mapping[str, Any]) -> Result:
    """A whole run, S3 to S3; chat, tokenise and detokenise stages are off, since prompts come as token ids.

    Ray is told of two CPUs more than there are, so that its reading and writing tasks do not wait for the engine's.
    Its engine stage keeps 1.1 times `max_num_seqs` requests in the engine, and reads outputs as they grow: both are
    its own ways.

    Args:
        task: what to do.
        guide: vLLM's `structured_outputs_config`.
    """
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    from tests.bench.versus.timed_stage import TimedStage

    cpus = os.cpu_count() or 1
    threads = {} if task.has_gpu else {"OMP_NUM_THREADS": str(cpus)}
    ray.init(address="local", num_cpus=cpus + 2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    work = WORKLOADS[task.workload]
    job = task.job()
    engine = {**task.engine, "disable_log_stats": True, "structured_outputs_config": dict(guide)}
    config = vLLMEngineProcessorConfig(
        model_source=task.model_folder,
        engine_kwargs=engine,
        log_engine_metrics=False,
        placement_group_config=None if task.has_gpu else {"bundles": [{"CPU": 1}]},
        concurrency=1,
        chat_template_stage=False,
        tokenize_stage=False,
        detokenize_stage=False,
        runtime_env={"env_vars": threads},
    )
    sampling = {
        "temperature": 0.0,
        "max_tokens": work.max_tokens,
        # As text: a nested value goes through a table, where 160 beside 0.5 becomes 160.0, which is no maxLength.
        "structured_outputs": {"json": json.dumps(job.schema)},
    }

    def before(row: dict[str, Any]) -> dict[str, Any]:
        ids = _prompts(task).build(row["text"]).ids
        return {"document_id": row["document_id"], "tokenized_prompt": ids, "sampling_params": sampling}

    def after(row: dict[str, Any]) -> dict[str, Any]:
        names = ("document_id", "generated_text", "num_input_tokens", "num_generated_tokens", "ready_at", "done_at")
        return {name: row[name] for name in names}

    processor = build_processor(config, preprocess=before, postprocess=after)
    name = "vLLMEngineStage"
    # A copy: assigning to the stage would ask for its resources a second time.
    processor.stages[name] = processor.get_stage_by_name(name).model_copy(update={"fn": TimedStage})
    files = file_system(task)
    rows = ray.data.read_parquet(task.input_uri.removeprefix("s3://"), filesystem=files)
    target = task.output_uri.removeprefix("s3://")
    processor(rows).write_parquet(target, filesystem=files)
    ray.shutdown()
    made = ds.dataset(target.rstrip("/"), filesystem=files).to_table().to_pylist()
    by_id = {row["document_id"]: row for row in made}
    ordered = [by_id[document_id] for document_id in task.table()["document_id"].to_pylist()]
    done = [row["done_at"] for row in ordered]
    return Result(
        judgement=judged([Answer(row["generated_text"]) for row in ordered], job.record),
        moments=Moments(min(row["ready_at"] for row in ordered), max(done), min(done)),
        prompt_tokens=sum(row["num_input_tokens"] for row in ordered),
        output_tokens=[row["num_generated_tokens"] for row in ordered],
    )
