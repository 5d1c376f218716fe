"""From footers and plan to the report."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.report.books import FoundPart, books_of
from pipeline.report.counts import make_report
from pipeline.report.model import Balance, Report, StatusCounts, Submission
from tests.unit.report.runs import START, closed, effective_spec, footer_of, lost, plan_of, report_of, valid


def test_documents_in_are_the_sum_of_outcomes() -> None:
    plan = plan_of(3, 2)
    report = report_of(
        plan,
        {
            0: [valid("a"), closed("b"), lost("c", Status.TRUNCATED, Cause.RUNAWAY)],
            1: [lost("d", Status.INVALID, Cause.VALIDATOR), lost("e")],
        },
    )
    assert report.balance.outcomes.model_dump() == {"valid": 1, "closed": 1, "truncated": 1, "invalid": 1, "failed": 1}
    assert report.balance.is_balanced
    assert report.is_complete
    assert [(entry.status, entry.cause, entry.documents) for entry in report.counts] == [
        (Status.VALID, None, 1),
        (Status.CLOSED, Cause.BUDGET, 1),
        (Status.TRUNCATED, Cause.RUNAWAY, 1),
        (Status.INVALID, Cause.VALIDATOR, 1),
        (Status.FAILED, Cause.EMPTY, 1),
    ]
    assert [(shard.position, shard.documents, shard.records) for shard in report.shards] == [(0, 3, 2), (1, 2, 0)]


def test_a_difference_alone_is_out_of_balance() -> None:
    balance = Balance(documents_planned=3, outcomes=StatusCounts(valid=2), documents_missing=0)
    assert (balance.difference, balance.is_balanced) == (1, False)


def test_a_missing_shard_is_named_with_the_places_of_its_documents() -> None:
    plan = plan_of(2, 3)
    report = report_of(plan, {0: [valid("a"), valid("b")]})
    (gone,) = report.missing
    assert gone.shard_id == plan.shards[1].shard_id
    assert (gone.position, gone.documents) == (1, 3)
    assert gone.places == ("s3://docs/all.parquet row group 1 rows 0..2",)
    assert report.balance.documents_missing == 3
    assert report.balance.problems == ()
    assert not report.is_complete


def test_a_part_with_too_few_rows_is_said_to_be_so() -> None:
    report = report_of(plan_of(3), {0: [valid("a"), valid("b")]})
    assert report.balance.difference == 1
    assert "holds 2 rows; the plan has 3" in report.balance.problems[0]
    assert not report.is_complete


def test_a_part_of_another_run_is_said_to_be_so() -> None:
    plan = plan_of(1)
    part = FoundPart(plan.shards[0].shard_id, footer_of(plan, 0, [valid("a")], fingerprint="ffffffff"))
    report = make_report(books_of(plan, [part]), output_uri="x/", generated_at=START)
    assert "fingerprint is ffffffff" in report.balance.problems[0]
    assert not report.is_complete


def test_a_part_that_no_shard_stands_for_is_counted_apart() -> None:
    plan, other = plan_of(1), plan_of(1, 5)
    rows = [valid(str(index)) for index in range(5)]
    parts = [
        FoundPart(plan.shards[0].shard_id, footer_of(plan, 0, [valid("a")])),
        FoundPart(other.shards[1].shard_id, footer_of(other, 1, rows)),
    ]
    report = make_report(books_of(plan, parts), output_uri="x/", generated_at=START)
    assert report.balance.outcomes.documents == 1
    assert report.balance.documents_unplanned == 5
    assert not report.is_complete


def test_a_part_under_another_shards_name_is_not_counted() -> None:
    plan = plan_of(1, 1)
    part = FoundPart(plan.shards[0].shard_id, footer_of(plan, 1, [valid("b")]))
    report = make_report(books_of(plan, [part]), output_uri="x/", generated_at=START)
    assert report.balance.outcomes.documents == 0
    assert report.balance.documents_missing == 2
    assert f"holds shard {plan.shards[1].shard_id}" in report.balance.problems[0]


def test_a_shard_with_two_parts_is_counted_once() -> None:
    plan = plan_of(1)
    part = FoundPart(plan.shards[0].shard_id, footer_of(plan, 0, [valid("a")]))
    report = make_report(books_of(plan, [part, part]), output_uri="x/", generated_at=START)
    assert report.balance.outcomes.documents == 1
    assert "two parts" in report.balance.problems[0]


def test_a_part_that_cannot_be_read_is_missing_and_a_problem() -> None:
    plan = plan_of(4)
    part = FoundPart(plan.shards[0].shard_id, None, "no intact footer")
    report = make_report(books_of(plan, [part]), output_uri="x/", generated_at=START)
    assert report.missing[0].reason == "no intact footer"
    assert report.balance.documents_missing == 4
    assert "no intact footer" in report.balance.problems[0]


def test_an_unreadable_input_object_is_named() -> None:
    report = report_of(plan_of(1, unreadable="12 bytes are no Parquet"), {0: [valid("a")]})
    assert report.balance.is_balanced
    assert not report.is_complete
    assert [(entry.uri, entry.reason) for entry in report.unreadable] == [
        ("s3://docs/bad.parquet", "12 bytes are no Parquet")
    ]


def test_tokens_time_spans_and_shaped_fields_add_up() -> None:
    report = report_of(plan_of(2, 1), {0: [valid("a"), closed("b")], 1: [closed("c")]})
    assert report.tokens.model_dump() == {"prompt_tokens": 300, "output_tokens": 148, "cached_tokens": 150}
    assert report.tokens.prefix_cache_hit_rate == 0.5
    assert report.output_tokens.edges == (0, 1, 2, 4, 8, 16, 32, 64)
    assert report.output_tokens.counts == (0, 0, 0, 0, 0, 1, 0, 2)
    assert report.slack_tokens.counts == (2, 0, 0, 0, 0, 0, 1)
    assert report.spans.model_dump() == {"grounded": 2, "ambiguous": 1, "empty": 0}
    assert [(entry.field, entry.documents) for entry in report.shaped_fields] == [("vendor", 2)]
    milliseconds = {phase.phase: phase.ms_per_document for phase in report.phases}
    assert milliseconds.pop("mask") is None
    assert milliseconds.pop("put") is None
    assert {name: round(value or 0) for name, value in milliseconds.items()} == {
        "queue": 667,
        "prompt": 1333,
        "prefill": 2000,
        "decode": 60000,
        "parse": 2000,
        "encode": 667,
    }
    assert report.engine.busy_share is None
    assert (report.wall_s, report.active_s) == (120, 120)


def used(name: str, **values: float) -> Submission:
    whole = {
        "wall_s": 10.0,
        "request_wall_s": 8.0,
        "busy_s": 6.0,
        "mask_s": 0.1,
        "encode_s": 0.2,
        "put_s": 0.4,
        "documents": 2,
    }
    return Submission(submission_id=name, entries={"engine_use": {**whole, **values}})


def test_engines_are_busy_for_a_share_of_the_clock_and_not_of_the_documents_times() -> None:
    """Fails when idle time cannot lower the share, as where documents' own times are divided by each other."""
    silent = Submission(submission_id="c", entries={"engine_use": "killed"})
    report = report_of(
        plan_of(2, 1),
        {0: [valid("a"), valid("b")], 1: [valid("c")]},
        submissions=[
            used("a"),
            used("b", wall_s=30.0, request_wall_s=20.0, busy_s=8.0, documents=1),
            silent,
            Submission(submission_id="d", entries={}),
        ],
    )
    assert (report.engine.busy_share, report.engine.steady_share) == (0.35, 0.5)
    assert (report.engine.documents, report.engine.submissions_left_out) == (3, 2)
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_a_put_is_measured_for_the_documents_whose_submission_says_so() -> None:
    rows = {0: [valid("a"), valid("b")], 1: [valid("c")]}
    phases = {phase.phase: phase for phase in report_of(plan_of(2, 1), rows, submissions=[used("a")]).phases}
    assert (phases["put"].ms_per_document, phases["put"].documents) == (200, 2)
    assert (phases["encode"].ms_per_document, phases["encode"].documents) == (100, 2)
    assert phases["decode"].documents == 3


def test_a_phase_is_divided_by_the_documents_of_the_parts_that_measured_it() -> None:
    """Zero in a footer means that it was not measured."""
    plan = plan_of(2, 2)
    older, newer = (footer_of(plan, position, [valid("a"), valid("b")]) for position in (0, 1))
    older = older.model_copy(update={"timings_s": older.timings_s.model_copy(update={"parse": 0.0})})
    newer = newer.model_copy(update={"timings_s": newer.timings_s.model_copy(update={"parse": 0.5})})
    parts = [FoundPart(footer.shard_id, footer) for footer in (older, newer)]
    report = make_report(books_of(plan, parts), output_uri="x/", generated_at=START)
    (parse,) = [phase for phase in report.phases if phase.phase == "parse"]
    assert (parse.ms_per_document, parse.documents) == (250, 2)


def test_masks_are_divided_by_all_documents_of_the_submissions_that_measured_them() -> None:
    """A shard that is committed right after another finds no time for masks: its footer says nothing of its own."""
    plan = plan_of(2, 2, 2)
    footers = [footer_of(plan, position, [valid("a"), valid("b")]) for position in range(3)]
    footers[0] = footers[0].model_copy(update={"timings_s": footers[0].timings_s.model_copy(update={"mask": 0.5})})
    parts = [FoundPart(footer.shard_id, footer) for footer in footers]
    submissions = [used("a", documents=4, mask_s=0.5), used("b", mask_s=0.0)]
    report = make_report(books_of(plan, parts), output_uri="x/", generated_at=START, submissions=submissions)
    (mask,) = [phase for phase in report.phases if phase.phase == "mask"]
    assert (mask.ms_per_document, mask.documents) == (125, 4)


def test_problem_documents_are_of_as_many_causes_as_there_are() -> None:
    causes = [Cause.EMPTY, Cause.TOO_LONG, Cause.REFUSED, Cause.NO_SPAN]
    plan = plan_of(*[3] * 8)
    outcomes = {
        position: [lost(f"{position}-{index}", cause=Cause.EMPTY) for index in range(3)] for position in range(5)
    } | {
        position: [lost(f"{position}-{index}", cause=causes[position - 4]) for index in range(3)]
        for position in range(5, 8)
    }
    report = report_of(plan, outcomes)
    assert len(report.problems) == 10
    assert {problem.cause for problem in report.problems[:4]} == set(causes)


def test_worst_shards_come_first_and_wholly_valid_ones_never() -> None:
    plan = plan_of(2, 2, 2, 2)
    report = report_of(
        plan,
        {
            0: [valid("a"), valid("b")],
            1: [valid("c"), closed("d")],
            2: [valid("e"), lost("f")],
            3: [lost("g"), lost("h")],
        },
    )
    assert report.worst_shards == tuple(plan.shards[position].shard_id for position in (3, 2, 1))


def test_an_empty_run_is_balanced_and_has_nothing_to_show() -> None:
    report = report_of(plan_of(), {})
    assert report.is_complete
    assert (report.shards, report.rate, report.problems) == ((), (), ())
    assert not any(phase.documents for phase in report.phases)
    assert report.tokens.prefix_cache_hit_rate is None


def test_the_name_comes_from_the_spec_or_else_from_the_prefix() -> None:
    assert report_of(plan_of(), {}, spec=effective_spec()).name == "bills"
    assert make_report(books_of(plan_of(), []), output_uri="s3://runs/june/", generated_at=START).name == "june"


OUTCOMES: dict[str, Callable[[str], Outcome]] = {
    "valid": valid,
    "closed": closed,
    "runaway": lambda name: lost(name, Status.TRUNCATED, Cause.RUNAWAY),
    "validator": lambda name: lost(name, Status.INVALID, Cause.VALIDATOR),
    "empty": lost,
}


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=6), max_size=8), st.data())
def test_whatever_is_there_the_balance_holds_and_the_json_says_the_same(
    kinds: list[list[str]], data: st.DataObject
) -> None:
    plan = plan_of(*map(len, kinds))
    present = data.draw(st.sets(st.sampled_from(range(len(kinds))))) if kinds else set()
    names = itertools.count()
    outcomes = {
        position: [OUTCOMES[kind](str(next(names))) for kind in kinds[position]] for position in sorted(present)
    }
    report = report_of(plan, outcomes)
    balance = report.balance
    assert balance.documents_planned == balance.outcomes.documents + balance.documents_missing
    assert report.is_complete == (len(present) == len(kinds))
    assert sum(entry.documents for entry in report.counts) == balance.outcomes.documents
    assert Report.model_validate_json(report.model_dump_json()) == report
