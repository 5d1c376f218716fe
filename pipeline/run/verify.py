"""Owns the check of a finished run: every planned document has exactly one outcome, and all of it is stored well.

It reads the parts whole and the input again; it changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from pipeline.core.document import Document, Shard
from pipeline.core.errors import SpecError, StorageNotFoundError, VerificationError
from pipeline.core.sections import S3Spec
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.report.model import Report
from pipeline.report.write import build_report
from pipeline.run.grounding import misplaced, with_grounded
from pipeline.run.intake import ReadPiece, Row, is_synthetic_id, rows_of
from pipeline.run.plan import StoredPlan, standing_plan
from pipeline.run.shared_ids import Hashes, SharedIds, id_hashes, shared_ids
from pipeline.storage.documents import DocumentReader
from pipeline.storage.layout import RunLayout, shard_id_of
from pipeline.storage.parts import read_footer, read_part
from pipeline.storage.store import Store, open_store
from pipeline.storage.threads import in_order

__all__ = ["Verification", "stored_spec", "verify"]

THREADS = 4
NAMED_AT_MOST = 5


@dataclass(frozen=True, slots=True)
class Verification:
    """What was looked at, and what does not hold.  Nothing in `problems` means that all of it holds."""

    shards_planned: int
    documents_planned: int
    documents_found: int
    wrong: tuple[str, ...]
    """What is there and does not hold, one line each; names objects, shards and document ids."""
    missing: tuple[str, ...]
    """Shards that have no part, one line each."""
    shared_ids: SharedIds
    """Ids of the stored outcomes that stand in more than one shard: each of those documents has its own outcome."""

    @property
    def problems(self) -> tuple[str, ...]:
        return self.wrong + self.missing

    @property
    def is_sound(self) -> bool:
        return not self.problems


def stored_spec(store: Store, layout: RunLayout) -> JobSpec:
    """The effective spec of the run under a prefix.

    Raises:
        StorageNotFoundError: there is no run.
        SpecError: this version does not understand its spec.
    """
    if store.head(layout.spec) is None:
        raise StorageNotFoundError(f"there is no run under {layout.prefix}: {layout.spec} does not exist")
    try:
        raw = json.loads(store.get(layout.spec))
    except ValueError as error:
        raise SpecError(f"{layout.spec} is not JSON: {error}") from error
    return parse_spec(raw, source=layout.spec)


def verify(prefix: str, s3: S3Spec) -> Verification:
    """Checks the run under an output prefix; what `s3` says holds for its input too, before the stored spec.

    Raises:
        StorageNotFoundError: there is no run.
        StorageError: the store gave out.
        VerificationError: the plan itself cannot be read, or an input holds more rows than were planned.
    """
    store, layout = open_store(prefix, s3), RunLayout(prefix)
    spec = stored_spec(store, layout)
    stored = standing_plan(store, layout)
    documents = open_store(spec.input.uris[0], spec.s3.with_given(s3))
    reader = DocumentReader(documents, spec.input, spec.limits)
    return verify_parts(
        store,
        layout,
        stored,
        reader.read,
        document_bytes=spec.limits.document_bytes,
        allow_duplicates=spec.rerun is not None,
    )


def verify_parts(
    store: Store,
    layout: RunLayout,
    stored: StoredPlan,
    read: ReadPiece,
    *,
    document_bytes: int,
    allow_duplicates: bool = False,
) -> Verification:
    """As `verify`, for a plan and a way to read the input; `allow_duplicates` as in `rows_of`."""
    plan = stored.plan
    shards = {shard.shard_id: shard for shard in plan.shards}
    listed = {shard_id_of(item.uri) or item.uri for item in store.list_prefix(layout.parts_prefix)}
    foreign = sorted(listed - shards.keys())
    wrong = [f"{name} under {layout.parts_prefix} belongs to no planned shard" for name in foreign]
    missing = [
        f"shard {shard_id} has no part: {shard.rows} documents have no outcome"
        for shard_id, shard in shards.items()
        if shard_id not in listed
    ]
    stored_shards = {shard_id: shard for shard_id, shard in shards.items() if shard_id in listed}

    def check(item: tuple[str, Shard]) -> _Checked:
        shard_id, shard = item
        rows = rows_of(shard, read, document_bytes=document_bytes, allow_duplicates=allow_duplicates)
        return _check_part(store, layout.part(shard_id), shard_id, plan.fingerprint, rows)

    found = 0
    hashes: dict[str, Hashes] = {}
    for shard_id, checked in zip(stored_shards, in_order(check, stored_shards.items(), THREADS, ahead=2), strict=True):
        found += checked.documents
        wrong += checked.problems
        hashes[shard_id] = checked.id_hashes
    shared = shared_ids(hashes, lambda shard_id: read_part(store, layout.part(shard_id))["_document_id"].to_pylist())
    wrong += [f"an input object was left out of the plan: {item.unreadable}" for item in plan.left_out]
    wrong += _against_report(store, layout, stored)
    return Verification(len(shards), plan.rows, found, tuple(wrong), tuple(missing), shared)


def _check_part(store: Store, uri: str, shard_id: str, fingerprint: str, rows: Iterable[Row]) -> _Checked:
    """One part: readable with every checksum, of this run and shard, one outcome a document, its spans in the text."""
    try:
        footer, table = read_footer(store, uri), read_part(store, uri)
    except (VerificationError, StorageNotFoundError) as error:
        return _Checked(0, [error.message], id_hashes(()))
    found = table["_document_id"].to_pylist()
    expected: list[str | None] = []
    problems: list[str] = []
    for row, outcome in with_grounded(table, rows):
        expected.append(row.content.document_id)
        if outcome is not None and isinstance(row.content, Document):
            named = f"{uri}, document {expected[-1]!r}: "
            problems += [named + problem for problem in misplaced(outcome, row.content.text or "")]
    problems = compare_ids(uri, expected, found) + problems
    if footer.fingerprint != fingerprint or footer.shard_id != shard_id:
        problems.append(f"{uri} says that it is shard {footer.shard_id} of run {footer.fingerprint}")
    return _Checked(footer.rows, problems, id_hashes(found))


@dataclass(frozen=True, slots=True)
class _Checked:
    documents: int
    problems: list[str]
    id_hashes: Hashes


def compare_ids(uri: str, expected: list[str | None], found: list[str | None]) -> list[str]:
    """How a part's ids differ from those of its input rows, as multisets.

    A row that could not be read when it was its turn stands under an id of its place; one that cannot be read now
    cannot be compared, and that is said.
    """
    unread = sum(is_synthetic_id(document_id) for document_id in expected)
    if len(found) == len(expected):
        pairs = [(now, then) for now, then in zip(expected, found, strict=True) if not is_synthetic_id(then)]
        hidden = sum(is_synthetic_id(now) for now, _ in pairs)
        if hidden:
            return [f"{uri}: {hidden} of its documents cannot be read any more, so they cannot be compared"]
        expected, found = [now for now, _ in pairs], [then for _, then in pairs]
    elif unread:
        return [f"{uri} holds {len(found)} outcomes for {len(expected)} documents, {unread} of which cannot be read"]
    missing, surplus = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    problems = []
    if missing:
        problems.append(f"{uri} has no outcome for {_named(missing)}")
    if surplus:
        problems.append(f"{uri} has an outcome too many for {_named(surplus)}")
    return problems


def _named(ids: Counter[str | None]) -> str:
    names = [repr(document_id) for document_id in ids.elements()]
    more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
    return f"document {', '.join(names[:NAMED_AT_MOST])}{more}"


def _against_report(store: Store, layout: RunLayout, stored: StoredPlan) -> list[str]:
    """Whether the stored report says what the footers say."""
    if store.head(layout.report_json) is None:
        return [f"there is no {layout.report_json}"]
    try:
        said = Report.model_validate_json(store.get(layout.report_json))
    except ValidationError:
        return [f"{layout.report_json} is no report of this version"]
    found = build_report(store, layout, stored.plan)
    if (said.balance, said.counts, said.tokens) != (found.balance, found.counts, found.tokens):
        return [f"{layout.report_json} does not say what the parts say; `recordmill report` writes it anew"]
    return []
