"""The pages of `preview` and `trace`: hostile text stays text, they fit a phone, and the switch needs no script."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.core.document import Document
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.report.marked import segments
from pipeline.report.preview import render_preview
from pipeline.report.trace import Candidate, Step, Trace, Unguided, render_trace
from tests.unit.report.test_report_browser import CHROMIUM, opened

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\x1b[31m\u202e " + "long" * 80
FACTS = [("Engine", HOSTILE)]
EXTRA = {"country": "MY", HOSTILE: HOSTILE, "pages": [1, None], "day": None}


def preview_page() -> str:
    text = f"Shop: ACME Ltd\nTotal 12.50\n{HOSTILE}"
    spans = (FoundSpan("company", 6, 14), FoundSpan("total", 21, 26, is_ambiguous=True))
    record = {"company": "ACME Ltd", "total": 12.5, "remark": HOSTILE}
    outcomes = [
        Outcome(
            "a",
            Status.VALID,
            record=record,
            spans=spans,
            output_tokens=12,
            budget_tokens=40,
            prompt_tokens=90,
            extra=EXTRA,
        ),
        Outcome(HOSTILE, Status.CLOSED, Cause.BUDGET, record=record, shaped_fields=(HOSTILE,), output_tokens=40),
        Outcome("c", Status.TRUNCATED, Cause.BUDGET, HOSTILE, raw=HOSTILE),
        Outcome(None, Status.FAILED, Cause.NULL_TEXT),
    ]
    documents = [Document("a", text), Document(HOSTILE, text), Document("c", HOSTILE * 100), Document(None, None)]
    return render_preview(list(zip(documents, outcomes, strict=True)), name=HOSTILE, facts=FACTS)


def step(number: int, text: str, **changes: object) -> Step:
    candidates = (
        Candidate(text, 0.2, 0.9, is_legal=True, is_chosen=True),
        Candidate(HOSTILE, 0.7, None, is_legal=False, is_chosen=False),
        Candidate("  ", None, None, is_legal=True, is_chosen=False),
    )
    values = {"legal_tokens": 40, "is_tightened": False, "is_bent": False, "slack_tokens": 9, "legal_mass": 0.22}
    return Step(
        number, text, "so far " * 40, "field", **{**values, **changes}, free=0.2, masked=0.9, candidates=candidates
    )  # type: ignore[arg-type]


def trace_page(*, is_compared: bool = True) -> str:
    steps = (
        step(1, "{", legal_tokens=1, legal_mass=0.01),
        step(2, '"', legal_tokens=1, legal_mass=0.99),
        step(3, HOSTILE),
        step(4, "x", is_tightened=True, legal_mass=0.95),
        step(5, "y", is_tightened=True, is_bent=True, legal_mass=None, slack_tokens=None),
    )
    outcome = Outcome(HOSTILE, Status.CLOSED, Cause.BUDGET, record={}, slack_tokens=3, extra=EXTRA)
    unguided = Unguided(HOSTILE, 12, True, "It would have been truncated.") if is_compared else None
    trace = Trace(HOSTILE, HOSTILE, outcome, steps, unguided)
    return render_trace(trace, name=HOSTILE, facts=FACTS)


PAGES = {"preview": preview_page, "trace": trace_page}


@pytest.mark.parametrize("name", PAGES)
def test_no_text_of_a_document_or_a_model_becomes_markup(name: str) -> None:
    page = PAGES[name]()
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page


def test_the_counts_of_the_trace_are_those_of_its_steps() -> None:
    page = trace_page()
    assert "<dd>5<small>tokens" in page
    assert "<dd>40.0%<small>2 steps with one legal token" in page
    assert "<dd>5<small>steps where the model alone would have left the schema" in page
    assert "<dd>2<small>steps where the budget forbade something" in page
    assert "1–2" in page


def test_the_switch_is_there_only_with_something_to_show() -> None:
    assert 'id="beside"' in trace_page()
    assert 'id="beside"' not in trace_page(is_compared=False)


def test_a_trace_without_steps_says_why() -> None:
    trace = Trace("d", "text", Outcome("d", Status.FAILED, Cause.REFUSED, "why"), (), None, "Nothing was asked.")
    page = render_trace(trace, name="n", facts=[])
    assert "Nothing was asked." in page
    assert "There are none." in page


def test_segments_spell_the_text_and_mark_each_span_once() -> None:
    body = "abcdefghij"
    spans = [FoundSpan("x", 2, 5), FoundSpan("y", 4, 7), FoundSpan("z", 9, 99), FoundSpan("e", 1, 1)]
    found = list(segments(body, spans))
    assert "".join(part.text for part in found) == body
    assert [(part.text, part.field) for part in found if part.field] == [("cde", "x"), ("fg", "y"), ("j", "z")]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine to open the page in")
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_loads_in_silence_and_fits(name: str, width: int, tmp_path: Path) -> None:
    page = PAGES[name]().replace('id="beside"', 'id="beside" checked')
    found, console = opened(page, width, tmp_path)
    assert console == []
    assert found["wide"] == []
    assert found["width"] == width
    assert found["scripts"] == 0
    assert found["sections"] == (4 if name == "preview" else 3)
