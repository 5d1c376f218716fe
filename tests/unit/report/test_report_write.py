"""The report of what stands under a prefix."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from pipeline.core.errors import InputError
from pipeline.core.outcome import Cause, Status
from pipeline.core.sections import S3Spec
from pipeline.report.documents import KnownAnswersUse
from pipeline.report.model import Report
from pipeline.report.write import RAW_CHARS, build_report, score_run, write_report
from pipeline.storage.layout import RunLayout
from pipeline.storage.store import open_store
from pipeline.storage.threads import in_order
from tests.unit.report.runs import START, Run, closed, effective_spec, lost, plan_of, valid


def test_the_report_is_read_from_the_parts_that_stand(run: Run) -> None:
    plan = plan_of(2, 1, 3)
    run.put_part(plan, 0, [valid("a"), closed("b")])
    run.put_part(plan, 2, [valid("d"), lost("e"), lost(None, cause=Cause.NULL_ID)])
    report = build_report(run.store, run.layout, plan, generated_at=START)
    assert report.balance.outcomes.model_dump() == {"valid": 2, "closed": 1, "truncated": 0, "invalid": 0, "failed": 2}
    assert [gone.position for gone in report.missing] == [1]
    assert report.output_uri == run.layout.prefix


def test_a_prefix_without_anything_gives_a_report_of_what_is_missing(run: Run) -> None:
    report = build_report(run.store, run.layout, plan_of(2, 1))
    assert (report.balance.documents_missing, report.spec, report.submissions) == (3, {}, ())


def test_problem_documents_bring_detail_and_raw_text_cut_at_a_bound(run: Run) -> None:
    plan = plan_of(3)
    raw = '{"vendor":"' + "x" * 5000
    run.put_part(
        plan,
        0,
        [
            valid("a"),
            lost("b", Status.TRUNCATED, Cause.RUNAWAY, raw=raw),
            lost("c", Status.INVALID, Cause.VALIDATOR, "no", "{}"),
        ],
    )
    problems = {item.document_id: item for item in build_report(run.store, run.layout, plan).problems}
    assert problems["b"].raw == raw[:RAW_CHARS]
    assert (problems["b"].raw_chars, problems["b"].is_raw_cut) == (len(raw), True)
    assert (problems["c"].detail, problems["c"].raw, problems["c"].is_raw_cut) == ("no", "{}", False)


def test_documents_without_an_id_are_told_apart_and_long_ids_found(run: Run) -> None:
    plan = plan_of(3)
    rows = [lost(None, cause=Cause.NULL_ID, detail=detail) for detail in ("first", "second")]
    run.put_part(plan, 0, [*rows, lost("i" * 300, detail="long")])
    assert sorted(item.detail or "" for item in build_report(run.store, run.layout, plan).problems) == [
        "first",
        "long",
        "second",
    ]


def test_a_damaged_part_is_named_and_the_rest_counted(run: Run) -> None:
    plan = plan_of(1, 1)
    run.put_part(plan, 0, [valid("a")])
    path = Path(run.put_part(plan, 1, [valid("b")]))
    path.write_bytes(path.read_bytes()[:-20])
    report = build_report(run.store, run.layout, plan)
    assert report.balance.outcomes.valid == 1
    assert report.missing[0].shard_id == plan.shards[1].shard_id
    assert plan.shards[1].shard_id in report.balance.problems[0]


def test_a_damaged_page_costs_the_sample_and_not_the_counts(run: Run) -> None:
    plan = plan_of(1)
    path = Path(run.put_part(plan, 0, [lost("a", Status.INVALID, Cause.VALIDATOR, "no", "raw text")]))
    data = bytearray(path.read_bytes())
    data[40] ^= 0xFF
    path.write_bytes(data)
    report = build_report(run.store, run.layout, plan)
    assert report.balance.outcomes.invalid == 1
    assert "damaged" in (report.problems[0].detail or "")


def test_what_lies_beside_the_parts_is_not_taken_for_one(run: Run) -> None:
    plan = plan_of(1)
    run.put_part(plan, 0, [valid("a")])
    run.store.put(run.layout.parts_prefix + "notes.txt", b"hello")
    run.store.put(run.layout.half("0" * 16), b"half")
    assert build_report(run.store, run.layout, plan).is_complete


def test_spec_and_submissions_are_shown_as_stored(run: Run) -> None:
    run.store.put(run.layout.spec, json.dumps(effective_spec()).encode())
    run.store.put(run.layout.submission("20261128T210402-aa"), json.dumps({"versions": {"ray": "2.60.0"}}).encode())
    run.store.put(run.layout.submission("20261129T210402-bb"), b'{"cut of')
    report = build_report(run.store, run.layout, plan_of())
    assert report.spec == effective_spec()
    assert [item.submission_id for item in report.submissions] == ["20261128T210402-aa", "20261129T210402-bb"]
    assert report.submissions[0].entries == {"versions": {"ray": "2.60.0"}}
    assert "unreadable" in report.submissions[1].entries


def test_report_json_follows_its_schema_and_reads_back(run: Run) -> None:
    plan = plan_of(2)
    run.put_part(plan, 0, [valid("a"), closed("b")])
    report = build_report(run.store, run.layout, plan)
    write_report(run.store, run.layout, report)
    stored = run.store.get(run.layout.report_json)
    jsonschema.validate(json.loads(stored), Report.model_json_schema())
    assert Report.model_validate_json(stored) == report
    assert run.store.get(run.layout.report_html).startswith(b"<!doctype html>")


def test_a_report_is_written_over_an_older_one(run: Run) -> None:
    plan = plan_of(1)
    write_report(run.store, run.layout, build_report(run.store, run.layout, plan))
    run.put_part(plan, 0, [valid("a")])
    write_report(run.store, run.layout, build_report(run.store, run.layout, plan))
    assert json.loads(run.store.get(run.layout.report_json))["is_complete"] is True


def test_the_schema_documents_every_field_that_its_name_does_not_explain() -> None:
    schema = Report.model_json_schema()
    assert schema["properties"]["report_version"]["const"] == 1
    assert schema["properties"]["wall_s"]["description"]
    assert schema["$defs"]["FieldScore"]["properties"]["normalised"]["description"]


def test_a_run_is_scored_against_known_answers_over_all_parts(run: Run) -> None:
    plan = plan_of(2, 2)
    run.put_part(plan, 0, [valid("a", "ACME", "9.00"), valid("b", "Beta", "8.00")])
    run.put_part(plan, 1, [valid("c", "Gamma", "1.00"), lost("d")])
    gold = pa.table(
        {
            "document_id": ["a", "b", "c", "d"],
            "gold_vendor": ["acme", "Beta", "x", "y"],
            "gold_total": ["RM 9", "8.00", "1.00", "2.00"],
        }
    )
    scored = score_run(run.store, run.layout, gold)
    scores = {score.field: score for score in scored.scores}
    assert (scores["vendor"].answered, scores["vendor"].exact, scores["vendor"].normalised) == (4, 1, 2)
    assert (scores["total"].kind, scores["total"].exact, scores["total"].normalised) == ("number", 2, 3)
    report = build_report(run.store, run.layout, plan, scored=scored)
    assert report.scores[0].field == "vendor"
    assert report.known_answers == KnownAnswersUse(ids=4)


def test_known_answers_that_no_score_counts_are_named(run: Run) -> None:
    """Fails when columns without a field, or ids without an outcome, go by in silence."""
    plan = plan_of(1, 1)
    run.put_part(plan, 0, [valid("a")])
    run.put_part(plan, 1, [valid("b")])
    ids = ["a", "b", "b", *(f"z{number}" for number in range(9))]
    columns = {name: ["x"] * len(ids) for name in ("gold_vendor", "gold_vendr", "text")}
    use = score_run(run.store, run.layout, pa.table({"document_id": ids, **columns})).use
    assert use.unused_columns == ("gold_vendr",)
    assert (use.ids, use.ids_unmatched, use.ids_repeated) == (11, 9, 1)
    assert use.unmatched == ("z0", "z1", "z2", "z3", "z4")
    plain = pa.table({"document_id": ids, "vendor": columns["text"], "note": columns["text"]})
    assert score_run(run.store, run.layout, plain).use.unused_columns == ("note",)


def test_scoring_a_run_without_parts_says_so(run: Run) -> None:
    with pytest.raises(InputError, match="no part"):
        score_run(run.store, run.layout, pa.table({"document_id": ["a"], "vendor": ["x"]}))


def test_results_come_in_order_and_a_bounded_number_of_them_waits() -> None:
    started: list[int] = []

    def work(item: int) -> int:
        started.append(item)
        return item

    results = in_order(work, range(1000), 4, ahead=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(started) <= 8
    assert list(results) == list(range(3, 1000))


@pytest.mark.s3
def test_a_run_on_s3_is_reported_as_it_stands_there(s3_bucket: str) -> None:
    run = Run(RunLayout(f"{s3_bucket}run"), open_store(s3_bucket, S3Spec()))
    plan = plan_of(*[2] * 40)
    for position in range(39):
        run.put_part(plan, position, [valid(f"{position}a"), lost(f"{position}b", detail="blank")])
    report = build_report(run.store, run.layout, plan)
    assert (report.balance.outcomes.valid, report.balance.outcomes.failed) == (39, 39)
    assert [gone.position for gone in report.missing] == [39]
    assert [problem.detail for problem in report.problems] == ["blank"] * 10
    write_report(run.store, run.layout, report)
    assert Report.model_validate_json(run.store.get(run.layout.report_json)) == report
