"""The contract of `store_contract`, kept by each store."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pipeline.core.sections import S3Spec
from pipeline.storage.local import LocalStore
from pipeline.storage.s3 import S3Store
from pipeline.storage.store import Store, open_store, probe
from tests.contract.store_contract import StoreContract
from tests.stores import MemoryStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()

    @pytest.fixture
    def prefix(self) -> str:
        return "s3://memory/run/"


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return open_store("/anywhere", S3Spec())

    @pytest.fixture
    def prefix(self, tmp_path: Path) -> str:
        return f"{tmp_path}/"


class TestLocalStoreByFileUri(TestLocalStore):
    @pytest.fixture
    def prefix(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/"


@pytest.mark.s3
class TestS3Store(StoreContract):
    @pytest.fixture
    def store(self, s3_bucket: str) -> Store:
        return open_store(s3_bucket, S3Spec())

    @pytest.fixture
    def prefix(self, s3_bucket: str) -> str:
        return s3_bucket.rstrip("/") + "/"


def test_a_uri_decides_which_store_it_belongs_to(tmp_path: Path) -> None:
    assert isinstance(open_store("s3://bucket/prefix/", S3Spec()), S3Store)
    assert isinstance(open_store(str(tmp_path), S3Spec()), LocalStore)
    assert isinstance(open_store(f"file://{tmp_path}", S3Spec()), LocalStore)


def test_an_s3_store_is_never_pickled() -> None:
    with pytest.raises(TypeError, match="open_store"):
        pickle.dumps(open_store("s3://bucket/", S3Spec()))


def test_a_server_that_ignores_the_condition_is_found_out() -> None:
    assert not probe(MemoryStore(has_conditions=False), "s3://memory/run/")
