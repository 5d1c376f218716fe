"""Runs that are stopped, killed, or cannot start: what is committed stays, and the next submission goes on from it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from demo.s3 import S3Server
from pipeline.core.spec import JobSpec
from pipeline.run.job import run
from pipeline.run.verify import verify
from tests.faults.driver import start_driver
from tests.faults.proxy import FaultProxy
from tests.integration.scripted import ROOT, assert_each_once, documents, job, put_parquet, store_of

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

IDS = [row["document_id"] for row in documents(120)]


@pytest.fixture
def prefix(s3_bucket: str, s3_server: S3Server) -> str:
    put_parquet(store_of(s3_bucket, s3_server.endpoint_url), f"{s3_bucket}in/a.parquet", documents(120))
    return s3_bucket


def _wait_for_parts(spec: JobSpec, count: int, process: subprocess.Popen[str]) -> None:
    """Returns as soon as there are so many parts."""
    store = store_of(spec.output.uri, spec.s3.endpoint_url)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if len(store.list(f"{spec.output.uri}parts/")) >= count:
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"no parts appeared: {process.communicate()[1]}")


def _requests(log: Path) -> list[str]:
    events: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    return [event["request_id"] for event in events if event["event"] == "request"]


def test_a_driver_that_is_stopped_is_resumed_without_decoding_a_finished_shard_again(
    cluster: Cluster, prefix: str, s3_server: S3Server, tmp_path: Path
) -> None:
    """The driver has a cluster of its own, which ends with it; another goes on."""
    log = tmp_path / "engine.log"
    spec = job(prefix, s3_server.endpoint_url, model={"engine": {"log": str(log), "token_s": 0.02}})
    process = start_driver(spec)
    _wait_for_parts(spec, 1, process)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=180)
    assert process.returncode == 130, said
    store = store_of(prefix, s3_server.endpoint_url)
    before = {item.uri: item.etag for item in store.list(f"{prefix}run/parts/")}
    already = len(_requests(log))
    assert run(spec, base=ROOT, address=cluster.address).exit_code == 0
    assert_each_once(spec, IDS)
    after = {item.uri: item.etag for item in store.list(f"{prefix}run/parts/")}
    assert before.items() <= after.items()
    finished = {uri.rpartition("part-")[2].removesuffix(".parquet") for uri in before}
    assert not [name for name in _requests(log)[already:] if name.split(".")[1] in finished]
    found = verify(spec.output.uri, spec.s3)
    assert found.is_sound, found.problems
    assert found.documents_found == 120


def test_two_drivers_at_once_make_one_set_of_parts(cluster: Cluster, prefix: str, s3_server: S3Server) -> None:
    spec = job(prefix, s3_server.endpoint_url, cluster={"engines": 1})
    drivers = [start_driver(spec, address=cluster.address) for _ in range(2)]
    for process in drivers:
        _, said = process.communicate(timeout=180)
        assert process.returncode == 0, said
    assert_each_once(spec, IDS)
    assert verify(spec.output.uri, spec.s3).is_sound


def test_two_jobs_that_take_a_prefix_at_the_same_moment_leave_the_run_of_one(
    cluster: Cluster, prefix: str, s3_server: S3Server
) -> None:
    with FaultProxy(s3_server.endpoint_url) as proxy:
        proxy.add("404", "HEAD", "plan.json", count=2)  # neither finds a plan when it looks for one
        specs = [
            job(prefix, proxy.endpoint_url, cluster={"engines": 1}, input={"shard_rows": rows}) for rows in (20, 30)
        ]
        drivers = [start_driver(spec, address=cluster.address) for spec in specs]
        said = [process.communicate(timeout=180)[1] for process in drivers]
        assert proxy.faults() == ["404", "404"]
        codes = [process.returncode for process in drivers]
        assert codes.count(0) == 1, said
        winner = codes.index(0)
        assert "was taken by another run at this moment" in said[1 - winner]
        assert_each_once(specs[winner], IDS)
        assert verify(specs[winner].output.uri, specs[winner].s3).is_sound


def test_a_cluster_too_small_for_one_engine_is_said_with_what_is_missing(prefix: str, s3_server: S3Server) -> None:
    result = run(job(prefix, s3_server.endpoint_url, cluster={"gpus_per_engine": 1}), base=ROOT)
    assert result.exit_code == 3
    assert "gpus_per_engine: 0" in str(result.error)


def test_an_engine_that_falls_silent_is_replaced_and_its_document_isolated(
    cluster: Cluster, prefix: str, s3_server: S3Server
) -> None:
    spec = job(
        prefix,
        s3_server.endpoint_url,
        # Few pieces to find the document in, each of which takes a silence; a slow worker is not silent so long.
        input={"shard_rows": 2},
        model={"engine": {"freeze_on": "note 7 "}},
        limits={"engine_silence_s": 6},
    )
    result = run(spec, base=ROOT, address=cluster.address)
    assert result.exit_code == 0
    rows = assert_each_once(spec, IDS)
    assert [row["_document_id"] for row in rows if row["_cause"] == "engine_crash"] == ["d00007"]
    assert sum(row["_status"] == "valid" for row in rows) == 119
