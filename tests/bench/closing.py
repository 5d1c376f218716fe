"""Whether every record closes: `python -m tests.bench.closing --documents 500`.

A model of random weights wants nothing that the schema wants, so that only the budget mask can end its records.  Real
vLLM, invented receipts, nested records with lists, and budgets from the least record's own tokens to twice as many, at
temperature 1.  Each record is held against the Pydantic model once more.  Prints how many are complete, how many of
them the budget shaped, and the most tokens that one took.  The exit code is 0 if all are complete within their budget.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from demo.documents import receipts
from demo.models import default_cache, tiny_llama_folder
from pipeline.core.document import Document
from pipeline.core.outcome import RECORD_STATUSES, Outcome, Status
from pipeline.core.spec import JobSpec
from pipeline.run.engines import start_engine
from pipeline.run.in_process import extract_rows, local_engine, with_spec
from pipeline.run.intake import Row
from pipeline.run.preflight import prepare_job
from tests.bench.heading import print_heading
from tests.bench.job import CHECKOUT, bench_spec, set_bench_environment
from tests.bench.tables import Sheet, write_sheets

MULTIPLES = (1.0, 1.05, 1.2, 1.5, 2.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Decode all documents at each budget; print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.closing", description=__doc__)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--record", default="schemas.receipt:Receipt")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    set_bench_environment()
    print_heading("closing", chosen, "vllm", "pydantic")
    sheet, lost = asyncio.run(_run(chosen.documents, chosen.record, chosen.seed))
    sheet.print()
    write_sheets([sheet], chosen.out)
    return 1 if lost else 0


async def _run(count: int, record: str, seed: int) -> tuple[Sheet, int]:
    """The table, and how many records are lost."""
    job = prepare_job(_spec(record, seed, 512), CHECKOUT)
    assert job.guide is not None
    least = job.guide.least_tokens
    rows = [
        Row(index, Document(sample.document_id, sample.text)) for index, sample in enumerate(receipts(count, seed=seed))
    ]
    columns = ("budget", "complete", "valid", "closed", "most tokens", "seconds")
    sheet = Sheet(f"{count} documents, {record}, least record {least} tokens", columns)
    lost = 0
    async with local_engine(job, start_engine) as engine:
        for multiple in MULTIPLES:
            budget = math.ceil(multiple * least)
            started = time.perf_counter()
            found = await extract_rows(with_spec(job, _spec(record, seed, budget)), engine, rows)
            outcomes = [item.outcome for item in found]
            complete = [item for item in outcomes if _is_complete(item, job.record, budget)]
            lost += count - len(complete)
            sheet.add(
                f"{budget} ({multiple:g}x)",
                f"{len(complete)}",
                f"{sum(item.status is Status.VALID for item in outcomes)}",
                f"{sum(item.status is Status.CLOSED for item in outcomes)}",
                f"{max(item.output_tokens or 0 for item in outcomes)}",
                f"{time.perf_counter() - started:.0f}",
            )
    return sheet, lost


def _spec(record: str, seed: int, max_tokens: int) -> JobSpec:
    return bench_spec(
        "closing",
        record=record,
        prompt={"template": "prompts/receipt.j2"},
        model=tiny_llama_folder(default_cache()),
        engine={"max_model_len": 2048},
        decoding={"max_tokens": max_tokens, "temperature": 1.0, "seed": seed},
        truncation={"long_documents": "head"},
        at_once=64,
    )


def _is_complete(outcome: Outcome, model: type[BaseModel], budget: int) -> bool:
    if outcome.status not in RECORD_STATUSES or outcome.record is None or (outcome.output_tokens or 0) > budget:
        return False
    try:
        model.model_validate_json(json.dumps(dict(outcome.record), default=str))
    except ValidationError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
