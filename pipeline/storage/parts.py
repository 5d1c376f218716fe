"""Parts: the Parquet objects that hold the outcomes of one shard each, checked before they are written and when read.

A part is encoded in memory and put whole.  It is never written into a stream: an exception there still publishes an
object, with a valid footer and fewer rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipeline.core.errors import VerificationError
from pipeline.core.outcome import Cause, Status
from pipeline.storage.arrow import with_audit_fields
from pipeline.storage.damage import damage_means
from pipeline.storage.footer import NO_CAUSE, PartFooter, SpanCounts, Timings, TokenTotals, part_footer
from pipeline.storage.store import Store

__all__ = [
    "PartFooter",
    "Timings",
    "encode_part",
    "merge_parts",
    "part_footer",
    "read_footer",
    "read_part",
    "read_statuses",
]

_FOOTER = b"recordmill.part"
_DIGEST = b"recordmill.part.sha256"
"""Parquet has checksums for pages and none for its footer; this one covers ours, and the columns' names and types."""


def encode_part(table: pa.Table, footer: PartFooter) -> bytes:
    """The whole object, in memory, and read back: what is returned is known to hold what was given.

    Args:
        table: the outcomes, as `outcomes_table` makes them.
        footer: its counts must be those of the table.

    Raises:
        VerificationError: table and footer disagree, or the bytes do not read back as the table.
    """
    name = f"the part of shard {footer.shard_id}"
    _check_counts(table, footer, name)
    text = footer.model_dump_json().encode()
    metadata: dict[Any, Any] = {
        **(table.schema.metadata or {}),
        _FOOTER: text,
        _DIGEST: _digest(text, table.schema),
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata(metadata),
        sink,
        compression="zstd",
        write_page_checksum=True,
        write_page_index=True,
    )
    data = sink.getvalue()
    read, found = _decoded(pa.BufferReader(data), name)
    if found != footer or not read.schema.equals(table.schema) or read["_document_id"] != table["_document_id"]:
        raise VerificationError(f"{name} does not read back as it was written")
    return data.to_pybytes()


def read_footer(store: Store, uri: str) -> PartFooter:
    """The counts of a part, by ranged reads of its end only.

    Raises:
        VerificationError: it is not a part, or damaged.
        StorageError: see `Store`.
    """
    with store.open_input(uri) as file:
        return _footer_of(_opened(file, uri), uri)


def read_part(store: Store, uri: str) -> pa.Table:
    """All rows of a part, with every checksum verified, and the counts of its footer.

    Raises:
        VerificationError: it is not a part, or damaged, or its rows contradict its footer.
        StorageError: see `Store`.
    """
    table, _ = _decoded(pa.BufferReader(store.get(uri)), uri)
    return table


def read_statuses(store: Store, uri: str) -> list[tuple[Status, Cause | None]]:
    """What became of each row of a part, in order, by ranged reads of those two columns only.

    Raises:
        VerificationError: it is not a part, or damaged, or its rows contradict its footer.
        StorageError: see `Store`.
    """
    with store.open_input(uri) as source:
        file = _opened(source, uri)
        footer = _footer_of(file, uri)
        with damage_means(_damaged(uri)):
            table = file.read(columns=["_status", "_cause"])
    _check_counts(table, footer, uri)
    pairs = zip(table["_status"].to_pylist(), table["_cause"].to_pylist(), strict=True)
    return [(Status(str(status)), None if cause is None else Cause(cause)) for status, cause in pairs]


def merge_parts(
    parts: Sequence[tuple[pa.Table, PartFooter]], *, shard_id: str, attempt: str
) -> tuple[pa.Table, PartFooter]:
    """One part made of the parts of a shard's pieces, in their order; rows keep the attempt that made them.

    Raises:
        VerificationError: the parts are of different runs.
    """
    tables, footers = [table for table, _ in parts], [footer for _, footer in parts]
    first = footers[0]
    if any(footer.fingerprint != first.fingerprint for footer in footers):
        raise VerificationError(f"the pieces of shard {shard_id} are of different runs")
    # A half of an earlier version lacks what has come to the audit columns since; the cast adds it as null.
    schema = with_audit_fields(tables[0].schema)
    table = pa.concat_tables([table.cast(schema) for table in tables])
    merged = PartFooter(
        shard_id=shard_id,
        fingerprint=first.fingerprint,
        attempt=attempt,
        engine=first.engine,
        rows=sum(footer.rows for footer in footers),
        counts={
            status: _added(footer.counts.get(status, {}) for footer in footers)
            for status in Status
            if any(status in footer.counts for footer in footers)
        },
        tokens=TokenTotals(**_added(footer.tokens.model_dump() for footer in footers)),
        output_tokens_histogram=_bins([footer.output_tokens_histogram for footer in footers]),
        slack_tokens_histogram=_bins([footer.slack_tokens_histogram for footer in footers]),
        shaped_fields=_added(footer.shaped_fields for footer in footers),
        spans=SpanCounts(**_added(footer.spans.model_dump() for footer in footers)),
        timings_s=sum((footer.timings_s for footer in footers), Timings()),
        started_at=min(footer.started_at for footer in footers),
        finished_at=max(footer.finished_at for footer in footers),
        problems=tuple(problem for footer in footers for problem in footer.problems)[:3],
    )
    return table, merged


def _opened(source: BinaryIO | pa.NativeFile, name: str) -> pq.ParquetFile:
    with damage_means(VerificationError(f"{name} is not a readable Parquet object")):
        return pq.ParquetFile(source, page_checksum_verification=True)


def _damaged(name: str) -> VerificationError:
    return VerificationError(f"{name} is damaged: a page does not match its checksum or its type")


def _decoded(source: pa.NativeFile, name: str) -> tuple[pa.Table, PartFooter]:
    file = _opened(source, name)
    footer = _footer_of(file, name)
    with damage_means(_damaged(name)):
        table = file.read()
        table.validate(full=True)
    _check_counts(table, footer, name)
    return table, footer


def _footer_of(file: pq.ParquetFile, name: str) -> PartFooter:
    metadata = file.metadata.metadata or {}
    text = metadata.get(_FOOTER)
    broken = VerificationError(f"{name} has no intact footer of a part")
    with damage_means(broken):
        is_intact = text is not None and _digest(text, file.schema_arrow) == metadata.get(_DIGEST)
    if text is None or not is_intact:
        raise broken
    try:
        footer = PartFooter.model_validate_json(text)
    except ValidationError as error:
        raise VerificationError(f"{name} has a footer that this version does not know") from error
    if footer.rows != file.metadata.num_rows:
        raise VerificationError(f"{name} holds {file.metadata.num_rows} rows, but its footer says {footer.rows}")
    return footer


def _digest(text: bytes, schema: pa.Schema) -> bytes:
    columns = "".join(f"{field.name}: {_spelt(field.type)}\n" for field in schema)
    return hashlib.sha256(text + columns.encode()).hexdigest().encode()


def _spelt(kind: pa.DataType) -> str:
    """A type's name without those names inside lists and maps that Parquet chooses itself."""
    if isinstance(kind, pa.StructType):
        members = (kind.field(index) for index in range(kind.num_fields))
        return "struct<" + ",".join(f"{member.name}:{_spelt(member.type)}" for member in members) + ">"
    if isinstance(kind, pa.MapType):
        return f"map<{_spelt(kind.key_type)},{_spelt(kind.item_type)}>"
    return f"list<{_spelt(kind.value_type)}>" if isinstance(kind, pa.ListType) else str(kind)


def _check_counts(table: pa.Table, footer: PartFooter, name: str) -> None:
    pairs = zip(table["_status"].to_pylist(), table["_cause"].to_pylist(), strict=True)
    held = Counter((status, NO_CAUSE if cause is None else cause) for status, cause in pairs)
    said = {(status.value, cause): rows for status, causes in footer.counts.items() for cause, rows in causes.items()}
    if held != Counter(said):
        raise VerificationError(f"{name}: its rows contradict the counts in its footer")


def _added(mappings: Any) -> dict[str, int]:
    total: Counter[str] = Counter()
    for mapping in mappings:
        total.update(mapping)
    return dict(sorted(total.items()))


def _bins(histograms: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(counts) for counts in zip_longest(*histograms, fillvalue=0))
