"""Whole runs whose store fails in the middle of an upload, for ever, or for want of rights (faults 2, 7, 8, 9, 15)."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

import pipeline.storage.s3
from demo.s3 import S3Server
from pipeline.core.errors import StorageAccessError, StorageError, StorageNotFoundError
from pipeline.core.spec import JobSpec
from pipeline.run.job import run
from pipeline.run.verify import verify
from pipeline.storage.s3 import Patience
from tests.faults.engines import impatient
from tests.faults.proxy import Fault, FaultProxy, Rule
from tests.integration.scripted import ROOT, assert_each_once, documents, job, put_parquet, store_of

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

COUNT = 100
IDS = [row["document_id"] for row in documents(COUNT)]
PARTS = "parts/"


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.endpoint_url) as proxy:
        yield proxy


@pytest.fixture
def prefix(s3_bucket: str, s3_server: S3Server) -> str:
    put_parquet(store_of(s3_bucket, s3_server.endpoint_url), f"{s3_bucket}in/a.parquet", documents(COUNT))
    return s3_bucket


class _Killer(threading.Thread):
    """Has the proxy stop a put of the one worker in the middle, kills that worker, and does so with the next fault."""

    def __init__(self, proxy: FaultProxy, log: Path, faults: list[Fault]) -> None:
        super().__init__(daemon=True)
        self._proxy, self._log, self._faults = proxy, log, faults
        self.killed: list[int] = []
        self.start()

    def run(self) -> None:
        for fault in self._faults:
            self._proxy.rules.insert(0, Rule(fault, "PUT", PARTS))
            while fault not in self._proxy.held:
                time.sleep(0.02)
            self.killed.append(json.loads(self._log.read_text().splitlines()[-1])["pid"])
            os.kill(self.killed[-1], signal.SIGKILL)


def test_a_worker_that_is_killed_while_it_uploads_or_right_after_is_counted_once(
    cluster: Cluster, prefix: str, s3_server: S3Server, proxy: FaultProxy, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    spec = job(prefix, proxy.endpoint_url, model={"engine": {"log": str(log)}}, cluster={"engines": 1})
    killing: list[Fault] = ["hang_after", "hang"]
    others: list[Fault] = ["cut_upload", "error200", "409", "reset_after"]
    proxy.rules = [Rule(fault, "PUT", PARTS, skip=number) for number, fault in enumerate(others)]
    killer = _Killer(proxy, log, killing)
    result = run(spec, base=ROOT, address=cluster.address)
    assert result.error is None
    assert len(set(killer.killed)) == 2
    assert {*killing, *others} == set(proxy.faults("PUT"))
    assert {row["_status"] for row in assert_each_once(spec, IDS)} == {"valid"}
    (put,) = [path for _, path, fault in proxy.log if fault == "hang_after"]
    shard_id = put.partition("part-")[2].partition(".")[0]
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {event["pid"] for event in events if event["request_id"].split(".")[1] == shard_id} == {killer.killed[0]}
    found = verify(spec.output.uri, _direct(spec, s3_server).s3)
    assert found.is_sound, found.problems


@pytest.mark.parametrize(("fault", "method"), [("503", ""), ("expired", "PUT")])
def test_a_store_that_refuses_from_some_point_on_leaves_a_run_that_can_be_resumed(
    cluster: Cluster,
    prefix: str,
    s3_server: S3Server,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
    fault: Fault,
    method: str,
) -> None:
    monkeypatch.setattr(pipeline.storage.s3, "Patience", partial(Patience, first_s=2.0, total_s=2.0))
    spec = job(
        prefix,
        proxy.endpoint_url,
        limits={"attempts_per_shard": 1},
        cluster={"engines": 1},
        model={"engine": {"token_s": 0.005}},
    )

    proxy.rules = [Rule(fault, method, count=None, after_put=PARTS)]
    result = run(spec, base=ROOT, address=cluster.address, engine_factory=impatient)
    assert result.exit_code == 3
    assert isinstance(result.error, StorageError)
    store = store_of(prefix, s3_server.endpoint_url)
    before = {item.uri: item.etag for item in store.list(f"{prefix}run/{PARTS}")}
    assert 0 < len(before) < COUNT // 20
    proxy.rules = []
    again = run(spec, base=ROOT, address=cluster.address)
    assert again.exit_code == 0
    assert before.items() <= {item.uri: item.etag for item in store.list(f"{prefix}run/{PARTS}")}.items()
    assert_each_once(spec, IDS)


@pytest.mark.parametrize(
    ("fault", "method", "error"),
    [
        ("403", "PUT", StorageAccessError),
        ("expired", "", StorageAccessError),
        ("no_bucket", "PUT", StorageNotFoundError),
    ],
)
def test_a_job_that_may_not_write_or_has_no_bucket_is_refused_before_a_cluster_is_looked_for(
    prefix: str, proxy: FaultProxy, fault: Fault, method: str, error: type[StorageError]
) -> None:
    proxy.add(fault, method, count=None)
    with pytest.raises(error) as caught:
        run(job(prefix, proxy.endpoint_url), base=ROOT, address="127.0.0.1:1")
    assert caught.value.exit_code == 2


def _direct(spec: JobSpec, server: S3Server) -> JobSpec:
    return spec.model_copy(update={"s3": spec.s3.model_copy(update={"endpoint_url": server.endpoint_url})})
