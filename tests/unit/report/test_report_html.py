"""The page: what it says, and what hostile documents cannot make it do."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

from pipeline.core.outcome import Cause, Status
from pipeline.report.documents import FieldScore, KnownAnswersUse, Mismatch, ShownDocument, ShownSpan, UnreadableInput
from pipeline.report.html import SHARDS_LISTED, render_html
from pipeline.report.model import FieldCount, Report, Submission
from pipeline.report.scores import score_records
from pipeline.report.text import CAUSE_MEANINGS
from pipeline.report.verdict import verdict
from pipeline.report.write import build_report
from tests.unit.report.runs import Run, closed, effective_spec, lost, plan_of, report_of, valid

HOSTILE = (
    "</pre></style></title><script>alert(1)</script><img src=http://evil.example/ onerror=alert(2)>"
    "\" onload='x' {{ 7*7 }}"
)


class Page(HTMLParser):
    """Tags with their attributes, and the text that a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_hidden = False
        self.feed(html)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_hidden = tag == "style"
        self.text += " "

    def handle_endtag(self, tag: str) -> None:
        self._is_hidden = False

    def handle_data(self, data: str) -> None:
        if not self._is_hidden:
            self.text += data


def page_of(report: Report) -> Page:
    return Page(render_html(report))


def hostile_report() -> Report:
    plan = plan_of(1, 1, unreadable=HOSTILE)
    report = report_of(
        plan, {0: [lost(HOSTILE, Status.TRUNCATED, Cause.RUNAWAY)]}, spec={"name": HOSTILE, HOSTILE: [HOSTILE]}
    )
    problem = report.problems[0].model_copy(update={"detail": HOSTILE, "raw": HOSTILE, "raw_chars": 9000})
    score = FieldScore(
        field=HOSTILE,
        gold_column=HOSTILE,
        kind="text",
        answered=1,
        with_record=1,
        with_value=1,
        exact=0,
        normalised=0,
        mismatches=(Mismatch(document_id=HOSTILE, value=HOSTILE, gold=HOSTILE),),
    )
    missing = report.missing[0].model_copy(update={"places": (HOSTILE,), "reason": HOSTILE})
    update: dict[str, Any] = {
        "problems": (problem,),
        "scores": (score,),
        "known_answers": KnownAnswersUse(unused_columns=(HOSTILE,), ids_unmatched=1, unmatched=(HOSTILE,)),
        "missing": (missing,),
        "shaped_fields": (FieldCount(field=HOSTILE, documents=1),),
        "unreadable": (UnreadableInput(uri=HOSTILE, size_bytes=1, reason=HOSTILE),),
        "submissions": (Submission(submission_id=HOSTILE, entries={HOSTILE: HOSTILE}),),
        "output_uri": HOSTILE,
        "balance": report.balance.model_copy(update={"problems": (HOSTILE,)}),
    }
    return report.model_copy(update=update)


def test_hostile_text_is_shown_and_never_taken_for_markup() -> None:
    page = page_of(hostile_report())
    assert "<script>alert(1)</script><img src=http://evil.example/" in page.text
    assert "{{ 7*7 }}" in page.text
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


@pytest.mark.parametrize("report", [report_of(plan_of(), {}), hostile_report()], ids=["empty", "hostile"])
def test_the_page_asks_for_nothing_from_anywhere(report: Report) -> None:
    html = render_html(report)
    page = Page(html)
    targets = [
        value or ""
        for _, attributes in page.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster", "background", "xlink:href")
    ]
    assert targets
    assert all(target.startswith("#") for target in targets)
    style = html.split("<style>", 1)[1].split("</style>", 1)[0]
    assert re.findall(r"url\(([^)]*)\)", style) == ["#hatch"]
    assert "@import" not in style
    policy = [attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def test_shares_by_cause_are_of_all_documents_as_those_by_status_are_while_a_run_goes_on() -> None:
    page = page_of(report_of(plan_of(2, 2), {0: [valid("a"), lost("b")]}))
    assert "25.0% of all documents are valid as they are, 50.0% have no outcome." in page.text
    assert "the text is empty or white space 1 25.0%" in page.text


def test_control_and_bidirectional_characters_are_spelled_out() -> None:
    report = report_of(plan_of(1), {0: [lost("a\x1b[31m\u202eb\x00")]})
    html = render_html(report)
    assert "a\\x1b[31m\\u202eb\\x00" in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", html)


def test_values_are_marked_where_they_stand_in_hostile_documents() -> None:
    text = "<b>ACME</b>\x1b owes 9.00"
    spans = (
        ShownSpan(field="vendor", start=3, end=7),
        ShownSpan(field="total", start=18, end=22, is_ambiguous=True),
    )
    assert [text[span.start : span.end] for span in spans] == ["ACME", "9.00"]
    document = ShownDocument(
        document_id="a",
        shard_id="s",
        status=Status.VALID,
        cause=None,
        text=text,
        text_chars=1000 + len(text),
        record={"vendor": "ACME", "total": "9.00"},
        spans=spans,
    )
    html = render_html(report_of(plan_of(1), {0: [valid("a")]}).model_copy(update={"shown": (document,)}))
    assert (
        '&lt;b&gt;<mark class="grounded" title="vendor">ACME</mark>&lt;/b&gt;\\x1b owes '
        '<mark class="ambiguous" title="total, at several places">9.00</mark>' in html
    )
    assert "1,000 more characters" in html


def test_the_page_says_what_the_footers_say(run: Run) -> None:
    plan = plan_of(1200, 3)
    run.put_part(plan, 0, [valid(f"a{index}") for index in range(1190)] + [closed(f"b{index}") for index in range(10)])
    run.put_part(
        plan, 1, [lost("c", Status.INVALID, Cause.VALIDATOR, "total: must be positive", "{}"), lost("d"), lost("e")]
    )
    text = page_of(build_report(run.store, run.layout, plan)).text
    assert "All 1,203 documents have exactly one outcome" in text
    assert "99.8% became a record." in text
    assert "1,203 documents in = 1,190 valid 98.9% 10 closed 0.8% 0 truncated 0% " in text
    assert " 1 invalid <0.1% 2 failed 0.2% 0 missing 0%" in text
    assert f"invalid validator {CAUSE_MEANINGS[Cause.VALIDATOR]} 1 <0.1%" in text
    assert f"failed empty {CAUSE_MEANINGS[Cause.EMPTY]} 2 0.2%" in text
    assert "2 of 2 planned shards have a part." in text
    assert "total: must be positive" in text


def test_counts_that_do_not_add_up_are_the_first_thing_said() -> None:
    text = page_of(report_of(plan_of(3), {0: [valid("a"), valid("b")]})).text
    assert "The counts do not add up" in text
    assert "3 documents in ≠ 2 valid" in text
    assert "holds 2 rows; the plan has 3" in text
    assert "3 documents were planned; outcomes and missing ones come to 2" in text
    assert "exactly one outcome" not in text


def test_missing_documents_are_the_first_thing_said() -> None:
    plan = plan_of(1, 4)
    page = page_of(report_of(plan, {0: [valid("a")]}))
    assert "4 of 5 documents have no outcome yet" in page.text
    assert f"{plan.shards[1].shard_id} 4 s3://docs/all.parquet row group 1 rows 0..3" in page.text
    assert ("rect", "missing") in {(tag, attributes.get("class")) for tag, attributes in page.tags}


def test_an_unreadable_input_is_never_hidden_behind_complete_counts() -> None:
    report = report_of(plan_of(1, unreadable="s3://docs/bad.parquet: 12 bytes"), {0: [valid("a")]})
    text = page_of(report).text
    assert verdict(report).state == "incomplete"
    assert text.startswith("bills – 1 input object could not be read")
    assert "s3://docs/bad.parquet – 12 bytes" in text


def test_an_empty_run_says_so_in_every_section() -> None:
    text = page_of(report_of(plan_of(), {})).text
    for said in (
        "There was nothing to do",
        "No document has an outcome yet.",
        "No shard has a part yet.",
        "No document has an outcome yet, so there are no tokens to count.",
        "No part says when it was worked on.",
        "No spec is stored",
        "No submission is recorded.",
    ):
        assert said in text


def test_closed_records_are_not_said_to_need_no_look_and_what_cannot_be_read_not_to_be_empty() -> None:
    closed_alone = page_of(report_of(plan_of(1), {0: [closed("a")]})).text
    assert "Every document that has an outcome has a record." in closed_alone
    assert "Fields bent in closed documents" in closed_alone
    report = report_of(plan_of(1), {0: [lost("a", Status.TRUNCATED, Cause.RUNAWAY)]})
    damaged = report.problems[0].model_copy(update={"detail": "the part is damaged"})
    assert "Nothing was generated" not in page_of(report.model_copy(update={"problems": (damaged,)})).text
    failed_alone = page_of(report_of(plan_of(1), {0: [lost("a")]})).text
    assert "Nothing was generated" in failed_alone
    assert "No document reached an engine" in failed_alone


def test_a_wholly_valid_run_shows_no_empty_charts() -> None:
    text = page_of(report_of(plan_of(1), {0: [valid("a")]})).text
    assert "Every document that has an outcome is valid" in text
    assert "Every document of every shard is valid." in text


def test_spec_and_versions_are_on_the_page() -> None:
    submission = Submission(submission_id="s1", entries={"exit_code": 0, "versions": {"ray": "2.60.0"}})
    text = page_of(report_of(plan_of(), {}, spec=effective_spec(), submissions=[submission])).text
    assert "record: schemas.bill:Bill" in text
    assert "some/model @ abc" in text
    assert "versions.ray 2.60.0" in text


def test_a_run_of_many_shards_keeps_the_page_small() -> None:
    plan = plan_of(*[1] * 3000)
    report = report_of(plan, {position: [closed(str(position))] for position in range(3000)})
    html = render_html(report)
    assert len(report.shards) == 3000
    assert len(html) < 700_000
    assert f"First {SHARDS_LISTED} shards; report.json has all 3,000" in html


def test_thousands_of_unreadable_objects_and_damaged_parts_are_counted_and_the_first_ones_named() -> None:
    report = report_of(plan_of(1), {0: [valid("a")]})
    unreadable = tuple(UnreadableInput(uri=f"s3://docs/{i}", size_bytes=1, reason="x") for i in range(3000))
    balance = report.balance.model_copy(update={"problems": tuple(f"part {i} is damaged" for i in range(2051))})
    report = report.model_copy(update={"unreadable": unreadable, "balance": balance})
    page = page_of(report)
    assert len(render_html(report)) < 200_000
    assert "part 49 is damaged" in page.text
    assert "part 50 is damaged" not in page.text
    assert "2,001 more are named in report.json." in page.text
    assert "2,950 more are named in report.json." in page.text


def test_scores_are_shown_with_where_they_differ() -> None:
    records = pa.table(
        {
            "vendor": ["ACME", "x"],
            "_document_id": ["a", "b"],
            "_status": ["valid"] * 2,
            "_cause": pa.nulls(2, pa.string()),
        }
    )
    scores = score_records(records, pa.table({"document_id": ["a", "b"], "vendor": ["Acme", "Beta"]}))
    use = KnownAnswersUse(unused_columns=("gold_vendr",), ids=2)
    text = page_of(report_of(plan_of(), {}, scores=scores).model_copy(update={"known_answers": use})).text
    assert "Not scored: no field of the record is named like gold_vendr" in text
    assert "0% 50.0%" in text
    assert "b vendor x Beta" in text


def test_the_page_says_what_each_phase_of_a_document_takes_and_what_was_not_measured() -> None:
    rows = {0: [valid("a"), valid("b")]}
    page = page_of(report_of(plan_of(2), rows)).text
    assert "Engines busy not measured" in page
    assert "mask not measured –" in page
    assert "decode 45,000 ms" in page
    use = {"wall_s": 10.0, "request_wall_s": 8.0, "busy_s": 6.0, "encode_s": 0.2, "put_s": 0.4, "documents": 2}
    submission = Submission(submission_id="s", entries={"engine_use": use})
    page = page_of(report_of(plan_of(2), rows, submissions=[submission])).text
    assert "Engines busy 60.0%" in page
    assert "In the steady state 75.0%" in page
    assert "put 200 ms 400 ms" in page
    assert "times overlap" in page
