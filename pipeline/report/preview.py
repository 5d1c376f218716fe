"""Documents beside their records as one HTML page that asks for nothing from anywhere, like the report's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.core.document import Document
from pipeline.core.outcome import Outcome, Status
from pipeline.report import text
from pipeline.report.html import page_environment
from pipeline.report.marked import Segment, segments

__all__ = ["render_preview"]

TEXT_CHARS = 20_000
"""Characters of a document, a record or a generation that the page shows."""


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    document_id: str | None
    outcome: Outcome
    text: tuple[Segment, ...]
    hidden_chars: int
    columns: list[tuple[str, str]]
    written: str
    notes: tuple[str, ...]


def render_preview(pairs: Sequence[tuple[Document, Outcome]], *, name: str, facts: Sequence[tuple[str, str]]) -> str:
    """The page.

    Args:
        pairs: each document with its outcome, in the order shown.
        name: the job's.
        facts: label and value of what it was made with.
    """
    counts = Counter(outcome.status for _, outcome in pairs)
    return (
        page_environment()
        .get_template("preview.html.j2")
        .render(
            name=name,
            facts=list(facts),
            entries=[_entry(number, *pair) for number, pair in enumerate(pairs, 1)],
            counts=[(status, counts[status]) for status in Status],
            status_meanings=text.STATUS_MEANINGS,
            cause_meanings=text.CAUSE_MEANINGS,
        )
    )


def _entry(number: int, document: Document, outcome: Outcome) -> _Entry:
    body = document.text or ""
    shown = body[:TEXT_CHARS]
    written = text.record_text(outcome.record) if outcome.record is not None else outcome.raw or ""
    return _Entry(
        number,
        outcome.document_id or document.document_id,
        outcome,
        tuple(segments(shown, outcome.spans)),
        len(body) - len(shown),
        text.passed_columns(outcome.extra),
        written[:TEXT_CHARS],
        tuple(_notes(outcome)),
    )


def _notes(outcome: Outcome) -> Iterator[str]:
    if outcome.shaped_fields:
        yield "shaped: " + ", ".join(outcome.shaped_fields)
    if outcome.output_tokens is not None:
        budget = "" if outcome.budget_tokens is None else f" of {text.count(outcome.budget_tokens)}"
        yield f"{text.count(outcome.output_tokens)}{budget} tokens"
    if outcome.prompt_tokens is not None:
        yield f"prompt of {text.plural(outcome.prompt_tokens, 'token')}"
