"""Whole runs: real Ray, real S3, real guides; only the model is played."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from demo.s3 import S3Server
from pipeline.core.errors import FingerprintError
from pipeline.report.model import Report
from pipeline.run.job import run
from pipeline.run.plan import standing_plan
from pipeline.run.progress import Snapshot
from pipeline.run.verify import verify
from pipeline.storage.layout import RunLayout
from tests.integration.scripted import ROOT, assert_each_once, documents, job, put_parquet, store_of

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

IDS = [row["document_id"] for row in documents(200)]


@pytest.fixture
def prefix(s3_bucket: str, s3_server: S3Server) -> str:
    store = store_of(s3_bucket, s3_server.endpoint_url)
    put_parquet(store, f"{s3_bucket}in/a.parquet", documents(130))
    put_parquet(store, f"{s3_bucket}in/b.parquet", documents(70, start=130), row_group_rows=7)
    return s3_bucket


def _events(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def _assert_timed(report: Report) -> None:
    """Every phase that the scripted engine has is measured for each document, by parts and submission."""
    phases = {phase.phase: phase for phase in report.phases}
    for name in ("prompt", "mask", "parse", "encode", "put"):
        assert phases[name].documents == 200, name
    assert (phases["queue"].documents, phases["queue"].ms_per_document) == (0, None)
    engine = report.engine
    assert engine.documents == 200
    assert 0 < engine.busy_s <= engine.request_wall_s < engine.wall_s


def test_a_run_gives_every_document_a_record_and_a_second_one_finds_nothing_to_do(
    prefix: str, s3_server: S3Server, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    spec = job(prefix, s3_server.endpoint_url, model={"engine": {"log": str(log)}})
    snapshots: list[Snapshot] = []
    result = run(spec, base=ROOT, progress=snapshots.append)
    assert result.error is None
    assert result.exit_code == 0
    rows = assert_each_once(spec, IDS)
    assert {row["_status"] for row in rows} == {"valid"}
    assert all(row["number"] == int(row["_document_id"][1:]) for row in rows)
    assert result.report is not None
    assert result.report.balance.outcomes.valid == 200
    assert snapshots[-1].documents == 200
    told = [snapshot.documents + snapshot.documents_working for snapshot in snapshots]
    assert told == sorted(told)
    _assert_timed(result.report)
    requests = len(_events(log))
    store = store_of(prefix, s3_server.endpoint_url)
    etags = {item.uri: item.etag for item in store.list(f"{prefix}run/parts/")}
    # As if the first driver had died between the plan and the spec.
    bucket = prefix.removeprefix("s3://").rstrip("/")
    s3_server.client().delete_object(Bucket=bucket, Key="run/_run/spec.json")
    again = run(spec, base=ROOT)
    assert again.exit_code == 0
    assert store.head(f"{prefix}run/_run/spec.json") is not None
    assert len(_events(log)) == requests
    assert {item.uri: item.etag for item in store.list(f"{prefix}run/parts/")} == etags
    # Read from where the endpoint that the run had is not to be reached, or none was written down.
    stored = json.loads(store.get(f"{prefix}run/_run/spec.json"))
    stored["s3"]["endpoint_url"] = "http://127.0.0.1:9"
    store.put(f"{prefix}run/_run/spec.json", json.dumps(stored).encode())
    assert verify(spec.output.uri, spec.s3).is_sound


def test_a_killed_worker_is_replaced_and_a_document_that_kills_each_is_isolated_and_nothing_lost_or_doubled(
    cluster: Cluster, s3_bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    rows = documents(40)
    put_parquet(store_of(s3_bucket, s3_server.endpoint_url), f"{s3_bucket}in/a.parquet", rows)
    spec = job(
        s3_bucket,
        s3_server.endpoint_url,
        # Few pieces to find the document in, each of which takes a worker.
        input={"shard_rows": 4},
        # In the shard that comes last, since its text is short: long before it the first worker is killed in others.
        model={"engine": {"log": str(log), "token_s": 0.01, "crash_on": "note 5 "}},
    )

    def kill_one() -> None:
        while not log.exists() or len(_events(log)) < 10:
            time.sleep(0.05)
        os.kill(int(str(_events(log)[0]["pid"])), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    result = run(spec, base=ROOT, address=cluster.address)
    killer.join()
    assert result.exit_code == 0
    stored = assert_each_once(spec, [row["document_id"] for row in rows])
    lost = [row for row in stored if row["_status"] != "valid"]
    assert [(row["_document_id"], row["_status"], row["_cause"]) for row in lost] == [
        ("d00005", "failed", "engine_crash")
    ]
    events = _events(log)
    crashed = {event["pid"] for event in events if event["event"] == "crash"}
    assert events[0]["pid"] not in crashed
    assert len(crashed) > 1


def test_another_job_under_the_same_prefix_is_refused_and_told_why(
    cluster: Cluster, prefix: str, s3_server: S3Server
) -> None:
    first = job(prefix, s3_server.endpoint_url)
    assert run(first, base=ROOT, address=cluster.address).exit_code == 0
    with pytest.raises(FingerprintError, match=r"decoding\.max_tokens: 100 there, 120 here"):
        run(job(prefix, s3_server.endpoint_url, decoding={"max_tokens": 120}), base=ROOT)
    store = store_of(prefix, s3_server.endpoint_url)
    put_parquet(store, f"{prefix}in/b.parquet", documents(70, start=400))
    with pytest.raises(FingerprintError, match=r"replaced since: s3://.*b\.parquet"):
        run(first, base=ROOT)


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pipeline")


def test_the_shard_with_the_most_text_is_handed_out_first(
    cluster: Cluster, s3_bucket: str, s3_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when shards are handed out as the plan has them."""
    store = store_of(s3_bucket, s3_server.endpoint_url)
    rows = documents(60)
    for row in rows[40:]:
        row["text"] += f" {row['document_id']} and more of it" * 20
    put_parquet(store, f"{s3_bucket}in/a.parquet", rows)
    spec = job(s3_bucket, s3_server.endpoint_url, cluster={"engines": 1})
    with caplog.at_level(logging.INFO, "pipeline.run.driver"):
        assert run(spec, base=ROOT, address=cluster.address).exit_code == 0
    assert_each_once(spec, [row["document_id"] for row in rows])
    plan = standing_plan(store, RunLayout(spec.output.uri)).plan
    started = [message for message in caplog.messages if " started " in message]
    assert f"shard={plan.shards[2].shard_id} " in started[0]
