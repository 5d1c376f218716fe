"""What every contender is given and gives back: the same documents, prompts and engine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.core.sections import GuideName
from pipeline.core.spec import JobSpec
from pipeline.engine.vllm_args import cpu_dtype
from pipeline.run.preflight import Job, prepare_job
from tests.bench.job import CHECKOUT, bench_spec
from tests.bench.receipts import DATA, EXAMPLES
from tests.bench.versus.judge import Judgement
from tests.bench.versus.note import notes

__all__ = ["WORKLOADS", "Moments", "Result", "Task", "Workload", "bench_dtype"]


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents, what is wanted of them, and what an engine without a GPU is set to."""

    record: str
    prompt: Mapping[str, Any]
    max_tokens: int
    max_num_seqs: int
    max_model_len: int


WORKLOADS = {
    "receipts": Workload(
        "schemas.scanned_receipt:ScannedReceipt",
        {"template": "prompts/scanned_receipt.j2", "examples": EXAMPLES},
        max_tokens=128,
        max_num_seqs=32,
        max_model_len=4096,
    ),
    "notes": Workload("tests.bench.versus.note:Note", {}, max_tokens=96, max_num_seqs=64, max_model_len=2048),
}


@dataclass(frozen=True, slots=True)
class Task:
    """One run of one contender.  `lengths` names the result whose output lengths the ceiling repeats."""

    contender: str
    workload: str
    model_folder: str
    documents: int
    input_uri: str
    output_uri: str
    endpoint_url: str
    region: str
    lengths: str | None = None
    has_gpu: bool = False
    load_format: str = "safetensors"

    @property
    def engine(self) -> dict[str, Any]:
        """vLLM's arguments, the same for every contender."""
        work = WORKLOADS[self.workload]
        common = {
            "dtype": bench_dtype(has_gpu=self.has_gpu),
            "load_format": self.load_format,
            "max_model_len": work.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "enable_prefix_caching": True,
        }
        if self.has_gpu:
            # vLLM's own number depends on who starts the engine.
            batch = {"max_num_batched_tokens": 8192}
            return {**common, **batch, "enforce_eager": False, "gpu_memory_utilization": 0.85}
        return {**common, "enforce_eager": True, "enable_chunked_prefill": False}

    @property
    def max_num_seqs(self) -> int:
        """Documents that an engine works on at once."""
        return 256 if self.has_gpu else WORKLOADS[self.workload].max_num_seqs

    def spec(self, guide: GuideName = "none", **decoding: Any) -> JobSpec:
        """The job as this system writes it down."""
        work = WORKLOADS[self.workload]
        cpus = 1 if self.has_gpu else os.cpu_count()
        return bench_spec(
            f"versus-{self.workload}",
            record=work.record,
            prompt=work.prompt,
            model=self.model_folder,
            engine=self.engine,
            decoding={"guide": guide, "max_tokens": work.max_tokens, "extractive": False, **decoding},
            truncation={"policy": "close" if guide == "recordmill" else "reject"},
            at_once=self.max_num_seqs,
            input={"uri": self.input_uri},
            output={"uri": self.output_uri},
            cluster={
                "engines": 1,
                "gpus_per_engine": int(self.has_gpu),
                "cpus_per_engine": cpus,
                "concurrency": self.max_num_seqs,
            },
            s3={"endpoint_url": self.endpoint_url, "region": self.region},
        )

    def job(self) -> Job:
        """Prompts, record class and JSON Schema, for contenders that have none of their own."""
        return prepare_job(self.spec(), CHECKOUT)

    def table(self) -> pa.Table:
        """`document_id` and `text`."""
        if self.workload == "notes":
            return notes(self.documents)
        return pq.read_table(DATA, columns=["document_id", "text"]).slice(0, self.documents)

    def output_lengths(self) -> list[int]:
        """Tokens a document, in the order of the documents."""
        assert self.lengths is not None
        lengths: list[int] = json.loads(Path(self.lengths).read_text())["output_tokens"]
        return lengths


@dataclass(frozen=True, slots=True)
class Moments:
    """When a contender could take its first request, and when it had its results: `time.monotonic()`, in seconds.

    All processes of a machine share that clock, and nobody sets it.  `first` is None where all results come at once.
    """

    ready: float
    last: float
    first: float | None = None


@dataclass(slots=True)
class Result:
    """What a contender made, and when; the engine alone makes nothing to be judged."""

    judgement: Judgement | None
    moments: Moments
    prompt_tokens: int
    output_tokens: list[int]
    """A document, in the order of the documents; of all attempts, end tokens among them."""
    cached_tokens: int | None = None
    """Prompt tokens that the prefix cache served; None where the contender does not say."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What the contender says of itself, by name, summed over documents whose times overlap."""
    steady_share: float | None = None
    """Of the time from its first request to its last, as its own report says it: with a request in the engine."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Result:
        stored = json.loads(path.read_text())
        judgement = None if stored["judgement"] is None else Judgement(**stored["judgement"])
        return cls(**{**stored, "judgement": judgement, "moments": Moments(**stored["moments"])})


def bench_dtype(*, has_gpu: bool) -> str:
    """vLLM's `dtype` for every contender; `auto` is the model's own, bfloat16 for all models here."""
    return "bfloat16" if has_gpu else cpu_dtype()
