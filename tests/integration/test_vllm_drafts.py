"""Drafts of forced text on a real engine: the same records, in fewer steps."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline.core.document import Document
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.engines import start_engine
from pipeline.run.in_process import extract_rows, local_engine
from pipeline.run.intake import Row
from pipeline.run.preflight import prepare_job
from tests.integration.scripted import ROOT

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

TEXTS = ("KEDAI BUKU\n07/11/2017\nTOTAL 14.90", "Café Łódź\nNo 8, Lorong 3\n23-02-18\nTotal Due 10.39", "nothing 1.00")


def _spec(model: Path, drafts: int) -> JobSpec:
    return parse_spec(
        {
            "name": "drafts",
            "input": {"uri": "/none/in/"},
            "record": "schemas.scanned_receipt:ScannedReceipt",
            "prompt": {"template": "prompts/scanned_receipt.j2"},
            "model": {
                "name": str(model),
                "engine": {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 8},
            },
            "decoding": {"max_tokens": 128, "drafts": drafts},
            "output": {"uri": "/none/out/"},
            "cluster": {"engines": 1, "gpus_per_engine": 0, "concurrency": 1},
        },
        source="test",
    )


async def _decoded(spec: JobSpec) -> tuple[list[tuple[int, ...]], float]:
    job = prepare_job(spec, ROOT)
    rows = [Row(index, Document(f"d{index}", text)) for index, text in enumerate(TEXTS)]
    async with local_engine(job, start_engine) as engine:
        before = engine.metrics().values["steps"]
        found = await extract_rows(job, engine, rows)
        return [item.token_ids for item in found], engine.metrics().values["steps"] - before


def test_drafts_change_no_record_and_save_steps(tiny_llama: Path) -> None:
    """Fails when the scheduler gives vLLM no drafts (as many steps), or some that the cursor does not stand at.

    Documents go one after the other: how many steps several of them share depends on when each arrives.
    """
    plain, steps = asyncio.run(_decoded(_spec(tiny_llama, 0)))
    drafted, fewer = asyncio.run(_decoded(_spec(tiny_llama, 8)))
    assert all(plain)
    assert drafted == plain
    assert fewer < sum(map(len, plain)) <= steps
