"""The main job over real receipts, unguided, guided by the schema, and with extractive fields: same model, same prompt.

`python -m tests.bench.receipts --limit 96` runs whole jobs (S3 server, local Ray, vLLM on CPU) over the receipts of the
ICDAR 2019 SROIE challenge and prints statuses, tokens, and fields right of the answers given.  Greedy, so that a run
repeats.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from demo.models import default_cache, gemma_folder, smollm2_folder
from demo.s3 import S3Server
from pipeline.core.outcome import Status
from pipeline.report.model import Report
from tests.bench.heading import print_heading
from tests.bench.job import CHECKOUT, bench_spec, set_bench_environment

DATA = CHECKOUT.parent / "shared" / "data" / "receipts" / "receipts.parquet"
MODELS = {"smollm2": smollm2_folder, "gemma": gemma_folder}
AT_ONCE = 32
VARIANTS: dict[str, dict[str, Any]] = {
    "free": {"guide": "none"},
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
    chosen = parser.parse_args(arguments)
    if not chosen.data.exists():
        parser.error(f"{chosen.data} is not there; --data names the receipts")
    set_bench_environment(cache_gib=2)
    print_heading("receipts", arguments, "vllm", "ray", "pydantic")
    table = pq.read_table(chosen.data).slice(0, chosen.limit)
    model = MODELS[chosen.model](default_cache())
    with S3Server() as server:
        os.environ.update(server.environment())
        server.bucket("bench")
        sink = pa.BufferOutputStream()
        pq.write_table(table.select(["document_id", "text"]), sink, row_group_size=64)
        server.client().put_object(Bucket="bench", Key="receipts/receipts.parquet", Body=sink.getvalue().to_pybytes())
        rows = [
            (name, *_run(server, model, name, chosen.max_tokens, table)) for name in str(chosen.variants).split(",")
        ]
    _print(rows, table.num_rows, chosen.model)
    return 0


def _run(server: S3Server, model: Path, variant: str, max_tokens: int, gold: pa.Table) -> tuple[Report, float]:
    from pipeline.report.write import build_report, score_run, write_report
    from pipeline.run.job import run
    from pipeline.run.plan import load_plan
    from pipeline.storage.layout import RunLayout
    from pipeline.storage.store import open_store

    decoding = VARIANTS[variant]
    spec = bench_spec(
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


def _print(rows: Sequence[tuple[str, Report, float]], documents: int, model: str) -> None:
    fields = [score.field for score in rows[0][1].scores]
    table = Table(title=f"{documents} receipts, {model}: fields right (exact / normalised)", title_justify="left")
    for name in ("variant", *map(str, Status), *fields, "sum", "output tokens", "documents/s"):
        table.add_column(name, justify="left" if name == "variant" else "right")
    for name, report, wall_s in rows:
        counts: dict[str, int] = {}
        for item in report.counts:
            counts[str(item.status)] = counts.get(str(item.status), 0) + item.documents
        scored = {score.field: score for score in report.scores}
        table.add_row(
            name,
            *(str(counts.get(str(status), 0)) for status in Status),
            *(f"{scored[field].exact} / {scored[field].normalised}" for field in fields),
            f"{sum(score.exact for score in report.scores)} / {sum(score.normalised for score in report.scores)}",
            str(report.tokens.output_tokens),
            f"{documents / wall_s:.2f}",
        )
    Console(width=200).print(table)


if __name__ == "__main__":
    sys.exit(main())
