"""What a report comes to, in words, on the page and in the terminal: its verdict, and what no score counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pipeline.report import text
from pipeline.report.documents import KnownAnswersUse
from pipeline.report.model import Report

__all__ = ["Verdict", "not_scored", "verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first thing a reader sees."""

    state: Literal["complete", "incomplete", "contradictory", "empty"]
    headline: str
    detail: str


def verdict(report: Report) -> Verdict:
    """What the counts come to, in words."""
    balance = report.balance
    documents = text.plural(balance.documents_planned, "document")
    if balance.problems or balance.difference or balance.documents_unplanned:
        return Verdict(
            "contradictory",
            "The counts do not add up",
            "What is stored contradicts the plan. The command recordmill verify names the documents.",
        )
    if balance.documents_missing:
        missing = text.count(balance.documents_missing)
        shards = text.plural(len(report.missing), "shard")
        return Verdict(
            "incomplete",
            f"{missing} of {documents} {'has' if balance.documents_missing == 1 else 'have'} no outcome yet",
            f"They stand in {shards} without a part. The same command resumes the run.",
        )
    if report.unreadable:
        objects = text.plural(len(report.unreadable), "input object")
        return Verdict(
            "incomplete",
            f"{objects} could not be read",
            f"All {documents} of the others have exactly one outcome.",
        )
    if not balance.documents_planned:
        return Verdict("empty", "There was nothing to do", "The plan holds no documents.")
    records = text.percent(balance.outcomes.records / balance.documents_planned)
    if balance.documents_planned == 1:
        return Verdict("complete", "The one document has its outcome", f"{records} became a record.")
    return Verdict("complete", f"All {documents} have exactly one outcome", f"{records} became a record.")


def not_scored(use: KnownAnswersUse | None) -> Iterator[str]:
    """What of the known answers no score counts, a line each."""
    if use is None:
        return
    if use.unused_columns:
        yield f"no field of the record is named like {', '.join(use.unused_columns)}"
    if use.ids_unmatched:
        more = ", ..." if use.ids_unmatched > len(use.unmatched) else ""
        documents = text.plural(use.ids, "document")
        yield (
            f"{text.count(use.ids_unmatched)} of {documents} with known answers have no outcome here: "
            f"{', '.join(use.unmatched)}{more}"
        )
    if use.ids_repeated:
        yield f"{text.plural(use.ids_repeated, 'id')} in more than one row of the known answers; the last row counts"
