"""The report's documents beside their records: read again from the input, marked where their values stand."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.document import Piece, Plan, Shard
from pipeline.core.outcome import Status
from pipeline.core.sections import RerunSpec, S3Spec
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.report.documents import ShownSpan
from pipeline.run.preflight import input_objects
from pipeline.run.shown import TEXT_CHARS, shown_documents
from pipeline.storage.layout import RunLayout
from pipeline.storage.store import open_store
from tests.unit.report.runs import FINGERPRINT, Run, lost, valid

SHARD_ROWS = 5


def _spec(folder: Path, shown: int) -> JobSpec:
    raw = {
        "name": "bills",
        "input": {"uri": f"{folder}/in/", "shard_rows": SHARD_ROWS},
        "record": "schemas.bill:Bill",
        "model": {"name": "some/model"},
        "output": {"uri": f"{folder}/out[1]/", "shown_documents": shown},
    }
    return parse_spec(raw, source="bills.yaml")


def _run(folder: Path, shown: int = 4) -> tuple[Run, Plan, JobSpec]:
    """Four shards of five documents; the second shard has none with a record."""
    spec = _spec(folder, shown)
    (folder / "in").mkdir()
    ids = [f"d{index}" for index in range(20)]
    texts = [f"ACME owes 9.00, says {document_id}" for document_id in ids]
    texts[15] += " and so on" * 1000
    pq.write_table(pa.table({"document_id": ids, "text": texts}), folder / "in" / "all.parquet", row_group_size=5)
    objects = input_objects(open_store("/", S3Spec()), spec)
    shards = tuple(Shard((Piece(objects[0].uri, objects[0].etag, index, 0, 5),)) for index in range(4))
    plan = Plan(FINGERPRINT, objects, shards)
    run = Run(RunLayout(spec.output.uri))
    for position in range(4):
        own = ids[position * 5 : position * 5 + 5]
        first_is_lost = [lost(own[0]), *map(valid, own[1:])]
        outcomes = {0: first_is_lost, 1: [lost(name) for name in own]}.get(position, [valid(name) for name in own])
        run.put_part(plan, position, outcomes)
    return run, plan, spec


def test_one_document_of_each_shard_that_has_values_is_shown_with_its_spans(tmp_path: Path) -> None:
    run, plan, spec = _run(tmp_path)
    shown = shown_documents(run.store, run.layout, plan, spec)
    assert [item.document_id for item in shown] == ["d1", "d10", "d15"]
    assert shown[0].text == "ACME owes 9.00, says d1"
    assert shown[0].record == {"vendor": "ACME", "total": "9.00"}
    vendor, total = shown[0].spans
    assert (vendor, total) == (
        ShownSpan(field="vendor", start=0, end=4),
        ShownSpan(field="total", start=9, end=13, is_ambiguous=True),
    )
    assert shown[0].text[vendor.start : vendor.end] == "ACME"
    assert len(shown[2].text) == TEXT_CHARS < shown[2].text_chars


def test_a_run_of_one_shard_shows_several_of_its_documents(tmp_path: Path) -> None:
    run, plan, spec = _run(tmp_path)
    one = Plan(FINGERPRINT, plan.objects, plan.shards[:1])
    assert [item.document_id for item in shown_documents(run.store, run.layout, one, spec)] == ["d1", "d2", "d3", "d4"]


def test_equal_ids_are_shown_of_a_rerun_which_takes_them_from_several_shards(tmp_path: Path) -> None:
    """Fails when the second one is taken for a double, which has no text."""
    run, _, spec = _run(tmp_path)
    ids, texts = ["d1"] * SHARD_ROWS, ["ACME owes 9.00"] * SHARD_ROWS
    pq.write_table(pa.table({"document_id": ids, "text": texts}), tmp_path / "in" / "all.parquet")
    rerun = spec.model_copy(update={"rerun": RerunSpec(of=f"{tmp_path}/old/", status=(Status.CLOSED,))})
    objects = input_objects(run.store, spec)
    one = Plan(FINGERPRINT, objects, (Shard((Piece(objects[0].uri, objects[0].etag, 0, 0, SHARD_ROWS),)),))
    run.put_part(one, 0, [valid(document_id) for document_id in ids])
    assert len(shown_documents(run.store, run.layout, one, spec)) == 1
    assert len(shown_documents(run.store, run.layout, one, rerun)) == spec.output.shown_documents


def test_none_is_shown_where_the_job_says_so(tmp_path: Path) -> None:
    run, plan, spec = _run(tmp_path, shown=0)
    assert shown_documents(run.store, run.layout, plan, spec) == ()


def test_an_input_that_has_gone_and_a_damaged_part_cost_the_run_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, plan, spec = _run(tmp_path)
    (tmp_path / "in" / "all.parquet").unlink()
    assert shown_documents(run.store, run.layout, plan, spec) == ()
    part = Path(run.layout.part(plan.shards[0].shard_id))
    part.write_bytes(part.read_bytes()[:100])
    with caplog.at_level(logging.WARNING):
        assert shown_documents(run.store, run.layout, plan, spec) == ()
    assert "shows no documents" in caplog.text


def test_a_row_that_is_another_document_by_now_is_not_shown(tmp_path: Path) -> None:
    """Fails when `with_grounded` does not compare ids."""
    run, plan, spec = _run(tmp_path)
    one = Plan(FINGERPRINT, plan.objects, plan.shards[2:3])
    part = Path(run.layout.part(plan.shards[2].shard_id))
    part.unlink()
    run.put_part(plan, 2, [valid("d10"), valid("another"), valid("d12"), valid("d13"), valid("d14")])
    assert [item.document_id for item in shown_documents(run.store, run.layout, one, spec)] == [
        "d10",
        "d12",
        "d13",
        "d14",
    ]
