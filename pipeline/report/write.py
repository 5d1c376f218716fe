"""The report's reading and writing: footers, spec and submissions in, report.json and report.html out.

Counts come from footers only, so they cannot disagree with the data.  Rows are read for a bounded sample of problem
documents, and for scores where known answers are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pydantic import JsonValue, TypeAdapter, ValidationError

from pipeline.core.document import Plan
from pipeline.core.errors import InputError, VerificationError
from pipeline.core.span import DateOrder
from pipeline.report.books import Books, FoundPart, books_of
from pipeline.report.compare import Kind
from pipeline.report.counts import make_report
from pipeline.report.documents import FieldScore, KnownAnswersUse, ProblemDocument, ShownDocument
from pipeline.report.html import render_html
from pipeline.report.model import Report, Submission
from pipeline.report.scores import KnownAnswers, merge_scores
from pipeline.storage.layout import RunLayout, shard_id_of
from pipeline.storage.parts import read_footer, read_part
from pipeline.storage.store import Store
from pipeline.storage.threads import in_order

__all__ = ["Scored", "build_report", "read_books", "read_problems", "score_run", "write_report"]

RAW_CHARS = 2000
"""Characters of a generation that a report shows."""
DETAIL_CHARS = 1000
SUBMISSIONS = 50
"""Submissions that a report lists, the last ones."""
THREADS = 32
PARTS_AT_ONCE = 4
"""Whole parts in memory at a time, while scores are counted."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A run's scores, and what of the known answers they do not count."""

    scores: tuple[FieldScore, ...]
    use: KnownAnswersUse


_JSON_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def build_report(
    store: Store,
    layout: RunLayout,
    plan: Plan,
    *,
    scored: Scored | None = None,
    shown: tuple[ShownDocument, ...] = (),
    generated_at: datetime | None = None,
) -> Report:
    """The report of what stands under a run's prefix now.

    Args:
        store: where the run writes.
        layout: its names.
        plan: its plan.
        scored: from `score_run`, where there are known answers.
        shown: documents to show beside their records; reading them is not the report's business.
        generated_at: now, unless given.

    Raises:
        StorageError: the store gave out.  A part that is damaged is no error: the report names it.
    """
    spec = None if store.head(layout.spec) is None else _json_object(store.get(layout.spec))
    report = make_report(
        read_books(store, layout, plan),
        output_uri=layout.prefix,
        generated_at=generated_at or datetime.now(UTC),
        spec=spec,
        submissions=_submissions(store, layout),
        scores=() if scored is None else scored.scores,
    )
    read = {"problems": read_problems(store, layout, report.problems), "shown": shown}
    return report.model_copy(update={**read, "known_answers": None if scored is None else scored.use})


def write_report(store: Store, layout: RunLayout, report: Report) -> None:
    """Puts report.json and report.html, over those that stand there.

    Raises:
        StorageError: see `Store`.
    """
    store.put(layout.report_json, report.model_dump_json(indent=2).encode())
    store.put(layout.report_html, render_html(report).encode())


def read_books(store: Store, layout: RunLayout, plan: Plan) -> Books:
    """A run's plan against what stands under its prefix now, from the parts' footers alone.

    Raises:
        StorageError: as `build_report`.
    """
    named = [
        (shard_id, item.uri)
        for item in store.list_prefix(layout.parts_prefix)
        if (shard_id := shard_id_of(item.uri)) is not None
    ]

    def read(part: tuple[str, str]) -> FoundPart:
        shard_id, uri = part
        try:
            return FoundPart(shard_id, read_footer(store, uri))
        except VerificationError as error:
            return FoundPart(shard_id, None, error.message)

    return books_of(plan, in_order(read, named, THREADS))


def _json_object(data: bytes) -> dict[str, JsonValue]:
    try:
        return _JSON_OBJECT.validate_json(data)
    except ValidationError:
        return {"unreadable": f"{len(data):,} bytes that are no JSON object"}


def _submissions(store: Store, layout: RunLayout) -> list[Submission]:
    uris = [item.uri for item in store.list_prefix(layout.submissions_prefix) if item.uri.endswith(".json")]
    return [
        Submission(submission_id=uri.rsplit("/", 1)[-1].removesuffix(".json"), entries=_json_object(store.get(uri)))
        for uri in uris[-SUBMISSIONS:]
    ]


def read_problems(store: Store, layout: RunLayout, problems: Sequence[ProblemDocument]) -> tuple[ProblemDocument, ...]:
    """The same documents with detail and raw text from their parts, cut at a bound; one part in memory at a time.

    Raises:
        StorageError: see `Store`.
    """
    found: dict[int, ProblemDocument] = {}
    for shard_id in dict.fromkeys(problem.shard_id for problem in problems):
        wanted = {index: problem for index, problem in enumerate(problems) if problem.shard_id == shard_id}
        try:
            rows = _problem_rows(read_part(store, layout.part(shard_id)))
        except VerificationError as error:
            found |= {index: problem.model_copy(update={"detail": error.message}) for index, problem in wanted.items()}
            continue
        for index, problem in wanted.items():
            found[index] = _filled(problem, rows)
    return tuple(found[index] for index in range(len(problems)))


def _problem_rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = ["_document_id", "_status", "_cause", "_detail", "_raw"]
    held = table.select(columns)
    return [row for batch in held.to_batches() for row in batch.to_pylist() if row["_cause"] is not None]


def _filled(problem: ProblemDocument, rows: list[dict[str, Any]]) -> ProblemDocument:
    """Takes the document's row out of `rows`, so that several without an id are not one."""
    for position, row in enumerate(rows):
        document_id = row["_document_id"]
        # A footer cuts long ids, so its id may be the beginning of the row's.
        is_same = document_id == problem.document_id or (
            None not in (document_id, problem.document_id) and document_id.startswith(problem.document_id)
        )
        if is_same and row["_status"] == problem.status and row["_cause"] == problem.cause:
            del rows[position]
            detail, raw = row["_detail"], row["_raw"]
            return problem.model_copy(
                update={
                    "detail": None if detail is None else detail[:DETAIL_CHARS],
                    "raw": None if raw is None else raw[:RAW_CHARS],
                    "raw_chars": None if raw is None else len(raw),
                }
            )
    return problem.model_copy(update={"detail": "the part has no such row"})


def score_run(
    store: Store,
    layout: RunLayout,
    gold: pa.Table,
    mapping: Mapping[str, str] | None = None,
    *,
    gold_id: str = "document_id",
    kinds: Mapping[str, Kind] | None = None,
    date_order: DateOrder = "any",
) -> Scored:
    """Scores every part of a run against known answers, a few parts in memory at a time.

    Args:
        store: where the run writes.
        layout: its names.
        gold, mapping, gold_id, kinds, date_order: see `KnownAnswers`.

    Raises:
        InputError: no part stands yet, or the known answers cannot be used.
        VerificationError: a part is damaged.
        StorageError: see `Store`.
    """
    uris = [item.uri for item in store.list_prefix(layout.parts_prefix) if shard_id_of(item.uri) is not None]
    if not uris:
        raise InputError(f"{layout.parts_prefix} holds no part to score yet")
    schema = read_part(store, uris[0]).schema
    answers = KnownAnswers(gold, schema, mapping, gold_id=gold_id, kinds=kinds, date_order=date_order)

    def scored(uri: str) -> tuple[tuple[FieldScore, ...], frozenset[str]]:
        table = read_part(store, uri)
        return answers.score(table), answers.known_of(table)

    matched: set[str] = set()
    scores: tuple[FieldScore, ...] = ()
    for part, known in in_order(scored, uris, PARTS_AT_ONCE, ahead=1):
        scores = merge_scores((scores, part))
        matched |= known
    return Scored(scores, answers.use(matched))
