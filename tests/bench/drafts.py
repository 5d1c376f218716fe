"""What drafts of forced text save: `python -m tests.bench.drafts`.

The same documents and record types with and without `decoding.drafts`, greedy, SmolLM2 on real vLLM in 32 bits.  Prints
for each record type its tokens, the steps of the engine, seconds, and how many records are the same.  With
a batch, steps are shared, so that what is saved for one request is an upper bound.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.documents import invoices, receipts
from demo.models import default_cache, smollm2_folder
from pipeline.core.document import Document
from pipeline.core.spec import JobSpec
from pipeline.run.engines import start_engine
from pipeline.run.extract import Extracted
from pipeline.run.in_process import extract_rows, local_engine
from pipeline.run.intake import Row
from pipeline.run.preflight import prepare_job
from tests.bench.heading import print_heading
from tests.bench.job import CHECKOUT, bench_spec, set_bench_environment
from tests.bench.tables import Sheet, write_sheets

RECORDS = {
    "schemas.receipt:Receipt": ("prompts/receipt.j2", receipts),
    "schemas.scanned_receipt:ScannedReceipt": ("prompts/scanned_receipt.j2", receipts),
    "schemas.invoice:Invoice": ("prompts/invoice.j2", invoices),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One record type with one number of drafts."""

    found: list[Extracted]
    steps: int
    wall_s: float

    @property
    def records(self) -> list[tuple[int, ...]]:
        return [item.token_ids for item in self.found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each record type without and with drafts; 1 if a record differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.drafts", description=__doc__)
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--drafts", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=1, help="documents in flight")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    set_bench_environment()
    print_heading("drafts", chosen, "vllm", "pydantic")
    sheet = Sheet(
        f"{chosen.documents} documents, {chosen.at_once} at once, drafts of {chosen.drafts} at most",
        ("record type", "tokens", "steps", "with drafts", "saved", "seconds", "with drafts", "the same"),
    )
    differ = False
    for record in RECORDS:
        plain, drafted = (
            asyncio.run(_run(_spec(record, drafts, chosen.at_once, chosen.max_tokens), record, chosen.documents))
            for drafts in (0, chosen.drafts)
        )
        same = sum(a == b for a, b in zip(plain.records, drafted.records, strict=True))
        differ |= same != chosen.documents
        sheet.add(
            record.partition(":")[2],
            str(sum(map(len, plain.records))),
            str(plain.steps),
            str(drafted.steps),
            f"{1 - drafted.steps / plain.steps:.0%}",
            f"{plain.wall_s:.1f}",
            f"{drafted.wall_s:.1f}",
            f"{same} of {chosen.documents}",
        )
    sheet.print()
    write_sheets([sheet], chosen.out)
    return int(differ)


async def _run(spec: JobSpec, record: str, count: int) -> Run:
    job = prepare_job(spec, CHECKOUT)
    samples = RECORDS[record][1](count, seed=7)
    rows = [Row(index, Document(sample.document_id, sample.text)) for index, sample in enumerate(samples)]
    async with local_engine(job, start_engine) as engine:
        await extract_rows(job, engine, rows[:1])
        before, started = engine.metrics().values["steps"], time.perf_counter()
        found = await extract_rows(job, engine, rows)
        wall_s = time.perf_counter() - started
        return Run(found, int(engine.metrics().values["steps"] - before), wall_s)


def _spec(record: str, drafts: int, at_once: int, max_tokens: int) -> JobSpec:
    return bench_spec(
        "drafts",
        record=record,
        prompt={"template": RECORDS[record][0]},
        model=smollm2_folder(default_cache()),
        # So that no rounding tells one step for eight tokens from eight steps.
        engine={"dtype": "float32", "max_model_len": 2048, "max_num_seqs": 16},
        decoding={"max_tokens": max_tokens, "drafts": drafts},
        truncation={"long_documents": "head"},
        at_once=at_once,
    )


if __name__ == "__main__":
    sys.exit(main())
