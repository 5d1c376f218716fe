"""A store in memory, for tests of policy and of crashes: it can fail before or after a call is applied."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Literal

import pyarrow.fs
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.core.errors import StorageError, StorageNotFoundError, UnreadableError
from pipeline.core.globs import glob_matcher, is_glob
from pipeline.storage.store import ObjectInfo

__all__ = ["MemoryStore", "Trouble"]

Verb = Literal["list", "head", "get", "open_input", "put_if_absent", "put"]


@dataclass(slots=True)
class Trouble:
    """Fails the next `count` calls of a verb whose URI holds a match of `pattern`.

    `when` is "before" (nothing was applied), "after" (applied, and the caller never hears of it), or "lost" (applied,
    the answer lost, and the store's own retry finds the object: what S3Store lives through).
    """

    verb: Verb
    pattern: str = ""
    count: int = 1
    when: Literal["before", "after", "lost"] = "before"
    error: Callable[[], BaseException] = lambda: StorageError("the store gave out")

    def takes(self, verb: Verb, uri: str) -> bool:
        if self.count < 1 or verb != self.verb or not re.search(self.pattern, uri):
            return False
        self.count -= 1
        return True


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    attempt: str | None

    @property
    def etag(self) -> str:
        return hashlib.md5(self.data, usedforsecurity=False).hexdigest()


class MemoryStore:
    """`Store` over a dict.  `calls` lists every (verb, uri) in order.

    Args:
        has_conditions: False plays a server that ignores `If-None-Match`.
    """

    def __init__(self, *, has_conditions: bool = True) -> None:
        self.objects: dict[str, _Object] = {}
        self.troubles: list[Trouble] = []
        self.calls: list[tuple[Verb, str]] = []
        self._has_conditions = has_conditions

    def list_prefix(self, prefix: str) -> list[ObjectInfo]:
        self._enter("list", prefix)
        return self._under(prefix)

    def list(self, uri: str) -> list[ObjectInfo]:
        self._enter("list", uri)
        if uri in self.objects:
            found = [uri]
        elif is_glob(uri):
            matches = glob_matcher(uri)
            found = sorted(name for name in self.objects if matches(name))
        else:
            return self._under(uri.rstrip("/") + "/")
        return [self._info(name) for name in found]

    def head(self, uri: str) -> ObjectInfo | None:
        self._enter("head", uri)
        return self._info(uri) if uri in self.objects else None

    def get(self, uri: str) -> bytes:
        self._enter("get", uri)
        return self._object(uri).data

    def open_input(self, uri: str, *, etag: str | None = None) -> BinaryIO:
        self._enter("open_input", uri)
        if etag is not None and (uri not in self.objects or self.objects[uri].etag != etag):
            raise UnreadableError(f"{uri} has changed or vanished since the run was planned")
        return io.BytesIO(self._object(uri).data)

    def put_if_absent(self, uri: str, data: bytes, *, attempt: str) -> bool:
        after = self._enter("put_if_absent", uri)
        if uri not in self.objects or not self._has_conditions:
            self.objects[uri] = _Object(data, attempt)
        if after is not None and after.when == "after":
            raise after.error()
        return self.objects[uri].attempt == attempt

    def put(self, uri: str, data: bytes) -> None:
        after = self._enter("put", uri)
        self.objects[uri] = _Object(data, None)
        if after is not None and after.when == "after":
            raise after.error()

    def filesystem(self) -> pyarrow.fs.FileSystem:
        memory = MemoryFileSystem(skip_instance_cache=True)
        memory.store = {}
        for uri, item in self.objects.items():
            memory.pipe_file("/" + self.path(uri), item.data)
        return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(memory))

    def path(self, uri: str) -> str:
        return uri.removeprefix("s3://").lstrip("/")

    def _enter(self, verb: Verb, uri: str) -> Trouble | None:
        """Count the call; raise a trouble of "before", and give back one that strikes later."""
        self.calls.append((verb, uri))
        for trouble in self.troubles:
            if trouble.takes(verb, uri):
                if trouble.when == "before":
                    raise trouble.error()
                return trouble
        return None

    def _under(self, prefix: str) -> list[ObjectInfo]:
        return [self._info(name) for name in sorted(self.objects) if name.startswith(prefix)]

    def _object(self, uri: str) -> _Object:
        if uri not in self.objects:
            raise StorageNotFoundError(f"{uri} does not exist")
        return self.objects[uri]

    def _info(self, uri: str) -> ObjectInfo:
        item = self._object(uri)
        return ObjectInfo(uri, len(item.data), item.etag)
