"""What the local store promises beyond the contract of all stores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.core.errors import InputError, StorageAccessError, StorageError, StorageNotFoundError
from pipeline.storage.local import LocalStore


def test_a_crash_while_writing_leaves_nothing_that_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    store = LocalStore()
    monkeypatch.setattr(os, "link", crash)
    monkeypatch.setattr(Path, "unlink", crash)  # as after SIGKILL, nothing cleans up
    with pytest.raises(KeyboardInterrupt):
        store.put_if_absent(str(tmp_path / "parts" / "part"), b"whole", attempt="one")
    monkeypatch.undo()
    assert len(os.listdir(tmp_path / "parts")) == 1
    assert store.list(str(tmp_path)) == []
    assert store.put_if_absent(str(tmp_path / "parts" / "part"), b"whole", attempt="two")


def test_a_full_write_that_fails_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="No space left") as caught:
        LocalStore().put_if_absent(str(tmp_path / "part"), b"data", attempt="one")
    assert caught.value.retryable
    assert os.listdir(tmp_path) == []


def test_a_folder_that_may_not_be_written_is_an_access_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def guarded(path: str, _: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    # Not by the folder's mode: nothing is forbidden to root.
    monkeypatch.setattr("pipeline.storage.local.open", guarded, raising=False)
    with pytest.raises(StorageAccessError, match="Permission denied"):
        LocalStore().put(str(tmp_path / "a"), b"")


def test_a_folder_that_cannot_be_read_is_not_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "readable").mkdir()
    (tmp_path / "readable" / "a.txt").write_bytes(b"a")
    (tmp_path / "sealed").mkdir()
    scan = os.scandir

    def guarded(path: str) -> object:
        if str(path).endswith("sealed"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(StorageAccessError):
        LocalStore().list(str(tmp_path))


def test_an_s3_uri_is_not_a_file() -> None:
    with pytest.raises(StorageNotFoundError, match="one kind of store"):
        LocalStore().list("s3://bucket/docs/")


def test_linked_folders_are_walked_and_loops_end(tmp_path: Path) -> None:
    """Fails when links to folders are not followed: their documents would be missing without a word."""
    archive, data = tmp_path / "archive", tmp_path / "data"
    archive.mkdir()
    data.mkdir()
    (archive / "old.parquet").write_bytes(b"1")
    (data / "new.parquet").write_bytes(b"2")
    (data / "2024").symlink_to(archive)
    (data / "again").symlink_to(archive)
    (archive / "back").symlink_to(data)
    found = [item.uri for item in LocalStore().list(str(data))]
    assert found == [str(data / "2024" / "old.parquet"), str(data / "new.parquet")]


def test_a_link_beside_its_folder_hides_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """Fails when a folder is taken under the name that sorts first, which a pattern may not take."""
    for name in ("v3", "date=2024-06-01"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.parquet").write_bytes(b"1")
    (tmp_path / "latest").symlink_to(tmp_path / "v3")
    (tmp_path / "current").symlink_to(tmp_path / "date=2024-06-01")
    expected = [str(tmp_path / "date=2024-06-01" / "x.parquet"), str(tmp_path / "v3" / "x.parquet")]
    assert [item.uri for item in LocalStore().list(str(tmp_path))] == expected
    assert [item.uri for item in LocalStore().list(f"{tmp_path}/v*/*.parquet")] == expected[1:]
    assert [item.uri for item in LocalStore().list(f"{tmp_path}/lat*/*.parquet")] == [
        str(tmp_path / "latest" / "x.parquet")
    ]


def test_a_name_that_is_no_utf_8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "caf\udce9.parquet").write_bytes(b"1")
    with pytest.raises(InputError, match=r"udce9.parquet.*rename"):
        LocalStore().list(str(tmp_path))
