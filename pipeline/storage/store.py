"""The protocol of an object store: what a run may ask of wherever its objects lie.

It has no delete and no rename.  A run commits by one conditional put, and never removes data while recovering.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

from pipeline.core.sections import S3Spec

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = ["ObjectInfo", "Store", "open_store", "probe"]


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object as it is now.  `etag` differs whenever the content does."""

    uri: str
    size_bytes: int
    etag: str


class Store(Protocol):
    """Objects by URI.

    Every method raises `StorageAccessError` where permissions refuse it, `StorageNotFoundError` where the bucket (or
    an object that must exist) does not, and `StorageError` where the store gave out after every retry.

    A store is never pickled: a process that needs one calls `open_store`, so that connections are its own and
    credentials stay out of messages between processes.
    """

    def list_prefix(self, prefix: str) -> list[ObjectInfo]:
        """Objects under a prefix that ends in a slash (recursive), by URI, or empty; `*`, `?` and `[` are plain."""

    def list(self, uri: str) -> list[ObjectInfo]:
        """Objects under a prefix (recursive), matching a glob, or the one object of that name; by URI, or empty.

        For what a user names as input; what we wrote ourselves is found by `list_prefix`.
        """

    def head(self, uri: str) -> ObjectInfo | None:
        """The object, or None where there is none."""

    def get(self, uri: str) -> bytes:
        """The whole object."""

    def open_input(self, uri: str, *, etag: str | None = None) -> BinaryIO:
        """The object as an unbuffered, seekable file; each read is one ranged request.

        Raises:
            UnreadableError: an `etag` is given and the object has another one now, or is gone.  Reads raise it too.
        """

    def put_if_absent(self, uri: str, data: bytes, *, attempt: str) -> bool:
        """Write the object unless one stands there, in one step that is applied whole or not at all.

        Args:
            uri: where.
            data: all of it.
            attempt: an id of this try, kept with the object, so that a lost answer can be told from a lost race.

        Returns:
            True if this attempt's object stands, also where the answer to an earlier request was lost; False if
            another attempt's does.
        """

    def put(self, uri: str, data: bytes) -> None:
        """Write the object over whatever stands there.  For reports, never for parts."""

    def filesystem(self) -> pyarrow.fs.FileSystem:
        """This store as Arrow sees it, for datasets.  Read only by convention."""

    def path(self, uri: str) -> str:
        """`uri` as `filesystem` names it."""


def open_store(uri: str, s3: S3Spec) -> Store:
    """The store that `uri` belongs to: S3 for `s3://`, else this machine's files.

    Nothing is contacted yet.
    """
    if uri.startswith("s3://"):
        from pipeline.storage.s3 import S3Store

        return S3Store(s3)
    from pipeline.storage.local import LocalStore

    return LocalStore()


def probe(store: Store, prefix: str) -> bool:
    """Whether the store honours a conditional put, found by trying it on `_run/probe` under the prefix.

    It also shows that the prefix can be written to.  Where the answer is False a run still loses and doubles nothing,
    because parts have deterministic names, but two attempts at one shard may overwrite each other.

    Raises:
        StorageError: see `Store`.
    """
    from pipeline.storage.layout import RunLayout

    uri = RunLayout(prefix).probe
    first, second = secrets.token_hex(8), secrets.token_hex(8)
    store.put_if_absent(uri, first.encode(), attempt=first)
    return not store.put_if_absent(uri, second.encode(), attempt=second)
