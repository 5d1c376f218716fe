"""What the local store promises beyond the contract of all stores."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.document import Piece
from pipeline.core.errors import InputError, StorageAccessError, StorageError, StorageNotFoundError, UnreadableError
from pipeline.core.sections import InputSpec, LimitsSpec
from pipeline.storage.documents import read_piece
from pipeline.storage.local import LocalStore
from pipeline.storage.parquet_input import RowGroupStream
from pipeline.storage.parts import read_footer, read_statuses


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


def test_a_place_below_a_file_is_not_tried_again(tmp_path: Path) -> None:
    """Fails when a run is told to be resumed, which would end in the same way."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageAccessError, match="Not a directory") as caught:
        LocalStore().put_if_absent(str(tmp_path / "file" / "run" / "part"), b"", attempt="one")
    assert (caught.value.retryable, caught.value.exit_code) == (False, 2)


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


def test_a_link_to_nothing_is_named_unless_it_is_hidden(tmp_path: Path) -> None:
    """Fails when a lock of an editor, or a linked interpreter in a hidden folder, makes a whole input unlistable."""
    root = tmp_path / ".cache" / "docs"
    (root / ".venv").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"a")
    for name in (".#a.txt", ".venv/python", "_lock"):
        (root / name).symlink_to("nowhere")
    for asked in (str(root), f"{root}/**/*"):
        assert [item.uri for item in LocalStore().list(asked)] == [str(root / "a.txt")]
    (root / "b.txt").symlink_to("nowhere")
    for asked in (str(root), f"{root}/*.txt"):
        with pytest.raises(InputError, match=r"b\.txt is a link to a file that is not there"):
            LocalStore().list(asked)
    assert [item.uri for item in LocalStore().list(f"{root}/a*")] == [str(root / "a.txt")]


def test_a_file_that_goes_while_its_folder_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"a")
    stat = os.stat

    def gone(path: str, **options: Any) -> os.stat_result:
        return stat(f"{path}.gone" if str(path).endswith("b.txt") else path, **options)

    monkeypatch.setattr(os, "stat", gone)
    assert [item.uri for item in LocalStore().list(str(tmp_path))] == [str(tmp_path / "a.txt")]


class _Mount(LocalStore):
    """Files of a mount that can go while they are open."""

    def __init__(self) -> None:
        self._opened: list[BinaryIO] = []
        self.is_gone = False

    def open_input(self, uri: str, *, etag: str | None = None) -> BinaryIO:
        self._opened.append(super().open_input(uri, etag=etag))
        if self.is_gone:
            self.go()
        return self._opened[-1]

    def go(self) -> None:
        self.is_gone = True
        for file in (file for file in self._opened if not file.closed):
            with open(file.name, "ab") as unreadable:
                os.dup2(unreadable.fileno(), file.fileno())


def _object(path: Path) -> Piece:
    """Three documents, in the format that the name says."""
    rows = [{"document_id": f"d{number}", "text": "t"} for number in range(3)]
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case _:
            path.write_text("t")
    info = LocalStore().head(str(path))
    assert info is not None
    return Piece(info.uri, info.etag, 0, 0, 1 if path.suffix == ".txt" else 3)


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl", "a.txt"])
def test_a_read_that_fails_is_no_damage_of_the_file(tmp_path: Path, name: str) -> None:
    """Fails when documents of a healthy file become outcomes because a mount was away for a moment."""
    piece, store, spec = _object(tmp_path / name), _Mount(), InputSpec(uri=str(tmp_path))
    assert [document.text for document in read_piece(store, piece, spec, LimitsSpec())] == ["t"] * piece.rows
    store.go()
    with pytest.raises(StorageError, match=rf"cannot read .*{name}"):
        list(read_piece(store, piece, spec, LimitsSpec()))


def test_a_mount_that_goes_between_a_footer_and_its_pages_is_no_damage(tmp_path: Path) -> None:
    piece, store = _object(tmp_path / "a.parquet"), _Mount()
    stream = RowGroupStream(store, piece, InputSpec(uri=str(tmp_path)), LimitsSpec())
    store.go()
    with pytest.raises(StorageError, match="cannot read"):
        list(stream.documents(piece))


def test_a_part_that_cannot_be_read_for_now_is_not_called_damaged(tmp_path: Path) -> None:
    piece, store = _object(tmp_path / "a.parquet"), _Mount()
    store.go()
    for read in (read_footer, read_statuses):
        with pytest.raises(StorageError, match="cannot read"):
            read(store, piece.uri)


def test_a_file_that_is_written_over_while_it_is_read_is_unreadable_from_there_on(tmp_path: Path) -> None:
    """Fails when rows of the new content pass for those that were planned."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old " * 100)
    store = LocalStore()
    [info] = store.list(str(path))
    with store.open_input(info.uri, etag=info.etag) as planned, store.open_input(info.uri) as any_content:
        assert planned.read(4) == b"old "
        with path.open("r+b") as file:
            file.write(b"new " * 100)
        os.utime(path, ns=(0, 1))
        with pytest.raises(UnreadableError, match=f"{path} has changed while it was read"):
            planned.read(4)
        assert any_content.read(4) == b"new "


def test_an_object_that_cannot_be_looked_at_has_not_vanished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = _object(tmp_path / "a.txt")

    def stale(path: str, **_: Any) -> None:
        raise OSError(errno.ESTALE, "Stale file handle", path)

    monkeypatch.setattr(os, "stat", stale)
    with pytest.raises(StorageError, match="Stale file handle"):
        LocalStore().open_input(piece.uri, etag=piece.etag)
