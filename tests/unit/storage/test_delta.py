"""A run's rows in a Delta table: typed, once, on S3 as in a folder."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from demo.s3 import S3Server
from pipeline.core.errors import InputError, SpecError, StorageError
from pipeline.core.sections import S3Spec
from pipeline.storage.delta import append_to_delta

ITEM = pa.struct([("name", pa.string()), ("took", pa.duration("us"))])
_PASSED = pa.struct([("took", pa.duration("s")), ("at", pa.timestamp("us", "+05:30"))])


def _rows(*ids: str) -> ds.Dataset:
    count = len(ids)
    return ds.dataset(
        pa.table(
            {
                "_document_id": list(ids),
                "_status": ["valid"] * count,
                "total": pa.array([Decimal("9.50")] * count, pa.decimal128(12, 2)),
                "opens": pa.array([time(8, 30)] * count, pa.time64("us")),
                "items": pa.array([[{"name": "tea", "took": timedelta(seconds=2)}]] * count, pa.list_(ITEM)),
            }
        )
    )


def _read(table: str, options: dict[str, str] | None = None) -> list[dict[str, object]]:
    return sorted(
        DeltaTable(table, storage_options=options).to_pyarrow_table().to_pylist(), key=lambda row: row["_document_id"]
    )


def test_a_run_is_appended_once_and_another_beside_it(tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    assert append_to_delta(_rows("a", "b"), table, S3Spec(), source="run 1") == 2
    assert append_to_delta(_rows("a", "b"), table, S3Spec(), source="run 1") is None
    assert append_to_delta(_rows("c"), table, S3Spec(), source="run 2") == 1
    rows = _read(table)
    assert [row["_document_id"] for row in rows] == ["a", "b", "c"]
    assert rows[0] == {
        "_document_id": "a",
        "total": Decimal("9.50"),
        "opens": "08:30:00.000000",
        "items": [{"name": "tea", "took": 2_000_000}],
    }


def test_audit_columns_come_along_where_they_are_wanted(tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    append_to_delta(_rows("a"), table, S3Spec(), source="run 1", with_audit=True)
    assert _read(table)[0]["_status"] == "valid"


@pytest.mark.parametrize("is_audit_first", [False, True])
def test_a_table_takes_a_run_in_one_form_and_says_which_it_has(is_audit_first: bool, tmp_path: Path) -> None:
    """Fails when the transaction does not tell the forms apart, or when a table takes both."""
    table = str(tmp_path / "table")
    append_to_delta(_rows("a"), table, S3Spec(), source="run 1", with_audit=is_audit_first)
    assert append_to_delta(_rows("a"), table, S3Spec(), source="run 1", with_audit=is_audit_first) is None
    has = "all" if is_audit_first else "records"
    with pytest.raises(InputError, match=f"has this run already, as `--rows {has}` gives it"):
        append_to_delta(_rows("a"), table, S3Spec(), source="run 1", with_audit=not is_audit_first)
    assert [row["_document_id"] for row in _read(table)] == ["a"]
    other = str(tmp_path / "other")
    assert append_to_delta(_rows("a"), other, S3Spec(), source="run 1", with_audit=not is_audit_first) == 1


def test_a_table_on_s3_takes_a_run_once(s3_bucket: str, s3_server: S3Server) -> None:
    table, s3 = f"{s3_bucket}lake/receipts", S3Spec(endpoint_url=s3_server.endpoint_url)
    assert append_to_delta(_rows("a", "b"), table, s3, source="run 1") == 2
    assert append_to_delta(_rows("a", "b"), table, s3, source="run 1") is None
    found = _read(table, {"endpoint_url": s3_server.endpoint_url, "allow_http": "true"})
    assert [row["_document_id"] for row in found] == ["a", "b"]


def test_passed_columns_of_types_that_delta_lacks_come_as_those_it_has(tmp_path: Path) -> None:
    """Fails when a zone that is not UTC ends the export, or when milliseconds are taken for microseconds."""
    table, at = str(tmp_path / "table"), datetime(2026, 11, 1, 12, tzinfo=UTC)
    passed = {
        "at": pa.array([at], pa.timestamp("ms", "Europe/Berlin")),
        "took": pa.array([timedelta(seconds=2)], pa.duration("ms")),
        "each": pa.array([[{"took": timedelta(seconds=2), "at": at}]], pa.large_list(_PASSED)),
        "total": pa.array([Decimal("9.50")], pa.decimal32(5, 2)),
        "share": pa.array([0.5], pa.float16()),
    }
    append_to_delta(ds.dataset(pa.table({"_document_id": ["a"], **passed})), table, S3Spec(), source="run 1")
    took = 2_000_000
    expected = {"at": at, "took": took, "each": [{"took": took, "at": at}], "total": Decimal("9.50"), "share": 0.5}
    assert _read(table) == [{"_document_id": "a", **expected}]


def test_what_the_table_cannot_take_is_one_line(tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    append_to_delta(_rows("a"), table, S3Spec(), source="run 1")
    other = ds.dataset(pa.table({"_document_id": ["a"], "vendor": ["ACME"]}))
    with pytest.raises(InputError, match="has other columns than the run"):
        append_to_delta(other, table, S3Spec(), source="run 2")
    unsigned = ds.dataset(pa.table({"_document_id": ["a"], "pages": pa.array([1], pa.uint64())}))
    with pytest.raises(SpecError, match="'pages' is uint64"):
        append_to_delta(unsigned, str(tmp_path / "other"), S3Spec(), source="run 3")
    assert [row["_document_id"] for row in _read(table)] == ["a"]


def test_a_table_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    with pytest.raises(StorageError, match=r"s3://lake/t cannot be appended to: [^\n]+$"):
        append_to_delta(_rows("a"), "s3://lake/t", S3Spec(endpoint_url="http://127.0.0.1:9"), source="run 1")


def test_of_attempts_at_the_same_time_one_is_applied(tmp_path: Path) -> None:
    """Fails when the append opens the table anew after looking for the run in it."""

    def attempt(table: str) -> int | None:
        try:
            return append_to_delta(_rows(*map(str, range(200))), table, S3Spec(), source="run 1")
        except StorageError:
            return None

    for number in range(15):
        table = str(tmp_path / f"table-{number}")
        with ThreadPoolExecutor(4) as pool:
            assert sum(count or 0 for count in pool.map(attempt, [table] * 4)) == 200
        assert len(_read(table)) == 200
