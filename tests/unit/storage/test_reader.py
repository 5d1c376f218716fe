"""Reading a run's records back as its user does."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pydantic import BaseModel

from pipeline.core.errors import StorageError, StorageNotFoundError
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.core.sections import S3Spec
from pipeline.storage.arrow import outcomes_table, record_schema
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import encode_part, part_footer
from pipeline.storage.reader import read_records
from pipeline.storage.store import open_store
from tests.unit.storage.earlier import without_copied


class Record(BaseModel):
    title: str


SCHEMA = record_schema(Record)
NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)


def _write(prefix: str, shard_id: str, rows: list[Outcome], *, is_half: bool = False, is_old: bool = False) -> None:
    table = outcomes_table(rows, SCHEMA, attempt="a", engine="e")
    table = without_copied(table) if is_old else table
    footer = part_footer(
        rows, shard_id=shard_id, fingerprint="f" * 64, attempt="a", engine="e", started_at=NOW, finished_at=NOW
    )
    layout = RunLayout(prefix)
    uri = layout.half(shard_id) if is_half else layout.part(shard_id)
    open_store(prefix, S3Spec()).put_if_absent(uri, encode_part(table, footer), attempt="a")


def _write_run(prefix: str) -> None:
    valid = Outcome("a", Status.VALID, record={"title": "one"})
    closed = Outcome("b", Status.CLOSED, Cause.BUDGET, record={"title": "two"})
    failed = Outcome("c", Status.FAILED, Cause.EMPTY)
    _write(prefix, "0" * 16, [valid, failed])
    _write(prefix, "1" * 16, [closed])
    _write(prefix, "2" * 16, [failed])
    _write(prefix, "3" * 16, [valid], is_half=True)
    store = open_store(prefix, S3Spec())
    store.put(RunLayout(prefix).parts_prefix + "leftover.tmp", b"not a part")
    store.put(RunLayout(prefix).plan, b"{}")


def _check(prefix: str) -> None:
    assert sorted(read_records(prefix).to_table()["title"].to_pylist()) == ["one", "two"]
    assert read_records(prefix, "failed").to_table()["_document_id"].to_pylist() == ["c", "c"]
    assert read_records(prefix, ["valid", Status.FAILED]).count_rows() == 3
    assert read_records(prefix, None).count_rows() == 4
    assert read_records(prefix, ()).count_rows() == 0
    assert read_records(prefix).schema.equals(SCHEMA)
    assert read_records(prefix).to_table(columns=["title"]).column_names == ["title"]


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}"])
@pytest.mark.parametrize("name", ["run", "run[1]", "*"])
def test_records_of_a_local_run(tmp_path: Path, form: str, name: str) -> None:
    _write_run(str(tmp_path / name))
    _check(form.format(tmp_path / name))


@pytest.mark.s3
def test_records_of_a_run_on_s3(s3_bucket: str) -> None:
    prefix = s3_bucket.rstrip("/") + "/runs/one[1]"
    _write_run(prefix)
    _check(prefix)


@pytest.mark.parametrize("old", ["0" * 16, "1" * 16])
def test_parts_of_an_earlier_version_take_nothing_from_those_of_this(tmp_path: Path, old: str) -> None:
    """Arrow would give all of them the schema of the first."""
    found = Outcome("a", Status.VALID, record={"title": "one"}, spans=(FoundSpan("title", 3, 6, copied="One"),))
    for shard_id in ("0" * 16, "1" * 16):
        _write(str(tmp_path), shard_id, [found], is_old=shard_id == old)
    dataset = read_records(str(tmp_path))
    assert dataset.schema.equals(SCHEMA)
    copied = [spans[0]["copied"] for spans in dataset.to_table()["_spans"].to_pylist()]
    assert copied == ([None, "One"] if old == "0" * 16 else ["One", None])


def test_a_status_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    _write_run(str(tmp_path))
    with pytest.raises(ValueError, match="valids"):
        read_records(str(tmp_path), "valids")


def test_a_prefix_without_parts_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageNotFoundError, match="no parts"):
        read_records(str(tmp_path))


def test_a_first_part_that_cannot_be_read_is_one_error_of_ours(tmp_path: Path) -> None:
    """Fails when Arrow's own error ends an export with a traceback."""
    _write_run(str(tmp_path))
    Path(RunLayout(str(tmp_path)).part("0" * 16)).write_bytes(b"")
    with pytest.raises(StorageError, match=r"part-0{16}.*`recordmill verify` says"):
        read_records(str(tmp_path))


def test_a_flipped_bit_in_a_part_is_not_read_as_a_record(tmp_path: Path) -> None:
    _write(str(tmp_path), "0" * 16, [Outcome("a", Status.VALID, record={"title": "t" * 1000})])
    part = Path(RunLayout(str(tmp_path)).part("0" * 16))
    data = bytearray(part.read_bytes())
    data[40] ^= 1
    part.write_bytes(data)
    with pytest.raises(OSError, match=r"CRC|checksum"):
        read_records(str(tmp_path)).to_table()
