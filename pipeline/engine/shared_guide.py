"""Owns the one copy of a guide that the engines of a machine share: a file in memory, written once, never half."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from pipeline.core.errors import EngineStartError

__all__ = ["shared_guide_file"]

_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made below belongs to this user alone


def shared_guide_file(fingerprint: str, data: bytes | memoryview, folder: Path | None = None) -> Path:
    """The file that holds a guide's bytes on this machine; written if it is not there, or holds anything else.

    Args:
        fingerprint: the guide's.
        data: its bytes.
        folder: where; by default in memory where the system has such a place.

    Raises:
        EngineStartError: it cannot be written.
    """
    try:
        place = folder if folder is not None else _own_folder()
        target = place / f"guide-{fingerprint}.bin"
        if not _holds(target, data):
            _write(target, data)
    except OSError as error:
        raise EngineStartError(f"the guide cannot be shared on this machine: {error}") from error
    return target


def _write(target: Path, data: bytes | memoryview) -> None:
    """All of it or, where memory runs out, nothing that stays."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def _own_folder() -> Path:
    """A folder that nobody else may write to: guides are read by every engine of this user."""
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    folder = parent / f"recordmill-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder} belongs to somebody else")
    return folder


def _holds(path: Path, data: bytes | memoryview) -> bool:
    if not path.is_file() or path.stat().st_size != len(data):
        return False
    return hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(data).digest()
