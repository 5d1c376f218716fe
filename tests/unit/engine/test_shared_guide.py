"""One copy of a guide on a machine: written once, whole, and never by halves."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.core.errors import EngineStartError
from pipeline.engine import shared_guide
from pipeline.engine.shared_guide import shared_guide_file


def test_a_guide_is_written_once_and_a_spoilt_one_is_replaced(tmp_path: Path) -> None:
    path = shared_guide_file("abc", b"guide", tmp_path)
    written = path.stat().st_mtime_ns
    assert shared_guide_file("abc", b"guide", tmp_path) == path
    assert path.stat().st_mtime_ns == written
    path.write_bytes(b"spoil")
    assert shared_guide_file("abc", memoryview(b"guide"), tmp_path).read_bytes() == b"guide"
    assert [item.name for item in tmp_path.iterdir()] == ["guide-abc.bin"]


def test_a_guide_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    """Fails when what was written beside its place stays there, to fill the memory with each further try."""
    (tmp_path / "guide-abc.bin").mkdir()
    with pytest.raises(EngineStartError, match="cannot be shared"):
        shared_guide_file("abc", b"guide", tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["guide-abc.bin"]


def test_many_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: shared_guide_file("abc", data, tmp_path), range(32)))
    assert {path.read_bytes() == data for path in paths} == {True}
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["link", "open to all"])
def test_a_folder_that_others_may_write_to_is_not_trusted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a guide is taken from where another user of the machine could put one of theirs."""
    monkeypatch.setattr(shared_guide, "_MEMORY", tmp_path)
    folder = tmp_path / f"recordmill-{os.getuid()}"
    if kind == "link":
        (tmp_path / "theirs").mkdir()
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(EngineStartError, match="belongs to somebody else"):
        shared_guide_file("abc", b"guide")
    assert not list(folder.iterdir())


def test_the_folder_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_guide, "_MEMORY", tmp_path)
    path = shared_guide_file("abc", b"guide")
    assert path.parent.stat().st_mode & 0o077 == 0
