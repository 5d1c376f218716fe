"""Whole runs whose machines vanish, freeze, run out of memory, or lose their driver (faults 3, 4, 14)."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private.utils import get_system_memory, get_used_memory
from ray.cluster_utils import Cluster

from demo.s3 import S3Server
from pipeline.core.spec import JobSpec
from pipeline.run.job import run
from pipeline.run.messages import EngineFactory
from pipeline.run.progress import Snapshot
from pipeline.run.verify import verify
from pipeline.storage.store import Store
from tests.faults.driver import start_driver
from tests.faults.engines import BEARABLE, HUNGER_BYTES, gathered, hungry
from tests.integration.scripted import ROOT, assert_each_once, documents, job, put_parquet, store_of
from tests.machines import machines

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

COUNT = 120
TRIES = 3
STRAY_BYTES = 400 * 1024 * 1024
"""So much more or less memory in the hands of others is no trouble."""
IDS = [row["document_id"] for row in documents(COUNT)]


@pytest.fixture
def prefix(s3_bucket: str, s3_server: S3Server) -> str:
    put_parquet(store_of(s3_bucket, s3_server.endpoint_url), f"{s3_bucket}in/a.parquet", documents(COUNT))
    return s3_bucket


def _events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _etags(store: Store, spec: JobSpec) -> dict[str, str]:
    return {item.uri: item.etag for item in store.list(f"{spec.output.uri}parts/")}


def _is_given_up(*, machines_left: int) -> bool:
    """Whether, within three minutes, no more than so many machines are alive in the eyes of the cluster."""
    for _ in range(720):
        if sum(node["Alive"] for node in ray.nodes()) <= machines_left:
            return True
        time.sleep(0.25)
    return False


def _both(folder: Path) -> EngineFactory:
    """Engines that answer nothing until both have work."""
    gate = folder / "gate"
    gate.mkdir()
    return partial(gathered, gate, 2)


def test_the_work_of_a_machine_that_is_taken_away_moves(
    cluster: Cluster, prefix: str, s3_server: S3Server, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    spec = job(
        prefix,
        s3_server.endpoint_url,
        model={"engine": {"log": str(log), "token_s": 0.02}},
        cluster={"gpus_per_engine": 1, "wait_s": 120},
    )
    with machines(cluster, s3_server, 2, num_cpus=1, num_gpus=1) as nodes:

        def take_away(snapshot: Snapshot) -> None:
            if len(_events(log)) > 30 and nodes[0] in cluster.worker_nodes:
                cluster.remove_node(nodes[0], allow_graceful=False)

        result = run(spec, base=ROOT, address=cluster.address, progress=take_away, engine_factory=_both(tmp_path))
        assert nodes[0] not in cluster.worker_nodes
    assert result.error is None
    assert {row["_status"] for row in assert_each_once(spec, IDS)} == {"valid"}


def test_a_machine_that_freezes_and_comes_back_alters_nothing(
    cluster: Cluster, prefix: str, s3_server: S3Server, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    spec = job(
        prefix,
        s3_server.endpoint_url,
        # The two shards of a worker take longer than giving up its machine does: it is then in the middle of one.
        model={"engine": {"log": str(log), "token_s": 0.12}},
        cluster={"gpus_per_engine": 1, "wait_s": 120},
    )
    store = store_of(spec.output.uri, spec.s3.endpoint_url)
    did: list[str] = []
    seen: dict[str, set[str]] = {}
    with machines(cluster, s3_server, 2, num_cpus=1, num_gpus=1) as nodes:
        raylet = nodes[0].all_processes["raylet"][0].process.pid

        def freeze_and_thaw(snapshot: Snapshot) -> None:
            if not did and len(_events(log)) > 16:
                os.kill(raylet, signal.SIGSTOP)
                did.append("frozen")
                # The driver waits here, so that the run cannot end before the machine is given up.
                if _is_given_up(machines_left=2):
                    os.kill(raylet, signal.SIGCONT)
                    did.append("thawed")
            for uri, etag in _etags(store, spec).items():
                seen.setdefault(uri, set()).add(etag)

        try:
            result = run(
                spec, base=ROOT, address=cluster.address, progress=freeze_and_thaw, engine_factory=_both(tmp_path)
            )
        finally:
            os.kill(raylet, signal.SIGCONT)
    assert did == ["frozen", "thawed"]
    assert result.error is None
    assert {row["_status"] for row in assert_each_once(spec, IDS)} == {"valid"}
    assert all(len(etags) == 1 for etags in seen.values())
    found = verify(spec.output.uri, spec.s3)
    assert found.is_sound, found.problems


def test_a_driver_that_is_killed_at_any_point_is_resumed_and_no_finished_shard_is_decoded_again(
    cluster: Cluster, prefix: str, s3_server: S3Server, tmp_path: Path
) -> None:
    log = tmp_path / "engine.log"
    # When the last kill is due, most of the shards are left: about ten seconds of work, in which it is seen to be due.
    spec = job(
        prefix,
        s3_server.endpoint_url,
        input={"shard_rows": 10},
        model={"engine": {"log": str(log), "token_s": 0.05}},
    )
    store = store_of(spec.output.uri, spec.s3.endpoint_url)
    draw = random.Random(4)
    standing: dict[str, str] = {}
    for events in (0, draw.randrange(1, 90), draw.randrange(1, 90), None):
        finished = {uri.rpartition("part-")[2].removesuffix(".parquet") for uri in standing}
        earlier = {_submission(event) for event in _events(log)}
        _submit(spec, store, cluster.address, log, kill_after=events)
        assert standing.items() <= _etags(store, spec).items()
        standing = _etags(store, spec)
        new = [event for event in _events(log) if _submission(event) not in earlier]
        assert not finished & {event["request_id"].split(".")[1] for event in new}
    assert_each_once(spec, IDS)
    found = verify(spec.output.uri, spec.s3)
    assert found.is_sound, found.problems


def _submission(event: dict[str, Any]) -> str:
    name: str = event["request_id"].split(".")[0]
    return name


def _submit(spec: JobSpec, store: Store, address: str, log: Path, *, kill_after: int | None) -> None:
    """A submission, killed when a plan stands, its engines logged so many events and, if any, there is a new part.

    None lets it end.
    """
    standing = len(_etags(store, spec))
    already = len(_events(log))
    process = start_driver(spec, address=address)
    try:
        if kill_after is not None:
            deadline = time.monotonic() + 120
            while (
                not _is_planned(store, spec)
                or len(_events(log)) < already + kill_after
                or (kill_after > 0 and len(_etags(store, spec)) == standing)
            ):
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.kill()
    finally:
        _, said = process.communicate(timeout=180)
    assert process.returncode == (0 if kill_after is None else -signal.SIGKILL), said


def test_a_worker_that_takes_more_memory_than_there_is_is_followed_by_one_that_takes_half(
    cluster: Cluster, prefix: str, s3_server: S3Server, tmp_path: Path
) -> None:
    for number in range(TRIES):
        log = tmp_path / f"engine-{number}.log"
        spec = job(
            prefix,
            s3_server.endpoint_url,
            model={"engine": {"log": str(log), "token_s": 0.02}},
            output={"uri": f"{prefix}run-{number}/"},
            cluster={"gpus_per_engine": 1, "engines": 1, "concurrency": 16, "wait_s": 120},
        )
        used, there_is = get_used_memory(), get_system_memory()
        if there_is - used < 2 * BEARABLE * HUNGER_BYTES:
            pytest.skip("too little memory on this machine to run out of a part of it")
        # Half of what a worker takes that works on sixteen at a time, and far more than one does that works on eight.
        allowed = (used + BEARABLE * HUNGER_BYTES * 0.6) / there_is
        limits = {"RAY_memory_usage_threshold": f"{allowed:.4f}", "RAY_memory_monitor_refresh_ms": "100"}
        with machines(cluster, s3_server, 1, num_cpus=1, num_gpus=1, env_vars=limits):
            result = run(spec, base=ROOT, address=cluster.address, engine_factory=hungry)
        # What others on this machine took or gave back in the meantime moved the limit: then it says nothing.
        if abs(get_used_memory() - used) < STRAY_BYTES:
            break
    else:
        pytest.skip("others on this machine took or gave back memory in every try")
    assert result.error is None
    assert_each_once(spec, IDS)
    in_flight: dict[int, int] = {}
    most: dict[int, int] = {}
    for event in _events(log):
        pid = event["pid"]
        in_flight[pid] = in_flight.get(pid, 0) + (1 if event["event"] == "request" else -1)
        most[pid] = max(most.get(pid, 0), in_flight[pid])
    first, *later = most.values()
    # The run may end without it too: what its workers die of is divided until it is small enough.
    assert first > BEARABLE
    assert later
    assert max(later) <= BEARABLE


def _is_planned(store: Store, spec: JobSpec) -> bool:
    return store.head(f"{spec.output.uri}_run/plan.json") is not None
