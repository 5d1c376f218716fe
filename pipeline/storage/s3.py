"""The store of S3 and of servers that speak its protocol: the only module that talks to s3fs.

Retries live here alone (those of s3fs and botocore are off), so that a call's patience is known, and so that "exists"
is never taken at its word: a lost answer makes the retry of our own put collide with our own object.
"""

from __future__ import annotations

import http.client
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Never, TypeVar

import pyarrow as pa
import pyarrow.fs
from s3fs import S3FileSystem

from pipeline.core.errors import StorageAccessError, StorageError, StorageNotFoundError, UnreadableError
from pipeline.core.globs import glob_matcher, glob_root, is_glob
from pipeline.core.sections import S3Spec
from pipeline.storage.ranged import ranged_input
from pipeline.storage.s3_faults import FOREIGN, Fault, classify, response_of
from pipeline.storage.store import ObjectInfo

__all__ = ["Patience", "S3Store"]

logger = logging.getLogger(__name__)
T = TypeVar("T")

_CONNECT_S = 3.0
_READ_S = 15.0
"""Silence on a connection that is taken for a lost answer."""
_SLOWEST_BYTES_PER_S = 256 * 1024
_CONNECTIONS = 32
_UNPROVEN_PUTS = 5
_CHUNK_BYTES = 128 * 1024 * 1024
"""s3fs sends one PUT below twice this, and a multipart upload of chunks of this above; both are conditional."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long one call is retried, in seconds."""

    first_s: float = 9.0
    """Until the endpoint has answered anything: a wrong address should not cost a minute."""
    total_s: float = 60.0


class _PreconditionError(StorageError):
    """The server refused a conditional request; callers say what that means."""


class S3Store:
    """Objects of S3.  URIs are `s3://bucket/key`; credentials come from the environment, a role or a profile.

    Threads may share one; processes may not (see `Store`).
    """

    def __init__(self, s3: S3Spec, *, patience: Patience | None = None) -> None:
        self._spec = s3
        self._patience = Patience() if patience is None else patience
        self._has_answered = False
        self._fs = _file_system(s3)
        self._fs.retries = 1

    def __reduce__(self) -> Never:
        raise TypeError("a store is not pickled; call open_store in the process that uses it")

    def list_prefix(self, prefix: str) -> list[ObjectInfo]:
        return list(self._listed(*_split(prefix)))

    def list(self, uri: str) -> list[ObjectInfo]:
        bucket, key = _split(uri)
        if is_glob(key):
            matches = glob_matcher(key)
            return [info for info in self._listed(bucket, glob_root(key)) if matches(_split(info.uri)[1])]
        if key and not key.endswith("/"):
            exact = self.head(uri)
            if exact is not None:
                return [exact]
            uri += "/"
        return self.list_prefix(uri)

    def _listed(self, bucket: str, prefix: str) -> Iterator[ObjectInfo]:
        """Objects whose key starts with `prefix`, as S3 orders them; markers of folders are left out."""
        uri = f"s3://{bucket}/{prefix}"
        more: dict[str, str] = {}
        while True:
            page = self._call(
                "list", uri, partial(self._fs.call_s3, "list_objects_v2", Bucket=bucket, Prefix=prefix, **more)
            )
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):
                    yield ObjectInfo(f"s3://{bucket}/{item['Key']}", item["Size"], item["ETag"].strip('"'))
            if not page.get("IsTruncated"):
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def head(self, uri: str) -> ObjectInfo | None:
        answer = self._headers(uri)
        return None if answer is None else ObjectInfo(uri, answer["ContentLength"], answer["ETag"].strip('"'))

    def _headers(self, uri: str) -> dict[str, Any] | None:
        bucket, key = _split(uri)
        try:
            answer: dict[str, Any] = self._call(
                "look at", uri, lambda: self._fs.call_s3("head_object", Bucket=bucket, Key=key)
            )
        except StorageNotFoundError:
            return None
        return answer

    def get(self, uri: str) -> bytes:
        with self.open_input(uri) as file:
            return file.read()

    def open_input(self, uri: str, *, etag: str | None = None) -> BinaryIO:
        try:
            # s3fs makes every read of the file conditional on the ETag that it had here.
            file = self._call("open", uri, lambda: self._fs.open(self.path(uri), "rb", cache_type="none"))
        except StorageNotFoundError as error:
            if etag is None:
                raise
            raise UnreadableError(f"{uri} has vanished since the run was planned") from error
        if etag is not None and file.details["ETag"].strip('"') != etag:
            raise UnreadableError(f"{uri} has changed since the run was planned")
        return ranged_input(file.size, lambda start, stop: self._range(uri, file, start, stop))

    def _range(self, uri: str, file: Any, start: int, stop: int) -> bytes:
        def read() -> bytes:
            file.seek(start)
            data: bytes = file.read(stop - start)
            if len(data) != stop - start:
                raise http.client.IncompleteRead(data, stop - start - len(data))
            return data

        try:
            return self._call("read", uri, read)
        except (_PreconditionError, StorageNotFoundError) as error:
            raise UnreadableError(f"{uri} has changed or vanished while it was read") from error

    def put_if_absent(self, uri: str, data: bytes, *, attempt: str) -> bool:
        for _ in range(_UNPROVEN_PUTS):
            try:
                answer = self._put(uri, data, mode="create", Metadata={"attempt": attempt})
            except _PreconditionError:
                answer = None
            if answer is not None and answer.get("ETag"):
                return True
            # Refused, or an answer that proves nothing (multipart, or a body that is no answer): look at what stands.
            standing = self._headers(uri)
            if standing is not None:
                return bool(standing.get("Metadata", {}).get("attempt") == attempt)
            logger.warning("%s: the put was answered but no object stands; putting it again", uri)
        raise StorageError(f"cannot write {uri}: the store answers, but no object stands")

    def put(self, uri: str, data: bytes) -> None:
        self._put(uri, data, mode="overwrite")

    def _put(self, uri: str, data: bytes, **options: Any) -> dict[str, Any] | None:
        # A put waits for "100 Continue" before it sends, and no timeout of the connection covers that wait.
        most_s = _READ_S + len(data) / _SLOWEST_BYTES_PER_S
        put = partial(self._fs.pipe_file, self.path(uri), data, chunksize=_CHUNK_BYTES, timeout=most_s, **options)
        answer: dict[str, Any] | None = self._call("write", uri, put)
        return answer

    def filesystem(self) -> pyarrow.fs.FileSystem:
        return pyarrow.fs.PyFileSystem(_ArrowHandler(self))

    def path(self, uri: str) -> str:
        return "/".join(_split(uri))

    def _call(self, verb: str, uri: str, call: Callable[[], T]) -> T:
        """What `call` returns, retried while that may help.

        Raises:
            StorageError: or a kind of it, as `_raise` says.
        """
        started = time.monotonic()
        tries = 0
        while True:
            try:
                answer = call()
            except FOREIGN as error:
                fault, code = classify(error)
                self._has_answered = self._has_answered or response_of(error) is not None
                tries += 1
                pause_s = random.uniform(0.5, 1.0) * min(8.0, 0.2 * 2**tries)
                patience_s = self._patience.total_s if self._has_answered else self._patience.first_s
                if fault is not Fault.AGAIN or time.monotonic() - started + pause_s > patience_s:
                    self._raise(fault, f"cannot {verb} {uri}: {code}", error)
                logger.warning("%s %s: %s; retry %d in %.1f s", verb, uri, code, tries, pause_s)
                time.sleep(pause_s)
            else:
                self._has_answered = True
                return answer

    def _raise(self, fault: Fault, message: str, error: Exception) -> Never:
        match fault:
            case Fault.ACCESS:
                raise StorageAccessError(message) from error
            case Fault.MISSING:
                raise StorageNotFoundError(message) from error
            case Fault.PRECONDITION:
                raise _PreconditionError(message) from error
            case Fault.AGAIN if not self._has_answered:
                endpoint = self._spec.endpoint_url or "the endpoint"
                raise StorageError(f"{message}; {endpoint} has never answered") from error
            case Fault.AGAIN | Fault.OTHER:
                raise StorageError(message) from error


_Handler: Any = pyarrow.fs.FSSpecHandler


class _ArrowHandler(_Handler):  # type: ignore[misc]
    """Opens objects for Arrow as the store does, with its retries and its errors; for all else it is s3fs."""

    def __init__(self, store: S3Store) -> None:
        super().__init__(store._fs)
        self._store = store

    def __reduce__(self) -> tuple[Callable[..., _ArrowHandler], tuple[S3Spec, Patience]]:
        return _handler_of, (self._store._spec, self._store._patience)

    def open_input_file(self, path: str) -> pa.PythonFile:
        source: Any = self._store.open_input(f"s3://{path}")
        return pa.PythonFile(source, mode="r")


def _handler_of(s3: S3Spec, patience: Patience) -> _ArrowHandler:
    return _ArrowHandler(S3Store(s3, patience=patience))


def _file_system(s3: S3Spec) -> Any:
    return S3FileSystem(
        anon=False,
        endpoint_url=s3.endpoint_url,
        client_kwargs={} if s3.region is None else {"region_name": s3.region},
        config_kwargs={
            "connect_timeout": _CONNECT_S,
            "read_timeout": _READ_S,
            "max_pool_connections": _CONNECTIONS,
            "retries": {"total_max_attempts": 1, "mode": "standard"},
        },
        use_listings_cache=False,
        skip_instance_cache=True,
    )


def _split(uri: str) -> tuple[str, str]:
    if not uri.startswith("s3://"):
        raise StorageNotFoundError(f"{uri} is not an s3:// URI; one job reads from one kind of store")
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
