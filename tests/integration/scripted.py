"""Documents, jobs and answers for whole runs with the scripted engine: no model, everything else real."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, Field

from pipeline.core.sections import S3Spec
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.plan import load_plan
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import read_footer, read_part
from pipeline.storage.store import Store, open_store

ROOT = Path(__file__).resolve().parents[2]


class Note(BaseModel):
    """What a document of these tests says."""

    title: Annotated[str, Field(max_length=40)]
    number: Annotated[int, Field(ge=0, le=9999)]


def answer(prompt: str) -> str:
    """The record of a document `note <number>`, whatever stands around it."""
    number = prompt.rpartition("note ")[2].split()[0]
    return json.dumps({"title": f"note {number}", "number": int(number)}, separators=(",", ":"))


def documents(count: int, *, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"document_id": f"d{index:05}", "text": f"note {index} of some length"} for index in range(start, start + count)
    ]


def put_parquet(store: Store, uri: str, rows: list[dict[str, Any]], *, row_group_rows: int = 20) -> None:
    schema = pa.schema([("document_id", pa.string()), ("text", pa.string())])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema), sink, row_group_size=row_group_rows, write_page_checksum=True)
    store.put(uri, sink.getvalue().to_pybytes())


def job(prefix: str, endpoint_url: str | None, **changes: Any) -> JobSpec:
    """A job over `<prefix>in/`; keyword arguments replace sections' keys, as `cluster={"engines": 1}`."""
    raw: dict[str, Any] = {
        "name": "scripted",
        "input": {"uri": f"{prefix}in/", "shard_rows": 20},
        "record": "tests.integration.scripted:Note",
        "model": {"name": "scripted", "engine": {"answers": "tests.integration.scripted:answer", "token_s": 0.001}},
        "decoding": {"max_tokens": 100},
        "limits": {"engine_silence_s": 20},
        "output": {"uri": f"{prefix}run/"},
        "cluster": {"engines": 2, "gpus_per_engine": 0, "cpus_per_engine": 0.5, "concurrency": 8, "wait_s": 60},
        "s3": {"endpoint_url": endpoint_url},
    }
    for section, values in changes.items():
        raw[section] = {**raw.get(section, {}), **values} if isinstance(values, dict) else values
    if "engine" in changes.get("model", {}):
        raw["model"]["engine"] = {"answers": "tests.integration.scripted:answer", **changes["model"]["engine"]}
    return parse_spec(raw, source="test")


def stored_rows(spec: JobSpec) -> list[dict[str, Any]]:
    """Every row of every part, read with its checksums; the footers must say the same."""
    store = open_store(spec.output.uri, spec.s3)
    rows: list[dict[str, Any]] = []
    for item in store.list_prefix(RunLayout(spec.output.uri).parts_prefix):
        table = read_part(store, item.uri).to_pylist()
        assert read_footer(store, item.uri).rows == len(table)
        rows += table
    return rows


def assert_each_once(spec: JobSpec, ids: Iterable[str | None]) -> list[dict[str, Any]]:
    """The oracle: ids out are the ids in, as multisets, and every part holds just its shard."""
    rows = stored_rows(spec)
    assert Counter(row["_document_id"] for row in rows) == Counter(ids)
    store = open_store(spec.output.uri, spec.s3)
    plan = load_plan(store, RunLayout(spec.output.uri))
    assert plan is not None
    assert plan.plan.rows == len(rows)
    return rows


def store_of(prefix: str, endpoint_url: str | None) -> Store:
    return open_store(prefix, S3Spec(endpoint_url=endpoint_url))
