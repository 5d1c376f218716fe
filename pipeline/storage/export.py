"""A run's rows in one file: Parquet, JSON lines or CSV, a batch at a time."""

from __future__ import annotations

import base64
import enum
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pydantic_core import to_json

from pipeline.storage.arrow import AUDIT_NAMES
from pipeline.storage.reader import batches_of

__all__ = ["ExportFormat", "export_records", "exported_schema"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\0")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
"""A column of exact amounts is text, and a number is no formula."""


class ExportFormat(enum.StrEnum):
    """File formats of an export."""

    PARQUET = "parquet"
    JSONL = "jsonl"
    CSV = "csv"


def export_records(dataset: ds.Dataset, to: ExportFormat, file: BinaryIO, *, with_audit: bool = False) -> int:
    """Writes the dataset's rows to an open file; memory stays that of one batch.

    Args:
        dataset: from `read_records`.
        to: the format.
        file: opened for writing bytes.
        with_audit: whether the audit columns come along; `_document_id` always does.

    Returns:
        How many rows were written.

    Raises:
        StorageError: a part cannot be read.
    """
    schema = exported_schema(dataset, with_audit)
    batches = batches_of(dataset, schema.names)
    match to:
        case ExportFormat.PARQUET:
            return _parquet(batches, schema, file)
        case ExportFormat.JSONL:
            return _jsonl(batches, file)
        case ExportFormat.CSV:
            return _csv(batches, schema, file)


def exported_schema(dataset: ds.Dataset, with_audit: bool) -> pa.Schema:
    """The columns that leave: `_document_id`, those of the record and of the input, and the audit columns if wanted."""
    left_out = frozenset() if with_audit else AUDIT_NAMES - {"_document_id"}
    return pa.schema([field for field in dataset.schema if field.name not in left_out])


def _parquet(batches: Iterator[pa.RecordBatch], schema: pa.Schema, file: BinaryIO) -> int:
    count = 0
    with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in batches:
            writer.write_batch(batch)
            count += batch.num_rows
    return count


def _jsonl(batches: Iterator[pa.RecordBatch], file: BinaryIO) -> int:
    count = 0
    for batch in batches:
        for row in zip(*map(_values, batch.columns), strict=True):
            file.write(_json(dict(zip(batch.schema.names, row, strict=True))) + b"\n")
        count += batch.num_rows
    return count


def _values(column: Any) -> list[Any]:
    """A map is an object; where a key stands twice, which an object cannot hold, a list of pairs."""
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except (KeyError, ValueError):
        return [_value(value) for value in column]


def _value(value: pa.Scalar[Any]) -> Any:
    try:
        return value.as_py(maps_as_pydicts="strict")
    except (KeyError, ValueError):
        return value.as_py()


def _json(value: Any) -> bytes:
    """Bytes as base64 of the alphabet for URLs; NaN and infinities, for which JSON has no numbers, as strings."""
    return to_json(value, bytes_mode="base64", inf_nan_mode="strings")


def _csv(batches: Iterator[pa.RecordBatch], schema: pa.Schema, file: BinaryIO) -> int:
    """Nested columns become JSON text; text that a spreadsheet would run is quoted (OWASP, CSV injection)."""
    flat = pa.schema([pa.field(field.name, _flat_type(field.type)) for field in schema])
    count = 0
    with pc_csv.CSVWriter(file, flat) as writer:
        for batch in batches:
            columns = [_flattened(column, field.type) for column, field in zip(batch.columns, flat, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=flat))
            count += batch.num_rows
    return count


def _flat_type(kind: pa.DataType) -> pa.DataType:
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return kind if is_plain or (pa.types.is_temporal(kind) and not pa.types.is_duration(kind)) else pa.string()


def _flattened(column: Any, kind: pa.DataType) -> Any:
    if column.type.equals(kind) and not pa.types.is_string(kind):
        return column
    return pa.array([None if value is None else _cell(value) for value in _values(column)], pa.string())


def _cell(value: Any) -> str:
    if isinstance(value, list | dict):
        return _json(value).decode()
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode()
    text = value if isinstance(value, str) else str(value)
    if isinstance(value, str) and text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
