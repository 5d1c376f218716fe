"""The same documents, model files, vLLM and machine, and what a user would take instead of this system.

`python -m tests.bench.versus --workload receipts --model gemma --documents 96` runs each contender as a process of its
own: a few documents first, then all, so that what a start costs can be told from what a document costs.  From S3
(SeaweedFS) to S3, but for `engine alone`: it repeats the prompts and output lengths of `ours`, without a guide, text or
files, and is the ceiling for tokens a second.  With `--repeats` the rounds go through the contenders in turn; every run
is printed, and the table holds medians.  Greedy.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from demo.models import default_cache, tiny_llama_folder
from demo.s3 import S3Server
from pipeline.engine.vllm_args import set_cpu_environment
from tests.bench.heading import print_heading
from tests.bench.receipts import MODELS
from tests.bench.versus.contenders import CEILING, CONTENDERS, OURS
from tests.bench.versus.measure import ContenderFailedError, Measured, measure
from tests.bench.versus.task import WORKLOADS, Task

_FEW = {"receipts": 8, "notes": 64}
_ALL = {"receipts": 96, "notes": 5000}
_MODEL = {"receipts": "gemma", "notes": "random"}
_FOLDERS = {**MODELS, "random": tiny_llama_folder}


@dataclass(frozen=True, slots=True)
class Pair:
    """One round of one contender: a few documents, and all."""

    few: Measured
    whole: Measured

    @property
    def rate(self) -> float:
        """Documents a second, once started."""
        seconds = self.whole.wall_s - self.few.wall_s
        return (self.whole.task.documents - self.few.task.documents) / seconds if seconds > 0 else float("nan")

    @property
    def start_s(self) -> float:
        """What is left of the few documents' time without the documents: start and end of everything."""
        return self.few.wall_s - self.few.task.documents / self.rate

    @property
    def tokens_rate(self) -> float:
        """Output tokens a second, once started."""
        tokens = sum(self.whole.result.output_tokens) - sum(self.few.result.output_tokens)
        return tokens / (self.whole.wall_s - self.few.wall_s)

    @property
    def complete(self) -> int:
        return self.whole.result.complete

    @property
    def valid(self) -> int:
        return self.whole.result.valid

    @property
    def whole_s(self) -> float:
        """From the start of the process to its end."""
        return self.whole.wall_s

    @property
    def whole_valid_rate(self) -> float:
        """Valid records a second, start and end included."""
        return self.valid / self.whole_s

    @property
    def valid_rate(self) -> float:
        """Valid records a second, once started."""
        return (self.whole.result.valid - self.few.result.valid) / (self.whole.wall_s - self.few.wall_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the contenders and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.versus", description=__doc__)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="receipts")
    parser.add_argument("--model", choices=sorted(_FOLDERS))
    parser.add_argument("--documents", type=int)
    parser.add_argument("--contenders", default=";".join(CONTENDERS), help="names, with `;` between them")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--gpu", action="store_true", help="one GPU for the engine; see tests.bench.gpu")
    parser.add_argument("--model-folder", type=Path, help="a model in place of --model")
    parser.add_argument("--load-format", default="safetensors", help="vLLM's; `dummy` for random weights")
    chosen = parser.parse_args(arguments)
    asked = {name.strip() for name in chosen.contenders.split(";")}
    names = [name for name in CONTENDERS if name in asked]
    documents = chosen.documents or _ALL[chosen.workload]
    if unknown := sorted(asked - set(CONTENDERS)):
        parser.error(f"--contenders: there is no {', '.join(unknown)}; there are {'; '.join(CONTENDERS)}")
    if CEILING in asked and OURS not in asked:
        parser.error(f"--contenders: {CEILING} repeats what {OURS} wrote; name both")
    if documents <= _FEW[chosen.workload]:
        parser.error(f"--documents: more than the {_FEW[chosen.workload]} that tell what a start costs")
    model = chosen.model or _MODEL[chosen.workload]
    folder = chosen.model_folder or _FOLDERS[model](default_cache())
    logging.basicConfig(level=logging.WARNING)
    cpus = str(os.cpu_count())
    os.environ.update(HF_HUB_OFFLINE="1", RAY_USAGE_STATS_ENABLED="0", TOKENIZERS_PARALLELISM="false")
    os.environ.update(VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")
    if not chosen.gpu:
        set_cpu_environment()
        os.environ["OMP_NUM_THREADS"] = cpus
    print_heading("versus", arguments, "vllm", "ray", "xgrammar", "outlines_core", "pydantic")
    given = _Given(chosen.workload, str(folder.resolve()), chosen.gpu, chosen.load_format)
    rounds: dict[str, list[Pair]] = {name: [] for name in names}
    failed = 0
    with S3Server() as server, tempfile.TemporaryDirectory(prefix="recordmill-versus-") as scratch:
        bench = _Bench(server, Path(scratch), given)
        for turn in range(chosen.repeats):
            for name in names:
                try:
                    pair = Pair(*(bench.run(name, count, turn) for count in (_FEW[chosen.workload], documents)))
                except ContenderFailedError as error:
                    print(error, file=sys.stderr)
                    failed += 1
                    continue
                rounds[name].append(pair)
    _print(rounds, f"{documents} {chosen.workload}, {folder.name}, {cpus} CPUs{', 1 GPU' * chosen.gpu}")
    return 1 if failed else 0


@dataclass(frozen=True, slots=True)
class _Given:
    """What all tasks have in common."""

    workload: str
    model_folder: str
    has_gpu: bool
    load_format: str


class _Bench:
    """Input once for each number of documents; an output prefix for each run."""

    def __init__(self, server: S3Server, scratch: Path, given: _Given) -> None:
        self._server, self._scratch, self._given = server, scratch, given
        self._lengths: dict[int, Path] = {}
        server.bucket("bench")

    def run(self, contender: str, documents: int, turn: int) -> Measured:
        """One run.  The output lengths of ours are what the ceiling repeats."""
        name = f"{self._given.workload}-{documents}-{turn}-{contender.replace(' ', '-').replace(',', '')}"
        lengths = self._lengths.get(documents)
        task = Task(
            contender=contender,
            documents=documents,
            **asdict(self._given),
            input_uri=f"s3://bench/in/{documents}/",
            output_uri=f"s3://bench/out/{name}/",
            endpoint_url=self._server.endpoint_url,
            region=self._server.environment()["AWS_DEFAULT_REGION"],
            lengths=None if lengths is None else str(lengths),
        )
        self._put(task)
        measured = measure(task, self._scratch / name, self._server.environment())
        if contender == OURS:
            self._lengths[documents] = self._scratch / name / "result.json"
        print(
            f"{contender}: {documents} documents in {measured.wall_s:.1f} s, {measured.result.complete} complete, "
            f"{measured.result.valid} valid, {sum(measured.result.output_tokens)} tokens, "
            f"{measured.peak_bytes / 1e9:.1f} GB",
            *(f"{key} {value:.1f} s" for key, value in measured.result.seconds.items()),
            flush=True,
        )
        return measured

    def _put(self, task: Task) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(task.table(), sink, row_group_size=64 if task.workload == "receipts" else 1000)
        key = task.input_uri.removeprefix("s3://bench/") + "documents.parquet"
        self._server.client().put_object(Bucket="bench", Key=key, Body=sink.getvalue().to_pybytes())


def _print(rounds: dict[str, list[Pair]], title: str) -> None:
    table = Table(title=title, title_justify="left")
    columns = (
        "contender",
        "complete",
        "valid",
        "start s",
        "documents/s",
        "valid/s",
        "tokens/s",
        "whole s",
        "valid/s whole",
        "GB",
    )
    for name in columns:
        table.add_column(name, justify="left" if name == "contender" else "right")
    for name, pairs in rounds.items():
        if pairs:
            table.add_row(name, *_row(pairs))
    console = Console(width=140)
    console.print(table)
    base = rounds.get(OURS)
    for name, pairs in rounds.items():
        if base and pairs and name != OURS:
            ratios = [
                f"{what} {_median(base, key) / other:.2f}"
                for what, key in (("tokens/s", "tokens_rate"), ("valid/s", "valid_rate"))
                if (other := _median(pairs, key))
            ]
            print(f"{OURS} to {name}:", ", ".join(ratios))
    if len(base or ()) > 1:
        print("of each round, tokens/s to", *_by_round(rounds), sep="\n")


def _by_round(rounds: dict[str, list[Pair]]) -> list[str]:
    """Ours to each contender within one round, where both took part in all."""
    base = rounds[OURS]
    return [
        f"  {name}: "
        + " ".join(f"{mine.tokens_rate / other.tokens_rate:.2f}" for mine, other in zip(base, pairs, strict=True))
        for name, pairs in rounds.items()
        if name != OURS and len(pairs) == len(base)
    ]


def _row(pairs: Sequence[Pair]) -> list[str]:
    return [
        f"{_median(pairs, 'complete'):.0f}",
        f"{_median(pairs, 'valid'):.0f}",
        f"{_median(pairs, 'start_s'):.1f}",
        _spread(pairs, "rate", 2),
        f"{_median(pairs, 'valid_rate'):.2f}",
        _spread(pairs, "tokens_rate", 0),
        f"{_median(pairs, 'whole_s'):.0f}",
        f"{_median(pairs, 'whole_valid_rate'):.2f}",
        f"{max(pair.whole.peak_bytes for pair in pairs) / 1e9:.1f}",
    ]


def _spread(pairs: Sequence[Pair], key: str, digits: int) -> str:
    """The median, and of several rounds the least and the most."""
    values = [getattr(pair, key) for pair in pairs]
    median = f"{statistics.median(values):.{digits}f}"
    return median if len(values) < 2 else f"{median} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def _median(pairs: Sequence[Pair], key: str) -> float:
    values: list[Any] = [getattr(pair, key) for pair in pairs]
    return statistics.median(values)


if __name__ == "__main__":
    sys.exit(main())
