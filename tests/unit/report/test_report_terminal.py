"""The report and records in a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from pipeline.core.document import Document
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.report.documents import KnownAnswersUse
from pipeline.report.html import render_html
from pipeline.report.model import Submission
from pipeline.report.terminal import BAR_CELLS, records_beside_text, report_lines
from tests.unit.report.runs import closed, lost, plan_of, report_of, valid

TEXT = "ACME LTD\nTotal: 9.00\x1b]0;owned\x07 [bold]not markup[/bold] [red"


def printed(renderable: RenderableType, width: int = 110, *, has_colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=has_colour, color_system="truecolor" if has_colour else None
    )
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_counts_are_those_of_the_report() -> None:
    shown = printed(report_lines(report_of(plan_of(4), {0: [valid("a"), valid("b"), closed("c"), lost("d")]})))
    assert "All 4 documents have exactly one outcome" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["█", "valid", "2", "50.0%"] in lines
    assert ["▓", "closed", "1", "25.0%", "budget", "1"] in lines
    assert ["=", "documents", "in", "4"] in lines


def test_a_run_that_goes_on_says_how_long_the_rest_takes() -> None:
    """Two of ten documents took a minute."""
    plan = plan_of(2, 8)
    report = report_of(plan, {0: [valid("a"), closed("b")]})
    assert "0.033 documents a second; at this rate what is missing takes 4 min" in printed(report_lines(report))
    assert "at this rate what is missing takes 4 min" in render_html(report)
    whole = report_of(plan_of(1), {0: [valid("a")]})
    assert "at this rate" not in printed(report_lines(whole)) + render_html(whole)
    assert "at this rate" not in printed(report_lines(report_of(plan, {})))


def test_of_many_things_that_are_wrong_the_first_are_named_and_the_rest_counted() -> None:
    report = report_of(plan_of(1), {0: [valid("a")]})
    balance = report.balance.model_copy(update={"problems": tuple(f"part {i} is damaged" for i in range(2010))})
    shown = printed(report_lines(report.model_copy(update={"balance": balance})))
    assert shown.count("is damaged") == 10
    assert "! and 2,000 more" in shown


@pytest.mark.parametrize("text", ["A text", None])
def test_passed_columns_stand_below_the_text(text: str | None) -> None:
    extra = {"country": "MY\x1b", "pages": [1, None], "day": None, "long": "x" * 5000}
    outcome = Outcome("d", Status.VALID, record={"total": 1}, extra=extra)
    shown = printed(records_beside_text([(Document("d", text), outcome)]), 80)
    lines = [line.strip("│ ") for line in shown.splitlines()]
    place = lines.index(text or "no text")
    assert lines[place + 1 : place + 4] == ["country: MY\u241b", "pages: [1, null]", "day: null"]
    assert shown.count("x") < 300


def test_known_answers_that_no_score_counts_are_said() -> None:
    use = KnownAnswersUse(
        unused_columns=("gold_vendr",), ids=1011, ids_unmatched=1009, unmatched=("z\x1b1", "z2"), ids_repeated=1
    )
    report = report_of(plan_of(1), {0: [valid("a")]}).model_copy(update={"known_answers": use})
    shown = printed(report_lines(report), 200)
    assert "no field of the record is named like gold_vendr" in shown
    assert "1,009 of 1,011 documents with known answers have no outcome here: z\u241b1, z2, ..." in shown
    assert "1 id in more than one row of the known answers" in shown
    used = report.model_copy(update={"known_answers": KnownAnswersUse(ids=1)})
    assert "not scored" not in printed(report_lines(used), 200)


def test_the_bar_is_as_long_as_it_says_and_no_status_vanishes_from_it() -> None:
    rows = [valid(str(index)) for index in range(2000)]
    shown = printed(report_lines(report_of(plan_of(2001), {0: [*rows, lost("x")]})))
    (bar,) = [line for line in shown.splitlines() if line.startswith("██")]
    assert len(bar) == BAR_CELLS
    assert "╳" in bar


def test_what_is_missing_or_does_not_add_up_is_said() -> None:
    plan = plan_of(3, 2)
    shown = printed(report_lines(report_of(plan, {0: [valid("a"), valid("b")]})))
    assert "The counts do not add up" in shown
    assert "holds 2 rows; the plan has 3" in shown
    assert plan.shards[1].shard_id in shown
    assert "≠ documents in" in shown


def test_an_empty_run_is_two_lines() -> None:
    assert len(printed(report_lines(report_of(plan_of(), {}))).split("\n")) == 3


@pytest.mark.parametrize("width", [60, 110])
def test_hostile_text_is_neither_markup_nor_control(width: int) -> None:
    outcome = Outcome(TEXT, Status.INVALID, Cause.VALIDATOR, detail=TEXT, raw=TEXT)
    shown = printed(records_beside_text([(Document(TEXT, TEXT), outcome)]), width)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]" in shown


def test_record_spans_and_bent_fields_stand_beside_the_text() -> None:
    outcome = Outcome(
        "a",
        Status.CLOSED,
        Cause.BUDGET,
        record={"vendor": "ACME LTD"},
        shaped_fields=("vendor",),
        spans=(FoundSpan("vendor", 0, 8),),
        output_tokens=12,
        budget_tokens=64,
    )
    shown = printed(records_beside_text([(Document("a", TEXT), outcome)]))
    first = next(line for line in shown.splitlines() if "ACME" in line)
    assert "{" in first
    assert "shaped: vendor" in shown
    assert "vendor: characters 0–8" in shown
    assert "12 of 64 tokens" in shown
    coloured = printed(records_beside_text([(Document("a", TEXT), outcome)]), has_colour=True)
    assert "\x1b[1;4;32mACME LTD\x1b[0m" in coloured


def test_a_document_without_text_or_generation_says_so() -> None:
    shown = printed(records_beside_text([(Document("a", None), lost("a", cause=Cause.NULL_TEXT))]))
    assert "no text" in shown
    assert "nothing generated" in shown


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    shown = printed(records_beside_text([(Document("a", "x" * 5000), lost("a"))]))
    assert "3,500 more characters" in shown


def test_each_phase_is_told_for_one_document_and_what_was_not_measured_is_said() -> None:
    use = {"wall_s": 10.0, "request_wall_s": 8.0, "busy_s": 6.0, "encode_s": 0.2, "put_s": 0.4, "documents": 1}
    submission = Submission(submission_id="s", entries={"engine_use": use})
    rows = {0: [valid("a"), valid("b")]}
    shown = printed(report_lines(report_of(plan_of(2), rows, submissions=[submission])), 400)
    assert "queue 500 ms; prompt 1,000 ms" in shown
    assert "mask not measured" in shown
    assert "put 400 ms (of 1 of 2 documents)" in shown
    assert "busy 60.0% of the time from first request to last commit, 75.0% of that to the last request" in shown
    assert "times overlap" in shown
    silent = Submission(submission_id="t", entries={"engine_use": {"wall_s": -1}})
    shown = printed(report_lines(report_of(plan_of(2), rows, submissions=[submission, silent])), 400)
    assert "1 of 2 submissions do not say" in shown
    assert "busy share not measured" in printed(report_lines(report_of(plan_of(2), rows)), 400)
