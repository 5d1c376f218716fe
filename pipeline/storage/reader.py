"""A run's records as an Arrow dataset: what a user reads after a run, from the parts alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pipeline.core.errors import StorageError, StorageNotFoundError
from pipeline.core.outcome import RECORD_STATUSES, Status
from pipeline.core.sections import S3Spec
from pipeline.storage.arrow import with_audit_fields
from pipeline.storage.layout import RunLayout, shard_id_of
from pipeline.storage.store import open_store

__all__ = ["batches_of", "read_records"]


def read_records(
    uri: str, status: str | Collection[str] | None = tuple(RECORD_STATUSES), *, s3: S3Spec | None = None
) -> ds.Dataset:
    """The rows of a run, lazily; `.to_table(columns=[...])`, `.to_batches()` and filters read only what they need.

    Args:
        uri: the run's output prefix.
        status: one status or several; by default those that hold a record (`valid`, `closed`).  None: every row.
        s3: where S3 is, if not where the environment says.

    Returns:
        A dataset of the parts that stand now, in the columns of `record_schema`, where what parts of an earlier version
        lack is null; pages are verified against their checksums as they are read.

    Raises:
        ValueError: there is no such status.
        StorageNotFoundError: the run has no parts.
        StorageError: see `Store`.
    """
    store = open_store(uri, S3Spec() if s3 is None else s3)
    parts = [info.uri for info in store.list_prefix(RunLayout(uri).parts_prefix) if shard_id_of(info.uri) is not None]
    if not parts:
        raise StorageNotFoundError(f"{uri} holds no parts of a run")
    options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=options)
    paths, filesystem = [store.path(part) for part in parts], store.filesystem()
    with _part_errors():
        first = parquet.inspect(paths[0], filesystem=filesystem)
    # It may be of an earlier version than the others: its audit columns are not everyone's.
    schema = with_audit_fields(first)
    dataset = ds.dataset(paths, schema=schema, filesystem=filesystem, format=parquet)
    if status is None:
        return dataset
    wanted = [Status(name).value for name in ([status] if isinstance(status, str) else status)]
    return dataset.filter(pc.field("_status").isin(pa.array(wanted, pa.string())))


def batches_of(dataset: ds.Dataset, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The dataset's rows, a batch at a time.

    Raises:
        StorageError: a part cannot be read, or is damaged.
    """
    with _part_errors():
        yield from dataset.to_batches(columns=list(columns))


@contextmanager
def _part_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise StorageError(
            f"a part of the run cannot be read: {str(error).splitlines()[0]}; `recordmill verify` says what is damaged"
        ) from error
