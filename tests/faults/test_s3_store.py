"""What the S3 store makes of each fault between it and the server."""

from __future__ import annotations

import logging
import pickle
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from demo.s3 import S3Server
from pipeline.core.errors import StorageAccessError, StorageError, StorageNotFoundError, UnreadableError
from pipeline.core.sections import S3Spec
from pipeline.storage.s3 import Patience, S3Store
from pipeline.storage.store import probe
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.s3


@pytest.fixture(scope="module")
def s3_server() -> Iterator[S3Server]:
    """A server of its own: uploads that other tests cut or hang keep theirs busy for a while."""
    with S3Server() as server:
        yield server


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.endpoint_url) as proxy:
        yield proxy


@pytest.fixture
def prefix(s3_bucket: str) -> str:
    return s3_bucket.rstrip("/") + "/"


@pytest.fixture
def store(proxy: FaultProxy, prefix: str) -> S3Store:
    """Through the proxy, and with the endpoint already known to answer."""
    store = S3Store(S3Spec(endpoint_url=proxy.endpoint_url), patience=Patience(first_s=5, total_s=5))
    store.list(prefix)
    proxy.log.clear()
    return store


@pytest.fixture
def direct(s3_server: S3Server, s3_bucket: str) -> S3Store:
    return S3Store(S3Spec(endpoint_url=s3_server.endpoint_url))


@pytest.mark.parametrize("fault", ["503", "500", "reset_before", "reset_after", "error200", "delay"])
def test_a_put_survives_it_and_is_ours(proxy: FaultProxy, store: S3Store, direct: S3Store, prefix: str, fault) -> None:
    proxy.add(fault, "PUT")
    assert store.put_if_absent(prefix + "part", b"x" * 5000, attempt="one")
    assert proxy.faults("PUT") == [fault]
    assert direct.get(prefix + "part") == b"x" * 5000
    assert not direct.put_if_absent(prefix + "part", b"y", attempt="two")


def test_a_lost_answer_is_told_from_a_lost_race(proxy: FaultProxy, store: S3Store, prefix: str) -> None:
    proxy.add("reset_after", "PUT", "lost")
    assert store.put_if_absent(prefix + "lost", b"ours", attempt="one")
    proxy.add("reset_after", "PUT", "race")
    assert store.put_if_absent(prefix + "race", b"theirs", attempt="two")
    assert not store.put_if_absent(prefix + "race", b"ours", attempt="one")
    assert store.get(prefix + "race") == b"theirs"


def test_a_conflict_is_retried_and_never_taken_for_exists(proxy: FaultProxy, store: S3Store, prefix: str) -> None:
    """Fails when a conflict is taken for "exists": what stands is then looked at."""
    proxy.add("409", "PUT", count=3)
    assert store.put_if_absent(prefix + "part", b"ours", attempt="one")
    assert [method for method, _, fault in proxy.log] == ["PUT"] * 4


@pytest.mark.parametrize(
    ("method", "fault"),
    [("GET", "truncate")]
    + [(method, fault) for method in ("GET", "HEAD") for fault in ("503", "500", "reset_before", "reset_after")],
)
def test_reading_survives_it(proxy: FaultProxy, store: S3Store, direct: S3Store, prefix: str, method, fault) -> None:
    data = bytes(range(256)) * 100
    direct.put(prefix + "docs/a.bin", data)
    proxy.add(fault, method, count=2)
    [info] = store.list(prefix + "docs/")
    assert store.get(info.uri) == data
    assert proxy.faults(method) == [fault] * 2


def test_a_list_of_many_pages_survives_resets(
    proxy: FaultProxy, store: S3Store, s3_server: S3Server, prefix: str
) -> None:
    put = partial(s3_server.client().put_object, Bucket=prefix.split("/")[2], Body=b"")
    names = [f"many/{number:04d}" for number in range(1100)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: put(Key=name), names))
    proxy.add("reset_after", "GET", "list-type=2", count=1, skip=1)
    assert [info.uri for info in store.list(prefix + "many/")] == [prefix + name for name in names]
    assert proxy.faults() == ["reset_after"]


def test_a_fault_without_end_is_one_clear_retryable_error(proxy: FaultProxy, store: S3Store, prefix: str) -> None:
    proxy.add("503", count=None)
    with pytest.raises(StorageError, match=r"cannot write s3://.*/part: SlowDown") as caught:
        store.put_if_absent(prefix + "part", b"ours", attempt="one")
    assert caught.value.retryable
    assert len(proxy.log) > 2


@pytest.mark.parametrize("fault", ["reset_before", "truncate"])
def test_what_arrow_reads_survives_it_and_ends_in_our_error(
    proxy: FaultProxy, direct: S3Store, prefix: str, fault
) -> None:
    """Fails when Arrow is given the library's own file system, whose errors are of several kinds."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    direct.put(prefix + "a.parquet", sink.getvalue().to_pybytes())
    store = S3Store(S3Spec(endpoint_url=proxy.endpoint_url), patience=Patience(first_s=1, total_s=1))
    filesystem = pickle.loads(pickle.dumps(store.filesystem()))
    dataset = ds.dataset([store.path(prefix + "a.parquet")], filesystem=filesystem, schema=pa.schema({"a": pa.int64()}))
    proxy.add(fault, "GET", count=1)
    assert dataset.to_table()["a"].to_pylist() == [1, 2]
    proxy.add(fault, "GET", count=None)
    with pytest.raises(StorageError, match="cannot read s3://"):
        dataset.to_table()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_a_server_that_falls_silent_is_asked_again(
    proxy: FaultProxy, prefix: str, direct: S3Store, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.storage.s3._READ_S", 0.5)
    store = S3Store(S3Spec(endpoint_url=proxy.endpoint_url))
    direct.put(prefix + "old", b"old")
    proxy.add("hang", method)
    assert store.put_if_absent(prefix + "new", b"new", attempt="one")
    assert store.get(prefix + "old") == b"old"
    assert proxy.faults() == ["hang"]


def test_a_refusal_is_not_retried(proxy: FaultProxy, store: S3Store, prefix: str) -> None:
    proxy.add("403", count=None)
    for call in (
        lambda: store.list(prefix),
        lambda: store.head(prefix + "a"),
        lambda: store.get(prefix + "a"),
        lambda: store.put_if_absent(prefix + "a", b"", attempt="one"),
        lambda: store.put(prefix + "a", b""),
    ):
        proxy.log.clear()
        with pytest.raises(StorageAccessError):
            call()
        assert proxy.faults() == ["403"]


def test_wrong_keys_are_refused_and_not_told(
    s3_server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "pipeline")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    store = S3Store(S3Spec(endpoint_url=s3_server.endpoint_url))
    with pytest.raises(StorageAccessError) as caught:
        probe(store, prefix)
    told = str(caught.value) + caplog.text
    assert "not-the-secret" not in told
    assert s3_server.access_key not in told


def test_no_keys_at_all_are_an_access_error(s3_server: S3Server, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(StorageAccessError, match="NoCredentialsError"):
        S3Store(S3Spec(endpoint_url=s3_server.endpoint_url)).list(prefix)


def test_a_missing_bucket_is_named(direct: S3Store) -> None:
    # Not tried with a put: this server makes a bucket for whoever may make one.
    with pytest.raises(StorageNotFoundError, match="no-such-bucket-here"):
        direct.list("s3://no-such-bucket-here/docs/")
    with pytest.raises(StorageNotFoundError, match="no-such-bucket-here"):
        direct.get("s3://no-such-bucket-here/a")


def test_a_name_that_no_bucket_can_have_is_not_found(direct: S3Store) -> None:
    with pytest.raises(StorageNotFoundError):
        direct.list("s3://Not A Bucket!/docs/")


def test_an_endpoint_that_refuses_connections_is_one_error(s3_bucket: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        store = S3Store(S3Spec(endpoint_url=endpoint), patience=Patience(first_s=1, total_s=600))
        with pytest.raises(StorageError, match=r"EndpointConnectionError; http://127.* has never answered"):
            store.list(s3_bucket)


def test_an_object_that_changes_while_it_is_read_is_unreadable(store: S3Store, direct: S3Store, prefix: str) -> None:
    direct.put(prefix + "a", b"first")
    info = store.head(prefix + "a")
    assert info is not None
    with store.open_input(prefix + "a", etag=info.etag) as file:
        assert file.read(2) == b"fi"
        direct.put(prefix + "a", b"other")
        with pytest.raises(UnreadableError, match="changed"):
            file.read()


class TestMultipart:
    """Above twice the chunk size, s3fs makes the object of parts; the last request carries the condition."""

    @pytest.fixture(autouse=True)
    def _small_chunks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("pipeline.storage.s3._CHUNK_BYTES", 5 * 1024 * 1024)

    data = b"0123456789abcdef" * (11 * 1024 * 1024 // 16)

    def test_it_is_conditional(self, store: S3Store, prefix: str) -> None:
        assert store.put_if_absent(prefix + "big", self.data, attempt="one")
        assert not store.put_if_absent(prefix + "big", self.data[:-1] + b"!", attempt="two")
        assert store.put_if_absent(prefix + "big", self.data, attempt="one")
        assert store.get(prefix + "big") == self.data

    @pytest.mark.parametrize("fault", ["503", "reset_before", "reset_after", "409", "error200"])
    def test_its_completion_survives(self, proxy: FaultProxy, store: S3Store, prefix: str, fault) -> None:
        proxy.add(fault, "POST", "uploadId")
        assert store.put_if_absent(prefix + "big", self.data, attempt="one")
        assert proxy.faults("POST") == [fault]
        assert store.get(prefix + "big") == self.data
        assert [info.uri for info in store.list(prefix)] == [prefix + "big"]

    def test_an_upload_that_completed_unheard_and_cannot_be_aborted_is_ours(
        self, proxy: FaultProxy, store: S3Store, prefix: str
    ) -> None:
        proxy.add("reset_after", "POST", "uploadId")
        proxy.add("404", "DELETE", "uploadId")
        assert store.put_if_absent(prefix + "big", self.data, attempt="one")
        assert proxy.faults() == ["reset_after", "404"]
