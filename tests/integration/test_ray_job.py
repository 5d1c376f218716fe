"""The main job as a user submits it: `ray job submit` to a cluster that asks for a token, against real S3.

Only the model is played.  The job's folder is this checkout, packed and sent as any other would be.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.documents import receipts
from demo.s3 import S3Server
from pipeline.cli import main
from pipeline.run.metrics import METRICS
from tests.integration.scripted import ROOT, put_parquet, store_of

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

RAY = Path(sys.executable).parent / "ray"
JOB = ("python", "jobs/extract.py", "jobs/receipts.yaml")
DEADLINE_S = 240
START_ATTEMPTS = 3
# Below the kernel's ephemeral ports, and clear of those of the S3 server (20200-22699, and 10000 above) and of Ray's
# workers (10002-19999 by default, 30000-30100 here).
PORTS = range(23_000, 30_000)
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass(frozen=True)
class Head:
    """A cluster of one machine with a job server."""

    environment: dict[str, str]
    token: str
    dashboard: str
    metrics: str

    def ray(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(RAY), *arguments], cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=DEADLINE_S
        )

    def submit(self, submission_id: str, *arguments: str) -> None:
        """As the README says, with the switches that a test needs."""
        where = ("--address", self.dashboard, "--submission-id", submission_id, "--no-wait")
        done = self.ray("job", "submit", *where, "--working-dir", ".", "--", *JOB, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    def job(self, submission_id: str) -> dict[str, Any]:
        """What the job server says of a job."""
        found: dict[str, Any] = self._asked(submission_id)
        return found

    def has_job_server(self) -> bool:
        try:
            self._asked("")
        except (OSError, http.client.HTTPException):
            return False
        return True

    def _asked(self, submission_id: str) -> Any:
        """Of all jobs for an empty id."""
        request = urllib.request.Request(
            f"{self.dashboard}/api/jobs/{submission_id}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def ended(self, submission_id: str) -> tuple[dict[str, Any], set[str]]:
        """The job once it has ended, and the names of all metrics that were seen until then."""
        deadline = time.monotonic() + DEADLINE_S
        seen: set[str] = set()
        while (found := self.job(submission_id))["status"] not in ENDED:
            assert time.monotonic() < deadline, found
            seen |= self._metric_names()
            time.sleep(0.5)
        return found, seen

    def _metric_names(self) -> set[str]:
        try:
            with urllib.request.urlopen(self.metrics, timeout=30) as answer:
                lines = answer.read().decode().splitlines()
        except (OSError, http.client.HTTPException):
            return set()
        return {line.split("{")[0] for line in lines if not line.startswith("#")}


def _free_ports(count: int) -> list[int]:
    """Ports that are free now, and that no connection is given while they wait for their server."""
    free = (port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))
    return list(itertools.islice(free, count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@pytest.fixture(scope="module")
def head(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    token, folder = secrets.token_hex(16), tmp_path_factory.mktemp("ray")
    path = folder / "auth_token"
    path.touch(mode=0o600)
    path.write_text(token)
    environment = {
        **os.environ,
        **s3_server.environment(),
        "PATH": f"{RAY.parent}{os.pathsep}{os.environ['PATH']}",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(path),
        "RAY_metrics_report_interval_ms": "500",
    }
    for inherited in ("RAY_ADDRESS", "RAY_AUTH_TOKEN"):
        environment.pop(inherited, None)
    log = folder / "head.log"
    for _ in range(START_ATTEMPTS):
        made, process = _start(environment, token, log)
        try:
            # Between our look at a port and the bind another process may take it: then try others.
            if _has_job_server(made, process, log):
                yield made
                return
        finally:
            process.terminate()
            process.wait(60)
    raise AssertionError(log.read_text())


def _start(environment: dict[str, str], token: str, log: Path) -> tuple[Head, subprocess.Popen[bytes]]:
    port, dashboard, agent, client, metrics = _free_ports(5)
    # `--block` ties the cluster to one process, so that it can be ended without touching any other.
    process = subprocess.Popen(
        [
            *(str(RAY), "start", "--head", "--block", f"--port={port}", f"--dashboard-port={dashboard}"),
            *("--dashboard-host=127.0.0.1", "--min-worker-port=30000", "--max-worker-port=30100", "--num-cpus=4"),
            *(f"--metrics-export-port={metrics}", "--object-store-memory=100000000", "--disable-usage-stats"),
            *(f"--dashboard-agent-listen-port={agent}", f"--ray-client-server-port={client}"),
        ],
        env=environment,
        cwd=log.parent,
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
    )
    return Head(environment, token, f"http://127.0.0.1:{dashboard}", f"http://127.0.0.1:{metrics}/metrics"), process


def _has_job_server(head: Head, process: subprocess.Popen[bytes], log: Path) -> bool:
    """Waits for it; false where the cluster has ended instead."""
    deadline = time.monotonic() + DEADLINE_S
    while not head.has_job_server():
        if process.poll() is not None:
            return False
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)
    return True


@pytest.fixture
def places(head: Head, s3_bucket: str, s3_server: S3Server) -> list[str]:
    """The options that point `jobs/receipts.yaml` at documents of a fresh bucket, and at the played model."""
    rows = [{"document_id": item.document_id, "text": item.text} for item in receipts(52, 0)]
    # Four small shards and a large one for two engines: while one does the last, the other idles, and says so.
    store = store_of(s3_bucket, s3_server.endpoint_url)
    put_parquet(store, f"{s3_bucket}in/a.parquet", rows[:36], row_group_rows=9)
    put_parquet(store, f"{s3_bucket}in/b.parquet", rows[36:], row_group_rows=16)
    settings = {
        "input.uri": f"{s3_bucket}in/",
        "input.shard_rows": 16,
        "output.uri": f"{s3_bucket}run/",
        "s3.endpoint_url": s3_server.endpoint_url,
        "model.name": "scripted",
        "model.engine": "{token_s: 0.01}",
        "cluster.engines": 2,
        "cluster.concurrency": 2,
        "decoding.max_tokens": 400,
        "truncation.escalate": "[]",
    }
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def test_a_submitted_job_succeeds_and_can_be_watched_beside_one_that_cannot_be_read_and_ends_with_exit_code_2(
    head: Head,
    places: list[str],
    s3_bucket: str,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    head.submit("receipts-1", *places)
    head.submit("receipts-2", *places, "--set", "decoding.no_such_key=1")
    job, seen = head.ended("receipts-1")
    assert (job["status"], job["driver_exit_code"]) == ("SUCCEEDED", 0), job["message"]
    store = store_of(s3_bucket, s3_server.endpoint_url)
    report = json.loads(store.get(f"{s3_bucket}run/report/report.json"))
    assert report["is_complete"]
    assert sum(report["balance"]["outcomes"].values()) == 52
    names = {metric.exported + ("_count" if metric.kind == "histogram" else "") for metric in METRICS}
    assert names <= seen
    job, _ = head.ended("receipts-2")
    assert (job["status"], job["driver_exit_code"]) == ("FAILED", 2), job["message"]
    capsys.readouterr()
    assert main(["verify", f"{s3_bucket}run/", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["documents_found"] == 52
    assert main(["status", f"{s3_bucket}run/", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["balance"] == report["balance"]
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    records, there = tmp_path / "records.jsonl", ["--endpoint-url", s3_server.endpoint_url]
    assert main(["export", f"{s3_bucket}run/", "--to", "jsonl", "-o", str(records), *there]) == 0
    assert len(records.read_text().splitlines()) == report["balance"]["outcomes"]["valid"]


def test_workers_of_a_job_that_sent_its_folder_look_into_their_own_copy(head: Head) -> None:
    """Fails when they are told the path of the driver's copy, which another machine need not have."""
    lines = (
        "from pathlib import Path",
        "from pipeline.run.cluster import folder_of_workers, ray_connection",
        "with ray_connection('auto'): print('folder', repr(folder_of_workers(Path.cwd())))",
    )
    where = ("--address", head.dashboard, "--working-dir", ".")
    done = head.ray("job", "submit", *where, "--", "python", "-c", "\n".join(lines))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "folder '.'" in done.stdout


def test_the_job_server_turns_away_who_has_no_token(head: Head) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{head.dashboard}/api/jobs/", timeout=30)
    assert refused.value.code in (401, 403)
