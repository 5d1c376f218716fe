"""Reading documents through faults: a damaged document never looks like a damaged store, nor the other way round."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.s3 import S3Server
from pipeline.core.document import Piece
from pipeline.core.errors import StorageError, UnreadableError
from pipeline.core.sections import InputSpec, LimitsSpec, S3Spec
from pipeline.storage.documents import DocumentReader, list_input, read_piece
from pipeline.storage.s3 import Patience, S3Store
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.s3

ROWS = 1000


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
def direct(s3_server: S3Server, s3_bucket: str) -> S3Store:
    return S3Store(S3Spec(endpoint_url=s3_server.endpoint_url))


@pytest.fixture
def store(proxy: FaultProxy, s3_bucket: str) -> S3Store:
    store = S3Store(S3Spec(endpoint_url=proxy.endpoint_url), patience=Patience(first_s=3, total_s=3))
    store.list(s3_bucket)
    return store


@pytest.fixture
def spec(s3_bucket: str, direct: S3Store) -> InputSpec:
    """An input of many pages, too large for one read."""
    table = pa.table(
        {"document_id": [f"d{n}" for n in range(ROWS)], "text": [f"{n} ".ljust(20_000, "x") for n in range(ROWS)]}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False, write_page_checksum=True, write_batch_size=16)
    spec = InputSpec(uri=s3_bucket.rstrip("/") + "/docs/")
    direct.put(f"{spec.uri}a.parquet", sink.getvalue().to_pybytes())
    return spec


def _piece(store: S3Store, spec: InputSpec) -> Piece:
    [item] = list_input(store, spec)
    assert item.unreadable is None
    return Piece(item.uri, item.etag, 0, 0, item.rows)


@pytest.mark.parametrize("fault", ["503", "reset_before", "reset_after", "truncate"])
def test_reading_a_row_group_survives_faults(proxy: FaultProxy, store: S3Store, spec: InputSpec, fault) -> None:
    piece = _piece(store, spec)
    proxy.add(fault, "GET", r"a\.parquet", count=2, skip=2)
    ids = [document.document_id for document in read_piece(store, piece, spec, LimitsSpec())]
    assert ids == [f"d{n}" for n in range(ROWS)]
    assert proxy.faults() == [fault] * 2


@pytest.mark.parametrize("requests", [1, 3])
def test_a_store_that_gives_out_is_a_storage_error_and_reading_can_go_on_later(
    proxy: FaultProxy, store: S3Store, spec: InputSpec, requests: int
) -> None:
    piece = _piece(store, spec)
    reader = DocumentReader(store, spec, LimitsSpec())
    rule = proxy.add("503", "GET", r"a\.parquet", count=None, skip=requests)
    seen = 0
    with pytest.raises(StorageError) as caught:  # noqa: PT012  (the point is how far it came)
        for _ in reader.read(piece):
            seen += 1
    assert not isinstance(caught.value, UnreadableError)
    assert seen < ROWS
    proxy.rules.remove(rule)
    assert len(list(reader.read(piece))) == ROWS


def test_a_store_that_gives_out_while_listing_is_not_an_unreadable_object(
    proxy: FaultProxy, store: S3Store, spec: InputSpec
) -> None:
    proxy.add("503", "GET", r"a\.parquet", count=None)
    with pytest.raises(StorageError):
        list_input(store, spec)


def test_a_byte_that_flips_on_the_way_is_found(proxy: FaultProxy, store: S3Store, spec: InputSpec) -> None:
    piece = _piece(store, spec)
    proxy.add("corrupt", "GET", r"a\.parquet", skip=3)
    with pytest.raises(UnreadableError, match="damaged"):
        list(read_piece(store, piece, spec, LimitsSpec()))
    assert proxy.faults() == ["corrupt"]


def test_an_object_replaced_while_it_is_read_is_unreadable(direct: S3Store, spec: InputSpec) -> None:
    piece = _piece(direct, spec)
    documents = read_piece(direct, piece, spec, LimitsSpec())
    assert next(documents).document_id == "d0"
    direct.put(piece.uri, b"replaced")
    with pytest.raises(UnreadableError, match="changed"):
        list(documents)
