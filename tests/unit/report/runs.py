"""Runs made of real parts in a folder: what the report is read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, Field

from pipeline.core.document import InputObject, Piece, Plan, Shard
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.core.sections import S3Spec
from pipeline.core.spec import parse_spec
from pipeline.report.books import FoundPart, books_of
from pipeline.report.counts import make_report
from pipeline.report.model import Report
from pipeline.storage.arrow import outcomes_table, record_schema
from pipeline.storage.footer import Timings
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import PartFooter, encode_part, part_footer
from pipeline.storage.store import Store, open_store

START = datetime(2026, 11, 28, 21, 4, tzinfo=UTC)
FINGERPRINT = "7be02dd9c4c1a0f3"


class Bill(BaseModel):
    vendor: str
    total: Annotated[Decimal, Field(max_digits=12, decimal_places=2)]


SCHEMA = record_schema(Bill)


def plan_of(*rows: int, unreadable: str | None = None) -> Plan:
    """A plan with one shard an entry, each over one row group of one object."""
    objects = [InputObject("s3://docs/all.parquet", "e1", 9000, rows, tuple(100 for _ in rows))]
    if unreadable is not None:
        objects.append(InputObject("s3://docs/bad.parquet", "e2", 12, (), (), unreadable))
    shards = tuple(Shard((Piece("s3://docs/all.parquet", "e1", index, 0, count),)) for index, count in enumerate(rows))
    return Plan(FINGERPRINT, tuple(objects), shards)


def valid(document_id: str, vendor: str = "ACME", total: str = "9.00") -> Outcome:
    return Outcome(
        document_id,
        Status.VALID,
        record={"vendor": vendor, "total": Decimal(total)},
        prompt_tokens=100,
        output_tokens=20,
        budget_tokens=64,
        slack_tokens=44,
        spans=(FoundSpan("vendor", 0, 4), FoundSpan("total", 9, 13, is_ambiguous=True)),
    )


def closed(document_id: str) -> Outcome:
    return Outcome(
        document_id,
        Status.CLOSED,
        Cause.BUDGET,
        record={"vendor": "ACME", "total": Decimal("1.00")},
        prompt_tokens=100,
        output_tokens=64,
        budget_tokens=64,
        slack_tokens=0,
        shaped_fields=("vendor",),
    )


def lost(
    document_id: str | None,
    status: Status = Status.FAILED,
    cause: Cause = Cause.EMPTY,
    detail: str | None = None,
    raw: str | None = None,
) -> Outcome:
    return Outcome(document_id, status, cause, detail=detail, raw=raw)


def footer_of(
    plan: Plan,
    position: int,
    outcomes: Sequence[Outcome],
    *,
    fingerprint: str = FINGERPRINT,
    start_s: float | None = None,
) -> PartFooter:
    begins = START + timedelta(seconds=60 * position if start_s is None else start_s)
    return part_footer(
        outcomes,
        shard_id=plan.shards[position].shard_id,
        fingerprint=fingerprint,
        attempt=f"attempt-{position}",
        engine="scripted 1",
        started_at=begins,
        finished_at=begins + timedelta(seconds=60),
        timings_s=Timings(queue=1, prompt=2, prefill=3, decode=90, parse=3, encode=1, wall=60),
        cached_tokens=50 * len(outcomes),
    )


@dataclass
class Run:
    """A run's prefix in a folder."""

    layout: RunLayout
    store: Store = field(default_factory=lambda: open_store("/", S3Spec()))

    def put_part(self, plan: Plan, position: int, outcomes: Sequence[Outcome], *, name: str | None = None) -> str:
        footer = footer_of(plan, position, outcomes)
        table = outcomes_table(outcomes, SCHEMA, attempt=footer.attempt, engine=footer.engine)
        uri = self.layout.part(name or footer.shard_id)
        assert self.store.put_if_absent(uri, encode_part(table, footer), attempt=footer.attempt)
        return uri


def report_of(plan: Plan, outcomes: Mapping[int, Sequence[Outcome]], **more: Any) -> Report:
    """The report of outcomes by position in the plan, without storage."""
    parts = [
        FoundPart(plan.shards[position].shard_id, footer_of(plan, position, rows))
        for position, rows in outcomes.items()
    ]
    return make_report(books_of(plan, parts), output_uri="s3://runs/bills/", generated_at=START, **more)


def effective_spec() -> dict[str, Any]:
    raw = {
        "name": "bills",
        "input": {"uri": "s3://docs/"},
        "record": "schemas.bill:Bill",
        "model": {"name": "some/model", "revision": "abc"},
        "decoding": {"max_tokens": 64},
        "output": {"uri": "s3://runs/bills/"},
    }
    return parse_spec(raw, source="bills.yaml").effective()
