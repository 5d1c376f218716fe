"""The main job over real receipts, unguided, guided by the schema, and with extractive fields: same model, same prompt.

`python -m tests.bench.receipts --limit 96` runs whole jobs (S3 server, local Ray, vLLM on CPU) over the receipts of the
ICDAR 2019 SROIE challenge and prints statuses, tokens, and fields right of the answers given.  Greedy, so that a run
repeats.  The unguided variant is no job of ours but vLLM alone, which stops after the record; the first object counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from demo.models import default_cache, gemma_folder, smollm2_folder
from demo.s3 import S3Server
from pipeline.core.outcome import Status
from pipeline.core.spec import JobSpec
from pipeline.report.documents import FieldScore
from pipeline.report.model import Report
from pipeline.report.scores import KnownAnswers
from pipeline.storage.arrow import outcomes_table, record_schema
from tests.bench.data import receipts_file
from tests.bench.heading import print_heading
from tests.bench.job import CHECKOUT, bench_spec, set_bench_environment
from tests.bench.unguided import Unguided, outcome_of

DATA = receipts_file()
MODELS = {"smollm2": smollm2_folder, "gemma": gemma_folder}
AT_ONCE = 32
FREE = "free"
VARIANTS: dict[str, dict[str, Any]] = {
    FREE: {"guide": "none"},
    "schema": {"guide": "recordmill", "extractive": False},
    "extractive": {"guide": "recordmill", "extractive": True},
}
EXAMPLES = [
    {
        "text": "KEDAI BUKU MELATI SDN BHD\n12 JALAN CEMPAKA 3\n41200 KLANG\nTAX INVOICE\nDATE: 07/11/2017 14:22\n"
        "PENSEL 2B 3.20\nBUKU LATIHAN 11.70\nTOTAL RM 14.90\nCASH 20.00\nCHANGE 5.10",
        "record": {
            "company": "KEDAI BUKU MELATI SDN BHD",
            "date": "2017-11-07",
            "address": "12 JALAN CEMPAKA 3 41200 KLANG",
            "total": 14.90,
        },
    },
    {
        "text": "Restoran Seri Kayu\nNo 8, Lorong Angsana, 10450 Penang\n23-02-18\nNasi Goreng 7.50\nTeh Ais 2.30\n"
        "Sub Total 9.80\nGST 6% 0.59\nTotal Due 10.39\nTHANK YOU",
        "record": {
            "company": "Restoran Seri Kayu",
            "date": "2018-02-23",
            "address": "No 8, Lorong Angsana, 10450 Penang",
            "total": 10.39,
        },
    },
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the variants one after the other and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.receipts", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, default=308, help="receipts, from the first (default all 308)")
    parser.add_argument("--model", choices=sorted(MODELS), default="smollm2")
    parser.add_argument("--variants", default="free,schema,extractive")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    if not chosen.data.exists():
        parser.error(f"{chosen.data} is not there; --data names the receipts")
    set_bench_environment(cache_gib=2)
    print_heading("receipts", chosen, "vllm", "ray", "pydantic")
    table = pq.read_table(chosen.data).slice(0, chosen.limit)
    model = MODELS[chosen.model](default_cache())
    with S3Server() as server:
        os.environ.update(server.environment())
        server.bucket("bench")
        sink = pa.BufferOutputStream()
        pq.write_table(table.select(["document_id", "text"]), sink, row_group_size=64)
        server.client().put_object(Bucket="bench", Key="receipts/receipts.parquet", Body=sink.getvalue().to_pybytes())
        rows = [
            _run(_spec(server, model, name, chosen.max_tokens), name, table) for name in str(chosen.variants).split(",")
        ]
    _print(rows, table.num_rows, chosen.model)
    if chosen.out:
        chosen.out.write_text(json.dumps({"model": chosen.model, "variants": [asdict(row) for row in rows]}))
    return 0


@dataclass(frozen=True, slots=True)
class Row:
    """One variant's figures.  `right` has for each field the values that are exactly right, and right as normalised."""

    variant: str
    documents: int
    counts: dict[str, int]
    right: dict[str, tuple[int, int]]
    output_tokens: int
    wall_s: float


def _spec(server: S3Server, model: Path, variant: str, max_tokens: int) -> JobSpec:
    decoding = VARIANTS[variant]
    return bench_spec(
        f"receipts-{variant}",
        record="schemas.scanned_receipt:ScannedReceipt",
        prompt={"template": "prompts/scanned_receipt.j2", "examples": EXAMPLES},
        model=model,
        decoding={**decoding, "max_tokens": max_tokens, "date_order": "dmy"},
        truncation={"policy": "close" if decoding["guide"] == "recordmill" else "reject"},
        at_once=AT_ONCE,
        input={"uri": "s3://bench/receipts/", "shard_rows": 64},
        output={"uri": f"s3://bench/runs/{variant}/"},
        cluster={"engines": 1, "gpus_per_engine": 0, "cpus_per_engine": os.cpu_count(), "concurrency": AT_ONCE},
        s3={"endpoint_url": server.endpoint_url, "region": server.environment()["AWS_DEFAULT_REGION"]},
    )


def _run(spec: JobSpec, variant: str, gold: pa.Table) -> Row:
    if variant == FREE:
        return _free(spec, gold)
    report, wall_s = _job(spec, variant, gold)
    counts: Counter[str] = Counter()
    for item in report.counts:
        counts[str(item.status)] += item.documents
    return Row(variant, gold.num_rows, dict(counts), _right(report.scores), report.tokens.output_tokens, wall_s)


def _right(scores: Sequence[FieldScore]) -> dict[str, tuple[int, int]]:
    return {score.field: (score.exact, score.normalised) for score in scores}


def _free(spec: JobSpec, gold: pa.Table) -> Row:
    """vLLM alone, from its start to its end."""
    from pipeline.run.preflight import prepare_job

    started = time.perf_counter()
    job = prepare_job(spec, CHECKOUT)
    budget = spec.decoding.max_tokens
    with Unguided(spec.model.name, dict(spec.model.engine)) as engine:
        prompts = [job.prompts.build(text).ids for text in gold["text"].to_pylist()]
        said = engine.ask(prompts, [budget] * len(prompts))
    named = zip(gold["document_id"].to_pylist(), said, strict=True)
    outcomes = [outcome_of(document_id, answer, job, budget) for document_id, answer in named]
    wall_s = time.perf_counter() - started
    schema = record_schema(job.record)
    scores = KnownAnswers(gold, schema, date_order="dmy").score(
        outcomes_table(outcomes, schema, attempt="bench", engine="bench")
    )
    counts = Counter(str(outcome.status) for outcome in outcomes)
    return Row(FREE, gold.num_rows, dict(counts), _right(scores), sum(answer.tokens for answer in said), wall_s)


def _job(spec: JobSpec, variant: str, gold: pa.Table) -> tuple[Report, float]:
    from pipeline.report.write import build_report, score_run, write_report
    from pipeline.run.job import run
    from pipeline.run.plan import load_plan
    from pipeline.storage.layout import RunLayout
    from pipeline.storage.store import open_store

    started = time.perf_counter()
    result = run(spec, base=CHECKOUT)
    wall_s = time.perf_counter() - started
    if result.report is None or not result.report.is_complete:
        sys.exit(f"{variant}: {result.error}")
    layout = RunLayout(spec.output.uri)
    store = open_store(spec.output.uri, spec.s3)
    stored = load_plan(store, layout)
    assert stored is not None
    scored = score_run(store, layout, gold, date_order="dmy")
    report = build_report(store, layout, stored.plan, scored=scored)
    write_report(store, layout, report)
    return report, wall_s


def _print(rows: Sequence[Row], documents: int, model: str) -> None:
    fields = list(rows[0].right)
    table = Table(title=f"{documents} receipts, {model}: fields right (exact / normalised)", title_justify="left")
    for name in ("variant", *map(str, Status), *fields, "sum", "output tokens", "documents/s"):
        table.add_column(name, justify="left" if name == "variant" else "right")
    for row in rows:
        exact, normalised = map(sum, zip(*row.right.values(), strict=True))
        table.add_row(
            row.variant,
            *(str(row.counts.get(str(status), 0)) for status in Status),
            *("{} / {}".format(*row.right[field]) for field in fields),
            f"{exact} / {normalised}",
            str(row.output_tokens),
            f"{documents / row.wall_s:.2f}",
        )
    Console(width=200).print(table)


if __name__ == "__main__":
    sys.exit(main())
