"""The same documents, model files, vLLM and machine, and what a user would take instead of this system.

`python -m tests.bench.versus --workload receipts --model gemma --documents 96` runs each contender as a process of its
own, from S3 (SeaweedFS) to S3, but for `engine alone`: it repeats the prompts and output lengths of `ours`, without a
guide, text or files, and is the ceiling for tokens a second; `one process` is the same with the model in the engine
core, as ours has it where there is no GPU.  Greedy.

Every contender says when its engine could take a first request, with the schema compiled, and when its last result was
there; rates are over the time between.  Ray Data LLM says it by its own engine stage, which a subclass times.  With
`--repeats` the rounds go through the contenders in turn, each round beginning with another one; every run is printed,
and the table holds medians, and the least and the most.  What fails or takes too long is a row that says so; the exit
code is 1 where `ours` or the engine alone did.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from demo.models import default_cache, tiny_llama_folder
from demo.s3 import S3Server
from pipeline.engine.vllm_args import set_cpu_environment
from tests.bench.heading import print_heading
from tests.bench.receipts import MODELS
from tests.bench.versus.contenders import CEILINGS, CONTENDERS, INNER_CEILING, OURS
from tests.bench.versus.measure import ContenderFailedError, ContenderTimeoutError, Measured, measure
from tests.bench.versus.table import Entry, print_line, print_table
from tests.bench.versus.task import WORKLOADS, Task, bench_dtype

_ALL = {"receipts": 96, "notes": 5000}
_MODEL = {"receipts": "gemma", "notes": "random"}
_FOLDERS = {**MODELS, "random": tiny_llama_folder}
_LIMIT_MINUTES = {"Ray Data LLM, outlines": 5.0}
"""Of those that are known to take longer than anybody waits."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the contenders and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.versus", description=__doc__)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="receipts")
    parser.add_argument("--model", choices=sorted(_FOLDERS))
    parser.add_argument("--documents", type=int)
    parser.add_argument("--contenders", default=";".join(CONTENDERS), help="names, with `;` between them")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--limit-minutes", type=float, default=30.0, help="of one run; Outlines has 5 at most")
    parser.add_argument("--gpu", action="store_true", help="one GPU for the engine; see tests.bench.gpu")
    parser.add_argument(
        "--own-core", action="store_true", help="bind the model to the last core, which it has nearly for itself"
    )
    parser.add_argument("--model-folder", type=Path, help="a model in place of --model")
    parser.add_argument("--load-format", default="safetensors", help="vLLM's; `dummy` for random weights")
    parser.add_argument("--out", type=Path, help="the figures of every run as JSON")
    chosen = parser.parse_args(arguments)
    asked = {name.strip() for name in chosen.contenders.split(";")}
    names = [name for name in CONTENDERS if name in asked]
    if INNER_CEILING in asked and (chosen.gpu or chosen.own_core):
        # On a GPU vLLM itself runs the model in the engine core; where threads are bound, ours does not either.
        print(f"{INNER_CEILING}: left out; it would be no other engine than {CEILINGS[0]}")
        names.remove(INNER_CEILING)
    documents = chosen.documents or _ALL[chosen.workload]
    if unknown := sorted(asked - set(CONTENDERS)):
        parser.error(f"--contenders: there is no {', '.join(unknown)}; there are {'; '.join(CONTENDERS)}")
    if OURS not in asked and (ceilings := sorted(asked & {*CEILINGS})):
        parser.error(f"--contenders: {', '.join(ceilings)}: repeats what {OURS} wrote; name {OURS} too")
    model = chosen.model or _MODEL[chosen.workload]
    folder = chosen.model_folder or _FOLDERS[model](default_cache())
    chosen.model, chosen.documents = model, documents
    _set_environment(has_gpu=chosen.gpu, has_own_core=chosen.own_core)
    # So that what is asked to end takes its contender and its server along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print_heading("versus", chosen, "vllm", "ray", "xgrammar", "outlines_core", "pydantic")
    given = _Given(chosen.workload, str(folder.resolve()), chosen.gpu, chosen.load_format, documents)
    entries: list[Entry] = []
    dtype = bench_dtype(has_gpu=chosen.gpu)
    title = f"{documents} {chosen.workload}, {folder.name} ({dtype}), {os.cpu_count()} CPUs{', 1 GPU' * chosen.gpu}"
    with S3Server() as server, tempfile.TemporaryDirectory(prefix="recordmill-versus-") as scratch:
        bench = _Bench(server, Path(scratch), given, chosen.limit_minutes)
        for turn in range(chosen.repeats):
            for name in _order(names, turn):
                entries.append(bench.entry(name, turn))
                print_line(entries[-1])
                if chosen.out:
                    chosen.out.write_text(json.dumps({"title": title, "runs": [asdict(item) for item in entries]}))
    print_table(entries, title, OURS)
    return int(any(item.figures is None and item.contender in (OURS, *CEILINGS) for item in entries))


def _set_environment(*, has_gpu: bool, has_own_core: bool) -> None:
    logging.basicConfig(level=logging.WARNING)
    os.environ.update(HF_HUB_OFFLINE="1", RAY_USAGE_STATS_ENABLED="0", TOKENIZERS_PARALLELISM="false")
    os.environ.update(VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")
    if has_own_core:
        os.environ["VLLM_CPU_OMP_THREADS_BIND"] = str(max(os.sched_getaffinity(0)))
    if not has_gpu:
        set_cpu_environment()
        os.environ["OMP_NUM_THREADS"] = "1" if has_own_core else str(os.cpu_count())


def _order(names: Sequence[str], turn: int) -> list[str]:
    """Another contender first in each round; the ceilings after ours, whose lengths they repeat, taking turns too."""
    start = turn % len(names)
    order = [*names[start:], *names[:start]]
    for name in CEILINGS[:: -1 if turn % 2 else 1]:
        if name in order:
            order.remove(name)
            order.insert(order.index(OURS) + 1, name)
    return order


@dataclass(frozen=True, slots=True)
class _Given:
    """What all tasks have in common."""

    workload: str
    model_folder: str
    has_gpu: bool
    load_format: str
    documents: int


class _Bench:
    """One input; an output prefix for each run."""

    def __init__(self, server: S3Server, scratch: Path, given: _Given, limit_minutes: float) -> None:
        self._server, self._scratch, self._given = server, scratch, given
        self._limit_minutes = limit_minutes
        self._lengths: Path | None = None
        self._given_up: dict[str, str] = {}
        server.bucket("bench")

    def entry(self, contender: str, turn: int) -> Entry:
        """One run, or why there is none.  Who took too long once is not asked again."""
        if contender in self._given_up:
            return Entry(contender, turn, failure=self._given_up[contender])
        try:
            return Entry(contender, turn, self._run(contender, turn).figures())
        except ContenderTimeoutError as error:
            self._given_up[contender] = str(error)
            return Entry(contender, turn, failure=str(error))
        except ContenderFailedError as error:
            print(error, file=sys.stderr)
            return Entry(contender, turn, failure=str(error).splitlines()[0])

    def _run(self, contender: str, turn: int) -> Measured:
        """The output lengths of ours are what the ceiling repeats."""
        if contender in CEILINGS and self._lengths is None:
            raise ContenderFailedError(f"{OURS} wrote nothing to be repeated")
        name = f"{turn}-{contender.replace(' ', '-').replace(',', '')}"
        task = Task(
            contender=contender,
            **asdict(self._given),
            input_uri="s3://bench/in/",
            output_uri=f"s3://bench/out/{name}/",
            endpoint_url=self._server.endpoint_url,
            region=self._server.environment()["AWS_DEFAULT_REGION"],
            lengths=None if self._lengths is None else str(self._lengths),
        )
        self._put(task)
        limit_s = 60 * min(self._limit_minutes, _LIMIT_MINUTES.get(contender, self._limit_minutes))
        measured = measure(task, self._scratch / name, self._server.environment(), limit_s)
        if contender == OURS:
            self._lengths = self._scratch / name / "result.json"
        return measured

    def _put(self, task: Task) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(task.table(), sink, row_group_size=64 if task.workload == "receipts" else 1000)
        key = task.input_uri.removeprefix("s3://bench/") + "documents.parquet"
        self._server.client().put_object(Bucket="bench", Key=key, Body=sink.getvalue().to_pybytes())


if __name__ == "__main__":
    sys.exit(main())
