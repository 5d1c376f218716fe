"""Owns which documents a report shows beside their records: a few with extractive values, spread over the shards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pipeline.core.document import Document, Plan, Shard
from pipeline.core.errors import StorageError, VerificationError
from pipeline.core.outcome import Cause, Status
from pipeline.core.spec import JobSpec
from pipeline.report.documents import ShownDocument, ShownSpan
from pipeline.report.text import json_values
from pipeline.run.grounding import has_spans, with_grounded
from pipeline.run.intake import ReadPiece, rows_of
from pipeline.storage.arrow import AUDIT_NAMES
from pipeline.storage.documents import DocumentReader
from pipeline.storage.layout import RunLayout, shard_id_of
from pipeline.storage.parts import read_part
from pipeline.storage.store import Store, open_store

__all__ = ["shown_documents"]

TEXT_CHARS = 4000
"""Characters of a document's text that a report holds."""

logger = logging.getLogger(__name__)


def shown_documents(store: Store, layout: RunLayout, plan: Plan, spec: JobSpec) -> tuple[ShownDocument, ...]:
    """Up to `output.shown_documents` of a run's documents, read from its input again.

    They illustrate; where the input has gone, or a part is damaged, there are fewer, and the log says why.
    """
    wanted = spec.output.shown_documents
    if not wanted:
        return ()
    try:
        standing = {shard_id_of(item.uri) for item in store.list_prefix(layout.parts_prefix)}
        shards = [shard for shard in plan.shards if shard.shard_id in standing]
        step = max(1, len(shards) // wanted)
        chosen = shards[::step][:wanted]
        read = DocumentReader(open_store(spec.input.uris[0], spec.s3), spec.input, spec.limits).read
        each = -(-wanted // max(1, len(chosen)))
        found = (document for shard in chosen for document in islice(_of_shard(store, layout, shard, read, spec), each))
        return tuple(islice(found, wanted))
    except (StorageError, VerificationError) as error:
        logger.warning("the report shows no documents beside their records: %s", error)
        return ()


def _of_shard(store: Store, layout: RunLayout, shard: Shard, read: ReadPiece, spec: JobSpec) -> Iterator[ShownDocument]:
    table = read_part(store, layout.part(shard.shard_id))
    if not has_spans(table):
        return
    rows = rows_of(shard, read, document_bytes=spec.limits.document_bytes, allow_duplicates=spec.rerun is not None)
    for row, outcome in with_grounded(table, rows):
        if outcome is not None and isinstance(row.content, Document):
            yield _shown(outcome, shard.shard_id, row.content.text or "")


def _shown(outcome: dict[str, Any], shard_id: str, text: str) -> ShownDocument:
    record = {name: value for name, value in outcome.items() if name not in AUDIT_NAMES}
    return ShownDocument(
        document_id=outcome["_document_id"],
        shard_id=shard_id,
        status=Status(outcome["_status"]),
        cause=None if outcome["_cause"] is None else Cause(outcome["_cause"]),
        text=text[:TEXT_CHARS],
        text_chars=len(text),
        record=json_values(record),
        spans=tuple(
            ShownSpan(
                field=span["field"], start=span["start"], end=span["end"], is_ambiguous=bool(span["is_ambiguous"])
            )
            for span in outcome["_spans"]
        ),
    )
