"""The store of this machine's files (or a shared mount): POSIX calls as object-store verbs.

A conditional put is a hard link: the name appears with the whole content, or not at all.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pipeline.core.errors import InputError, StorageAccessError, StorageError, StorageNotFoundError, UnreadableError
from pipeline.core.globs import glob_matcher, glob_root, is_glob, is_hidden
from pipeline.core.places import local_path
from pipeline.storage.store import ObjectInfo

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = ["LocalStore"]

_LEFTOVER = ".recordmill-"
"""First part of the names of files that are being written; a crash may leave one, and `list` never shows them."""

_LASTING = frozenset((errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP))
"""What the operating system answers however often it is asked."""


class LocalStore:
    """Files as objects.  URIs are paths, with or without `file://`; `list` gives absolute paths.

    The file system keeps no attempt ids, so what stands is taken for ours if it equals what we would have written:
    two attempts with equal bytes need not be told apart.  Times and sizes stand in for an ETag.
    """

    def list_prefix(self, prefix: str) -> list[ObjectInfo]:
        path = _path(prefix)
        with _mapped("list", prefix):
            return _listed(path, _walk(path))

    def list(self, uri: str) -> list[ObjectInfo]:
        path = _path(uri)
        with _mapped("list", uri):
            if os.path.isfile(path):
                return [_info(path)]
            if is_glob(path):
                matches, root = glob_matcher(path), os.path.dirname(glob_root(path))
                return _listed(root, (name for name in _walk(root) if matches(name)))
            return _listed(path, _walk(path))

    def head(self, uri: str) -> ObjectInfo | None:
        path = _path(uri)
        with _mapped("look at", uri):
            # `os.path.isfile` would take a mount that has gone for an object that has.
            try:
                return _info(path) if stat.S_ISREG(os.stat(path).st_mode) else None
            except (FileNotFoundError, NotADirectoryError):
                return None

    def get(self, uri: str) -> bytes:
        with _mapped("read", uri):
            return Path(_path(uri)).read_bytes()

    def open_input(self, uri: str, *, etag: str | None = None) -> BinaryIO:
        path = _path(uri)
        if etag is not None:
            info = self.head(uri)
            if info is None:
                raise UnreadableError(f"{uri} has vanished since the run was planned")
            if info.etag != etag:
                raise UnreadableError(f"{uri} has changed since the run was planned")
        with _mapped("open", uri):
            return cast(BinaryIO, _Input(path, etag))

    def put_if_absent(self, uri: str, data: bytes, *, attempt: str) -> bool:
        path = _path(uri)
        with _mapped("write", uri), _written_beside(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                # Over NFS the answer to a link that was made can be lost: then the retry says "exists".
                return os.stat(temporary).st_nlink == 2 or Path(path).read_bytes() == data
            _sync_folder(path)
            return True

    def put(self, uri: str, data: bytes) -> None:
        path = _path(uri)
        with _mapped("write", uri), _written_beside(path, data) as temporary:
            os.replace(temporary, path)
            _sync_folder(path)

    def filesystem(self) -> pyarrow.fs.FileSystem:
        import pyarrow.fs

        return pyarrow.fs.LocalFileSystem()

    def path(self, uri: str) -> str:
        return _path(uri)


class _Input(io.FileIO):
    """A file whose reads raise our errors: what the disk or the mount did is no damage of the file.

    With an `etag`, what was read is given only while the file has it: it may be written over while it is open.
    """

    def __init__(self, path: str, etag: str | None) -> None:
        super().__init__(path)
        self._etag = etag

    def read(self, size: int | None = -1, /) -> bytes:
        with self._reading():
            return super().read(-1 if size is None else size)

    def readall(self) -> bytes:
        with self._reading():
            return super().readall()

    def readinto(self, buffer: Any, /) -> int:
        with self._reading():
            return super().readinto(buffer)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with _mapped("read", str(self.name)):
            yield
            if self._etag is not None and _etag(os.fstat(self.fileno())) != self._etag:
                raise UnreadableError(f"{self.name} has changed while it was read")


@contextmanager
def _mapped(verb: str, uri: str) -> Iterator[None]:
    """Our errors for the operating system's."""
    try:
        yield
    except PermissionError as error:
        raise StorageAccessError(f"cannot {verb} {uri}: {error.strerror}") from error
    except FileNotFoundError as error:
        raise StorageNotFoundError(f"cannot {verb} {uri}: {error.strerror}") from error
    except OSError as error:
        if error.errno in _LASTING:
            raise StorageAccessError(f"cannot {verb} {uri}: {error.strerror}") from error
        raise StorageError(f"cannot {verb} {uri}: {error.strerror or type(error).__name__}") from error


@contextmanager
def _written_beside(path: str, data: bytes) -> Iterator[str]:
    """A complete, synced file in the same folder, gone afterwards."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f"{_LEFTOVER}{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        Path(temporary).unlink(missing_ok=True)


def _sync_folder(path: str) -> None:
    """Make a name last: it is durable only when its folder is."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _path(uri: str) -> str:
    if uri.startswith("s3://"):
        raise StorageNotFoundError(f"{uri} is not a local path; one job reads from one kind of store")
    return local_path(uri)


def _walk(root: str) -> list[str]:
    def refuse(error: OSError) -> None:
        # `os.walk` would go on without the folder, and its documents would be missing from the plan.
        if not isinstance(error, FileNotFoundError):
            raise error

    found: list[str] = []
    for folder, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        if links := {name for name in folders if os.path.islink(os.path.join(folder, name))}:
            above = _real_folders(root, folder)
            # A link back to a folder above would go on for ever.
            back = {name for name in links if os.path.realpath(os.path.join(folder, name)) in above}
            folders[:] = [name for name in folders if name not in back]
        found += [os.path.join(folder, name) for name in names if not name.startswith(_LEFTOVER)]
    return found


def _listed(root: str, found: Iterable[str]) -> list[ObjectInfo]:
    names = list(found)
    for name in names:
        if not name.isascii() and name != os.fsencode(name).decode(errors="replace"):
            raise InputError(f"{name!a}: the name is not UTF-8, and a plan has to hold it; rename the file")
    infos = (_standing(root, name) for name in _without_doubles(names))
    return [info for info in infos if info is not None]


def _standing(root: str, path: str) -> ObjectInfo | None:
    """The file; None where it has gone since its folder was read, or is hidden and a link to nothing (Emacs' locks)."""
    try:
        return _info(path)
    except FileNotFoundError:
        if os.path.islink(path) and not is_hidden(path.removeprefix(root)):
            raise InputError(f"{path} is a link to a file that is not there; mend the link or remove it") from None
        return None


def _real_folders(root: str, folder: str) -> set[str]:
    """Where a folder and those above it, down from the root, really are."""
    parts = os.path.relpath(folder, root).split(os.sep)
    return {os.path.realpath(os.path.join(root, *parts[:length])) for length in range(len(parts) + 1)}


def _without_doubles(found: list[str]) -> list[str]:
    """Of files that links to folders lead to several times, the one under the name with the fewest links, the first."""
    real = {folder: os.path.realpath(folder) for folder in {os.path.dirname(path) for path in found}}
    kept: dict[str, str] = {}
    for path in sorted(found, key=lambda path: (real[os.path.dirname(path)] != os.path.dirname(path), path)):
        folder, name = os.path.split(path)
        kept.setdefault(os.path.join(real[folder], name), path)
    return sorted(kept.values())


def _info(path: str) -> ObjectInfo:
    status = os.stat(path)
    return ObjectInfo(uri=path, size_bytes=status.st_size, etag=_etag(status))


def _etag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_size:x}"
