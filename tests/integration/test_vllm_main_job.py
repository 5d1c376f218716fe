"""The main job with every real part: S3, local Ray, vLLM on CPU, guides, typed Parquet, report."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from ray.cluster_utils import Cluster

from demo.documents import receipts
from demo.s3 import S3Server
from pipeline import read_records
from pipeline.core.outcome import Status
from pipeline.core.sections import S3Spec
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.decoding import Vocabulary, compile_grammar, compile_guide
from pipeline.engine.prompts import load_tokenizer
from pipeline.run.job import RunResult, run
from pipeline.run.verify import verify
from pipeline.storage.store import Store, open_store
from schemas.scanned_receipt import ScannedReceipt
from tests.integration.scripted import ROOT, put_parquet

pytestmark = [pytest.mark.vllm, pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

RECORD = "schemas.scanned_receipt:ScannedReceipt"


def _spec(prefix: str, server: S3Server, model: Path, name: str, **changes: Any) -> JobSpec:
    raw: dict[str, Any] = {
        "name": name,
        "input": {"uri": f"{prefix}in/", "shard_rows": 16},
        "record": RECORD,
        "prompt": {"template": "prompts/scanned_receipt.j2"},
        "model": {
            "name": str(model),
            "engine": {"enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 32},
        },
        "output": {"uri": f"{prefix}{name}/"},
        "cluster": {"engines": 1, "gpus_per_engine": 0, "cpus_per_engine": 1, "concurrency": 32},
        "s3": {"endpoint_url": server.endpoint_url},
    }
    for section, values in changes.items():
        raw[section] = {**raw.get(section, {}), **values} if isinstance(values, dict) else values
    return parse_spec(raw, source="test")


def _counts(result: RunResult) -> dict[Status, int]:
    assert result.report is not None
    counts = dict.fromkeys(Status, 0)
    for item in result.report.counts:
        counts[item.status] += item.documents
    return counts


@pytest.fixture
def store(s3_bucket: str, s3_server: S3Server) -> Store:
    return open_store(s3_bucket, S3Spec(endpoint_url=s3_server.endpoint_url))


def _least_tokens(spec: JobSpec) -> int:
    vocabulary = Vocabulary.from_tokenizer(load_tokenizer(spec.model))
    return compile_guide(compile_grammar(ScannedReceipt, extractive=False), vocabulary).least_tokens


def test_two_engines_close_every_record_within_a_budget(
    cluster: Cluster, s3_bucket: str, s3_server: S3Server, store: Store, tiny_llama: Path
) -> None:
    """A model of random weights wants nothing that the schema wants; only the budget mask can end its records.

    Without it they are cut off: a record is called closed when the model, asked again without a budget, says a token
    after which no record ends within it, or when it repeats itself until the budget ends it.
    """
    rows = [{"document_id": item.document_id, "text": item.text} for item in receipts(24, seed=3)]
    put_parquet(store, f"{s3_bucket}in/receipts.parquet", rows)
    least = _least_tokens(_spec(s3_bucket, s3_server, tiny_llama, "least"))
    budget = {"max_tokens": int(1.2 * least), "extractive": False}

    closed = _spec(
        s3_bucket,
        s3_server,
        tiny_llama,
        "closed",
        input={"shard_rows": 8},
        decoding=budget,
        cluster={"engines": 2},
    )
    counts = _counts(run(closed, base=ROOT, address=cluster.address))
    assert counts[Status.TRUNCATED] == counts[Status.INVALID] == counts[Status.FAILED] == 0
    assert counts[Status.VALID] + counts[Status.CLOSED] == 24
    assert counts[Status.CLOSED] > 12
    found = verify(closed.output.uri, closed.s3)
    assert found.is_sound, found.problems
    table = read_records(closed.output.uri, s3=closed.s3).to_table()
    assert table.num_rows == 24
    assert pc.max(table["_output_tokens"]).as_py() <= budget["max_tokens"]


def test_real_receipts_become_records_whose_extractive_values_stand_in_them(
    cluster: Cluster, s3_bucket: str, s3_server: S3Server, store: Store, smollm2: Path, shared_data: Path
) -> None:
    table = pq.read_table(shared_data / "receipts" / "receipts.parquet").slice(0, 16)
    put_parquet(store, f"{s3_bucket}in/receipts.parquet", table.select(["document_id", "text"]).to_pylist())
    spec = _spec(
        s3_bucket,
        s3_server,
        smollm2,
        "scanned",
        decoding={"max_tokens": 128, "date_order": "dmy"},
    )
    result = run(spec, base=ROOT, address=cluster.address)
    assert result.exit_code == 0
    counts = _counts(result)
    assert counts[Status.VALID] + counts[Status.CLOSED] == 16
    found = verify(spec.output.uri, spec.s3)
    assert found.is_sound, found.problems
    assert result.report is not None
    assert [len(item.spans) > 0 for item in result.report.shown] == [True] * spec.output.shown_documents
    texts = {row["document_id"]: row["text"] for row in table.to_pylist()}
    dates = {row["document_id"]: _day(row["gold_date"]) for row in table.to_pylist()}
    right = 0
    for row in read_records(spec.output.uri, s3=spec.s3).to_table().to_pylist():
        assert set(row) >= set(ScannedReceipt.model_fields)
        spans = {span["field"] for span in row["_spans"]}
        assert spans == {name for name in ScannedReceipt.model_fields if row[name] is not None}
        assert " ".join(texts[row["_document_id"]].split()).find(row["company"]) >= 0
        right += row["date"] == dates[row["_document_id"]]
    assert right >= 15


def _day(written: str) -> date:
    """Of `07/11/2017`, `07-11-2017` or `07-11-17`."""
    day, month, year = re.split("[/-]", written)
    return date(int(year) % 2000 + 2000, int(month), int(day))
