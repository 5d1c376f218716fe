"""A run's rows appended to a Delta table, once, however often it is asked for; the table's protocol is deltalake's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipeline.core.errors import InputError, SpecError, StorageError
from pipeline.core.sections import S3Spec
from pipeline.storage.export import exported_schema
from pipeline.storage.nested import with_leaves
from pipeline.storage.reader import batches_of

__all__ = ["append_to_delta"]

_MOST_DIGITS = 38
_APPENDED = {False: 1, True: 2}
"""The version of a run's transaction, without audit columns and with them: one name, so that no table takes both."""


def append_to_delta(
    dataset: ds.Dataset, table: str, s3: S3Spec, *, source: str, with_audit: bool = False
) -> int | None:
    """Appends the dataset's rows in one transaction; makes the table where there is none.

    The transaction carries the run's name as its application id (Delta protocol, "Application transactions"), so that
    of several attempts, also at the same time, one is applied.  Delta has no type for times of day and durations: they
    become text and microseconds; instants are in UTC.

    Args:
        dataset: from `read_records`; memory stays that of a few batches.
        table: the table's URI; `s3://` or a path.  Credentials come from the environment or a role.
        s3: where S3 is.
        source: what the rows are of: the run's prefix and fingerprint.
        with_audit: whether the audit columns come along; `_document_id` always does.

    Returns:
        How many rows were appended; None where the table has them already.

    Raises:
        SpecError: `deltalake` is not installed, or a column has a type that Delta does not know.
        InputError: the table's columns are others, or it has the run's rows in the other form.
        StorageError: the table cannot be read or written.
    """
    try:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
        from deltalake.exceptions import DeltaError, SchemaMismatchError
    except ImportError as error:
        raise SpecError(
            "--delta needs the package deltalake: in recordmill's checkout, pip install '.[delta]'"
        ) from error

    options = _options(s3) if table.startswith("s3://") else None
    schema = pa.schema(
        [pa.field(field.name, _delta_type(field.name, field.type)) for field in exported_schema(dataset, with_audit)]
    )
    counted = _Counted(dataset, schema)
    application = f"recordmill {source}"
    try:
        DeltaTable.create(table, schema, mode="ignore", storage_options=options)
        standing = DeltaTable(table, storage_options=options)
        appended = standing.transaction_version(application)
        if appended == _APPENDED[with_audit]:
            return None
        if appended is not None:
            raise InputError(_in_other_form(table, with_audit))
        # On the table as it was looked at: an attempt that came in between is a conflict, not a second copy.
        write_deltalake(
            standing,
            pa.RecordBatchReader.from_batches(schema, iter(counted)),
            mode="append",
            commit_properties=CommitProperties(app_transactions=[Transaction(application, _APPENDED[with_audit])]),
        )
    except SchemaMismatchError as error:
        raise InputError(f"{table} has other columns than the run: {_first_line(error)}") from error
    except (DeltaError, OSError) as error:
        raise StorageError(f"{table} cannot be appended to: {_first_line(error)}") from error
    return counted.rows


def _in_other_form(table: str, with_audit: bool) -> str:
    has, asked = ("records", "all") if with_audit else ("all", "records")
    return (
        f"{table} has this run already, as `--rows {has}` gives it; "
        f"`--rows {asked}` would add the same documents again: append those to a table of their own"
    )


class _Counted:
    """The dataset's batches in the table's types, counted as they pass."""

    def __init__(self, dataset: ds.Dataset, schema: pa.Schema) -> None:
        self._dataset = dataset
        self._schema = schema
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in batches_of(self._dataset, self._schema.names):
            columns: list[Any] = [
                column
                if column.type.equals(field.type)
                else pc.cast(pc.cast(column, _in_microseconds(column.type)), field.type)
                for column, field in zip(batch.columns, self._schema, strict=True)
            ]
            self.rows += batch.num_rows
            yield pa.record_batch(columns, schema=self._schema)


def _delta_type(name: str, kind: pa.DataType) -> pa.DataType:
    def leaf(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_time(kind):
            return pa.string()
        if pa.types.is_duration(kind):
            return pa.int64()
        if pa.types.is_timestamp(kind):
            # An instant is an instant in any zone; Delta knows UTC alone.
            return pa.timestamp("us", None if kind.tz is None else "UTC")
        if pa.types.is_float16(kind):
            return pa.float32()
        if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
            return pa.decimal128(kind.precision, kind.scale)
        if pa.types.is_unsigned_integer(kind) or pa.types.is_decimal(kind):
            raise SpecError(f"column {name!r} is {kind}, for which Delta has no type; leave it out of input.columns")
        return kind

    return with_leaves(kind, leaf)


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    return with_leaves(kind, lambda kind: pa.duration("us") if pa.types.is_duration(kind) else kind)


def _options(s3: S3Spec) -> dict[str, str]:
    options = {"conditional_put": "etag"}
    if s3.endpoint_url is not None:
        options["endpoint_url"] = s3.endpoint_url
        options["allow_http"] = str(s3.endpoint_url.startswith("http://")).lower()
    if s3.region is not None:
        options["region"] = s3.region
    return options


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
