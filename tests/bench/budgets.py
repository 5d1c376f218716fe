"""The honest comparison: real receipts, one model, tight budgets; ours beside what a user would do instead.

`python -m tests.bench.budgets --limit 32 --model gemma` gives each receipt 1, 1.2, 1.5 and 2 times the tokens of its
known answer.  Beside ours, with and without the reserve: stock guides, prompt + validate + retry (attempts share a
budget), and repair of cut-off JSON.  No field is extractive here, and the prompt is the same for all.  It prints the
share of complete records, the share marked as shaped by the budget, F1 over the fields of all records and of those
without a mark, and the tokens taken.  Greedy, but for second attempts.  Those without a guide stop after the record,
and the first object of what they said is taken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demo.models import default_cache
from pipeline.core.document import Document
from pipeline.core.errors import EngineDeadError
from pipeline.core.outcome import RECORD_STATUSES, Cause, Outcome, Status
from pipeline.core.spec import JobSpec
from pipeline.engine.base import Engine
from pipeline.report.scores import KnownAnswers
from pipeline.run.engines import start_engine
from pipeline.run.extract import Extracted
from pipeline.run.in_process import extractor_of, local_engine, with_spec
from pipeline.run.intake import Row
from pipeline.run.preflight import Job, prepare_job
from pipeline.storage.arrow import outcomes_table, record_schema
from schemas.scanned_receipt import ScannedReceipt
from tests.bench.heading import print_heading
from tests.bench.job import CHECKOUT, bench_spec, set_bench_environment
from tests.bench.receipts import DATA, EXAMPLES, MODELS
from tests.bench.tables import Sheet, write_sheets
from tests.bench.unguided import Unguided, outcome_of

MULTIPLES = (1.0, 1.2, 1.5, 2.0)
RETRY_TEMPERATURE = 0.7
ATTEMPTS = 3
AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class System:
    """A way to get records."""

    name: str
    guide: str
    truncation: dict[str, Any]
    retries: bool = False
    repairs: bool = False


SYSTEMS = (
    System("ours", "recordmill", {"policy": "close"}),
    System("ours, no reserve", "recordmill", {"policy": "close", "reserve": False}),
    System("xgrammar", "xgrammar", {"policy": "reject"}),
    System("outlines", "outlines", {"policy": "reject"}),
    System("no guide", "none", {"policy": "reject"}),
    System("validate, retry", "none", {"policy": "reject"}, retries=True),
    System("repair", "none", {"policy": "reject"}, repairs=True),
)


@dataclass(frozen=True, slots=True)
class Result:
    """What one system made of all receipts at one budget."""

    multiple: float
    system: str
    outcomes: tuple[Outcome, ...]
    tokens: int
    wall_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every system at every budget and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.budgets", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, default=32, help="receipts, from the first")
    parser.add_argument("--model", choices=sorted(MODELS), default="gemma")
    parser.add_argument(
        "--systems", default=";".join(system.name for system in SYSTEMS), help="names, with `;` between"
    )
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    if not chosen.data.exists():
        parser.error(f"{chosen.data} is not there; --data names the receipts")
    set_bench_environment(cache_gib=2)
    print_heading("budgets", chosen, "vllm", "xgrammar", "outlines_core", "pydantic")
    table = pq.read_table(chosen.data).slice(0, chosen.limit)
    model = MODELS[chosen.model](default_cache())
    results: list[Result] = []
    asked = [system for system in SYSTEMS if system.name in chosen.systems.split(";")]
    for guide in dict.fromkeys(system.guide for system in asked):
        systems = [system for system in asked if system.guide == guide]
        if guide == "none":
            results += _without_guide(model, systems, table)
        else:
            results += asyncio.run(_with_engine(model, guide, systems, table))
    results.sort(key=lambda result: result.multiple)
    title = f"{table.num_rows} receipts, {chosen.model}: budgets of 1 to 2 times each answer's own tokens"
    sheet = _sheet(results, title, record_schema(ScannedReceipt), table)
    sheet.print()
    write_sheets([sheet], chosen.out)
    return 0


def _spec(model: Path, guide: str, truncation: dict[str, Any]) -> JobSpec:
    return bench_spec(
        "budgets",
        record="schemas.scanned_receipt:ScannedReceipt",
        prompt={"template": "prompts/scanned_receipt.j2", "examples": EXAMPLES},
        model=model,
        decoding={"guide": guide, "extractive": False, "max_tokens": 512},
        truncation=truncation,
        at_once=AT_ONCE,
    )


async def _with_engine(model: Path, guide: str, systems: Sequence[System], table: pa.Table) -> list[Result]:
    """All budgets of the systems that one engine serves; those before its death where it dies, which is said."""
    jobs = {system.name: prepare_job(_spec(model, guide, system.truncation), CHECKOUT) for system in systems}
    first = next(iter(jobs.values()))
    rows = table.to_pylist()
    lengths = [_answer_tokens(first, row) for row in rows]
    found: list[Result] = []
    async with local_engine(first, start_engine) as engine:
        for system, multiple in product(systems, MULTIPLES):
            budgets = [math.ceil(multiple * length) for length in lengths]
            try:
                found.append(await _measured(jobs[system.name], engine, system, multiple, rows, budgets))
            except EngineDeadError as error:
                print(f"{system.name}: {error} at {multiple:.1f} times; it has no rows from there on", flush=True)
                break
            print(f"{system.name:>16} {multiple:.1f}x  {found[-1].wall_s:.0f} s", file=sys.stderr)
    return found


def _answer_tokens(job: Job, row: dict[str, Any]) -> int:
    """Of the known answer as compact JSON; its date has the ten characters of an ISO date."""
    answer = {name: row[f"gold_{name}"] for name in ("company", "date", "address", "total")}
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return len(job.tokenizer(text, add_special_tokens=False).input_ids)


async def _measured(
    job: Job, engine: Engine, system: System, multiple: float, rows: Sequence[dict[str, Any]], budgets: Sequence[int]
) -> Result:
    slots = asyncio.Semaphore(AT_ONCE)
    started = time.perf_counter()
    with ThreadPoolExecutor(1, "tokenise") as tokenising:

        async def one(index: int) -> tuple[Outcome, int]:
            document = Document(rows[index]["document_id"], rows[index]["text"])
            async with slots:
                return await _document(job, engine, system, Row(index, document), budgets[index], tokenising)

        done = await asyncio.gather(*(one(index) for index in range(len(rows))))
    return Result(
        multiple,
        system.name,
        tuple(outcome for outcome, _ in done),
        sum(tokens for _, tokens in done),
        time.perf_counter() - started,
    )


async def _document(
    job: Job, engine: Engine, system: System, row: Row, budget: int, tokenising: ThreadPoolExecutor
) -> tuple[Outcome, int]:
    """One document's outcome and its tokens.  A budget below the least record makes none; ours says so unasked."""
    if job.guide is not None and budget < job.guide.least_tokens:
        return Outcome(row.content.document_id, Status.TRUNCATED, Cause.BUDGET, raw=""), 0
    spec = job.spec.model_copy(
        update={"decoding": job.spec.decoding.model_copy(update={"max_tokens": budget, "temperature": 0.0})}
    )
    extractor = extractor_of(with_spec(job, spec), engine, tokenising)
    found: Extracted = await extractor.extract(row, f"{system.name}-{row.index}")
    return found.outcome, found.outcome.output_tokens or 0


def _without_guide(model: Path, systems: Sequence[System], table: pa.Table) -> list[Result]:
    """All budgets of the systems that only ask, by one plain engine."""
    job = prepare_job(_spec(model, "none", {"policy": "reject"}), CHECKOUT)
    rows = table.to_pylist()
    ids = [row["document_id"] for row in rows]
    prompts = [job.prompts.build(row["text"]).ids for row in rows]
    lengths = [_answer_tokens(job, row) for row in rows]
    found = []
    with Unguided(model, dict(job.spec.model.engine)) as engine:
        for system, multiple in product(systems, MULTIPLES):
            started = time.perf_counter()
            budgets = [math.ceil(multiple * length) for length in lengths]
            outcomes, tokens = _asked(job, engine, system, ids, prompts, budgets)
            found.append(Result(multiple, system.name, outcomes, tokens, time.perf_counter() - started))
            print(f"{system.name:>16} {multiple:.1f}x  {found[-1].wall_s:.0f} s", file=sys.stderr)
    return found


def _asked(
    job: Job,
    engine: Unguided,
    system: System,
    ids: Sequence[str],
    prompts: Sequence[list[int]],
    budgets: Sequence[int],
) -> tuple[tuple[Outcome, ...], int]:
    """The outcomes, and the tokens of all attempts, which share the budget."""
    outcomes: dict[int, Outcome] = {}
    left = list(budgets)
    for attempt in range(ATTEMPTS if system.retries else 1):
        asked = [
            index
            for index in range(len(ids))
            if left[index] and (index not in outcomes or outcomes[index].status not in RECORD_STATUSES)
        ]
        if not asked:
            break
        said = engine.ask(
            [prompts[index] for index in asked],
            [left[index] for index in asked],
            temperature=RETRY_TEMPERATURE if attempt else 0.0,
            seed=attempt,
        )
        for index, answer in zip(asked, said, strict=True):
            outcomes[index] = outcome_of(ids[index], answer, job, left[index], is_repaired=system.repairs)
            left[index] -= answer.tokens
    return tuple(outcomes[index] for index in range(len(ids))), sum(budgets) - sum(left)


def _f1(outcomes: Sequence[Outcome], schema: pa.Schema, gold: pa.Table) -> float | None:
    """2 TP / (values given + values known), over all fields; a value is right when it is equal after normalising."""
    if not outcomes:
        return None
    ids = [outcome.document_id for outcome in outcomes]
    answers = gold.filter(pc.is_in(gold["document_id"], value_set=pa.array(ids)))
    table = outcomes_table(outcomes, schema, attempt="bench", engine="bench")
    scores = KnownAnswers(answers, schema, date_order="dmy").score(table)
    known = sum(score.answered for score in scores)
    return 2 * sum(score.normalised for score in scores) / (sum(score.with_value for score in scores) + known)


def _sheet(results: Sequence[Result], title: str, schema: pa.Schema, gold: pa.Table) -> Sheet:
    columns = ("system", "budget", "complete", "marked", "F1", "F1 unmarked", "unmarked", "tokens", "seconds")
    sheet = Sheet(title, columns)
    for result in results:
        count = len(result.outcomes)
        whole = [outcome for outcome in result.outcomes if outcome.status in RECORD_STATUSES]
        clean = [outcome for outcome in whole if outcome.status is Status.VALID]
        clean_f1 = _f1(clean, schema, gold)
        sheet.add(
            result.system,
            f"{result.multiple:.1f}x",
            f"{len(whole) / count:.0%}",
            f"{(len(whole) - len(clean)) / count:.0%}",
            f"{_f1(result.outcomes, schema, gold) or 0:.3f}",
            "–" if clean_f1 is None else f"{clean_f1:.3f}",
            len(clean),
            result.tokens,
            f"{result.wall_s:.0f}",
        )
    return sheet


if __name__ == "__main__":
    sys.exit(main())
