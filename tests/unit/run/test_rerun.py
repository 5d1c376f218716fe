"""A rerun takes exactly the rows that were asked for, whatever their ids, and nothing that would come out the same."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.document import Piece, Shard
from pipeline.core.errors import FingerprintError, InputError, SpecError, VerificationError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.engines import start_engine
from pipeline.run.fingerprint import schema_digest
from pipeline.run.messages import Setup, Summary
from pipeline.run.plan import write_plan
from pipeline.run.preflight import Prepared, prepare
from pipeline.run.rerun import chosen_rows, count_chosen, rerun_spec
from pipeline.run.submission import write_spec
from pipeline.run.task import Task
from pipeline.run.verify import stored_spec
from pipeline.run.worker import Worker
from pipeline.storage.arrow import outcomes_table
from pipeline.storage.documents import DocumentReader
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import encode_part, part_footer, read_statuses
from pipeline.storage.store import open_store

ROWS = 50
Judge = Callable[[int], tuple[Status, Cause | None]]


def judged(number: int) -> tuple[Status, Cause | None]:
    """Every seventh document truncated, every tenth closed, one without an id of its own."""
    if number == 3:
        return Status.FAILED, Cause.DUPLICATE_ID
    if number % 7 == 0:
        return Status.TRUNCATED, Cause.BUDGET
    return (Status.CLOSED, Cause.RUNAWAY) if number % 10 == 1 else (Status.VALID, None)


@pytest.fixture
def parent(tmp_path: Path) -> JobSpec:
    return finished(tmp_path, judged)


def finished(folder: Path, judge: Judge, *, without: int = 0) -> JobSpec:
    """A run under `old[1]/` with these outcomes, its last `without` parts missing.  Ids are all alike."""
    (folder / "in").mkdir()
    lines = [json.dumps({"document_id": "same", "text": f"note {number}"}) for number in range(ROWS)]
    (folder / "in" / "a.jsonl").write_text("\n".join(lines))
    spec = parse_spec(
        {
            "name": "n",
            "input": {"uri": str(folder / "in"), "shard_rows": 8},
            "record": "tests.integration.scripted:Note",
            "model": {"name": "scripted"},
            "decoding": {"max_tokens": 60},
            "truncation": {"escalate": [80, 160]},
            "output": {"uri": str(folder / "old[1]")},
        },
        source="test",
    )
    prepared = prepare(spec, folder)
    write_plan(prepared.store, prepared.layout, prepared.stored, attempt="a")
    write_spec(prepared.store, prepared.layout, spec, attempt="a")
    number = 0
    shards = prepared.stored.plan.shards
    for shard in shards[: len(shards) - without]:
        put_part(prepared, shard, [outcome(number + index, judge) for index in range(shard.rows)])
        number += shard.rows
    return spec


def outcome(number: int, judge: Judge) -> Outcome:
    status, cause = judge(number)
    record = {"title": "t", "number": 1} if status in (Status.VALID, Status.CLOSED) else None
    return Outcome("same", status, cause, record=record)


def put_part(prepared: Prepared, shard: Shard, outcomes: list[Outcome]) -> None:
    now = dt.datetime.now(dt.UTC)
    footer = part_footer(
        outcomes,
        shard_id=shard.shard_id,
        fingerprint=prepared.stored.plan.fingerprint,
        attempt="a",
        engine="e",
        started_at=now,
        finished_at=now,
    )
    table = outcomes_table(outcomes, prepared.schema, attempt="a", engine="e")
    prepared.store.put_if_absent(prepared.layout.part(shard.shard_id), encode_part(table, footer), attempt="a")


def child_of(parent: JobSpec, folder: Path, **wanted: Any) -> JobSpec:
    wanted = {"status": ["truncated", "closed"], "max_tokens": 100, "output": str(folder / "new[1]"), **wanted}
    return parse_spec(rerun_spec(parent, of=parent.output.uri, **wanted), source="test")


def texts_of(prepared: Prepared) -> list[str | None]:
    spec = prepared.job.spec
    reader = DocumentReader(open_store(spec.input.uris[0], spec.s3), spec.input, spec.limits)
    pieces = [piece for shard in prepared.stored.plan.shards for piece in shard.pieces]
    return [document.text for piece in pieces for document in reader.read(piece)]


def test_the_plan_holds_the_very_rows_though_all_ids_are_alike(parent: JobSpec, tmp_path: Path) -> None:
    prepared = prepare(child_of(parent, tmp_path), tmp_path)
    expected = [number for number in range(ROWS) if judged(number)[0] in (Status.TRUNCATED, Status.CLOSED)]
    assert texts_of(prepared) == [f"note {number}" for number in expected]
    assert all(shard.rows <= 8 for shard in prepared.stored.plan.shards)


async def test_its_worker_takes_ids_that_were_in_several_shards_for_no_doubles(parent: JobSpec, tmp_path: Path) -> None:
    """Fails when the worker does not tell `rows_of` that it works on a rerun."""
    prepared = prepare(child_of(parent, tmp_path), tmp_path)
    write_plan(prepared.store, prepared.layout, prepared.stored, attempt="a")
    spec, guide = prepared.job.spec, prepared.job.guide
    assert guide is not None
    worker = Worker(
        Setup(
            spec,
            str(tmp_path),
            schema_digest(prepared.job.schema),
            prepared.job.template,
            prepared.stored.plan.fingerprint,
            guide.fingerprint,
            "s",
            start_engine,
            prepared.schema,
        ),
        4,
    )
    assert await worker.start(guide.to_bytes()) == "scripted"
    for shard in prepared.stored.plan.shards:
        assert isinstance(await worker.attempt(Task(shard.shard_id, shard, shard.shard_id), 1), Summary)
        causes = {cause for _, cause in read_statuses(prepared.store, prepared.layout.part(shard.shard_id))}
        assert Cause.DUPLICATE_ID not in causes


def test_a_cause_narrows_the_choice_and_the_footers_count_the_same(parent: JobSpec, tmp_path: Path) -> None:
    spec = child_of(parent, tmp_path, cause=["runaway"])
    assert texts_of(prepare(spec, tmp_path)) == [f"note {number}" for number in (1, 11, 31, 41)]
    assert spec.rerun is not None
    chosen = count_chosen(spec, spec.rerun)
    assert (chosen.documents, chosen.by_cause, chosen.left_out) == (4, {"runaway": 4}, 0)


def test_rows_without_an_id_of_their_own_are_left_out_and_counted(parent: JobSpec, tmp_path: Path) -> None:
    spec = child_of(parent, tmp_path, status=["failed"], max_tokens=None)
    assert spec.rerun is not None
    chosen = count_chosen(spec, spec.rerun)
    assert (chosen.documents, chosen.left_out) == (0, 1)
    with pytest.raises(InputError, match="can be run again"):
        prepare(spec, tmp_path)


def test_the_new_spec_names_the_old_run_and_keeps_the_rungs_above_its_budget(parent: JobSpec, tmp_path: Path) -> None:
    spec = child_of(parent, tmp_path)
    assert spec.truncation.escalate == (160,)
    assert spec.rerun is not None
    assert spec.rerun.of == f"{parent.output.uri}/"
    prepared = prepare(spec, tmp_path)
    write_spec(prepared.store, prepared.layout, spec, attempt="b")
    assert stored_spec(prepared.store, RunLayout(spec.output.uri)) == spec


def test_it_is_resumed_by_its_own_plan_though_new_documents_have_come(parent: JobSpec, tmp_path: Path) -> None:
    spec = child_of(parent, tmp_path)
    first = prepare(spec, tmp_path)
    write_plan(first.store, first.layout, first.stored, attempt="b")
    (tmp_path / "in" / "b.jsonl").write_text('{"document_id": "later", "text": "note 99"}')
    again = prepare(spec, tmp_path)
    assert not again.is_new
    assert again.stored.plan == first.stored.plan


def test_neither_the_whole_job_nor_another_choice_is_taken_for_it(parent: JobSpec, tmp_path: Path) -> None:
    first = prepare(child_of(parent, tmp_path), tmp_path)
    write_plan(first.store, first.layout, first.stored, attempt="b")
    with pytest.raises(FingerprintError, match=r"rerun\.status"):
        prepare(child_of(parent, tmp_path, status=["truncated"]), tmp_path)
    whole = parent.model_copy(update={"output": first.job.spec.output})
    with pytest.raises(FingerprintError, match="another run"):
        prepare(whole, tmp_path)


def test_what_would_come_out_the_same_is_refused(parent: JobSpec, tmp_path: Path) -> None:
    same = child_of(parent, tmp_path, max_tokens=None)
    with pytest.raises(SpecError, match="nothing differs"):
        prepare(same, tmp_path)


def test_an_unfinished_run_is_finished_first(tmp_path: Path) -> None:
    parent = finished(tmp_path, judged, without=2)
    with pytest.raises(InputError, match="2 shards have no part; finish it first"):
        prepare(child_of(parent, tmp_path), tmp_path)


def test_input_that_has_changed_since_is_named(parent: JobSpec, tmp_path: Path) -> None:
    (tmp_path / "in" / "a.jsonl").write_text('{"document_id": "x", "text": "y"}')
    with pytest.raises(InputError, match=r"replaced or are gone since.*a\.jsonl"):
        prepare(child_of(parent, tmp_path), tmp_path)


def test_a_part_of_another_run_is_not_believed(parent: JobSpec, tmp_path: Path) -> None:
    parts = sorted((tmp_path / "old[1]" / "parts").iterdir())
    parts[0].write_bytes(parts[1].read_bytes())
    with pytest.raises(VerificationError):
        prepare(child_of(parent, tmp_path), tmp_path)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=6), st.data())
def test_pieces_hold_exactly_the_chosen_rows(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    pieces = tuple(Piece(f"u{index}", "e", group, 5, 5 + rows) for index, (group, rows) in enumerate(sizes))
    shard = Shard(pieces)
    numbers = sorted(data.draw(st.sets(st.integers(0, shard.rows - 1))))
    all_rows = [(piece.uri, piece.row_group, row) for piece in pieces for row in range(piece.row_start, piece.row_stop)]
    found = list(chosen_rows(shard, numbers))
    named = [(piece.uri, piece.row_group, row) for piece in found for row in range(piece.row_start, piece.row_stop)]
    assert named == [all_rows[number] for number in numbers]
    assert all(a.uri != b.uri or a.row_stop < b.row_start for a, b in itertools.pairwise(found))


def test_what_the_report_may_show_is_kept(parent: JobSpec, tmp_path: Path) -> None:
    """Fails when a rerun falls back to showing documents whose text was to stay out of the report."""
    quiet = parent.model_copy(update={"output": parent.output.model_copy(update={"shown_documents": 0})})
    assert child_of(quiet, tmp_path).output.shown_documents == 0
