"""The main job as a user submits it: `ray job submit` to a cluster that asks for a token, against real S3.

Only the model is played.  The job's folder is this checkout, packed and sent as any other would be.
"""

from __future__ import annotations

import json
import os
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
from pipeline.run.metrics import METRICS
from tests.integration.scripted import ROOT, put_parquet, store_of

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

RAY = Path(sys.executable).parent / "ray"
JOB = ("python", "jobs/extract.py", "jobs/receipts.yaml")
DEADLINE_S = 240
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
        request = urllib.request.Request(
            f"{self.dashboard}/api/jobs/{submission_id}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

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
        except urllib.error.URLError:
            return set()
        return {line.split("{")[0] for line in lines if not line.startswith("#")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def head(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    token, folder = secrets.token_hex(16), tmp_path_factory.mktemp("ray")
    path = folder / "auth_token"
    path.touch(mode=0o600)
    path.write_text(token)
    dashboard, metrics = _free_port(), _free_port()
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
    made = Head(environment, token, f"http://127.0.0.1:{dashboard}", f"http://127.0.0.1:{metrics}/metrics")
    # `--block` ties the cluster to one process, so that it can be ended without touching any other.
    started = subprocess.Popen(
        [
            *(str(RAY), "start", "--head", "--block", f"--port={_free_port()}", f"--dashboard-port={dashboard}"),
            *("--dashboard-host=127.0.0.1", "--min-worker-port=30000", "--max-worker-port=30100", "--num-cpus=4"),
            *(f"--metrics-export-port={metrics}", "--object-store-memory=100000000", "--disable-usage-stats"),
            *(f"--dashboard-agent-listen-port={_free_port()}", f"--ray-client-server-port={_free_port()}"),
        ],
        env=environment,
        cwd=folder,
        stdout=(folder / "head.log").open("wb"),
        stderr=subprocess.STDOUT,
    )
    try:
        _wait_for_job_server(made, started, folder / "head.log")
        yield made
    finally:
        started.terminate()
        started.wait(60)


def _wait_for_job_server(head: Head, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while head.ray("job", "list", "--address", head.dashboard).returncode:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)


@pytest.fixture
def places(head: Head, s3_bucket: str, s3_server: S3Server) -> list[str]:
    """The options that point `jobs/receipts.yaml` at documents of a fresh bucket, and at the played model."""
    rows = [{"document_id": item.document_id, "text": item.text} for item in receipts(40, 0)]
    put_parquet(store_of(s3_bucket, s3_server.endpoint_url), f"{s3_bucket}in/a.parquet", rows, row_group_rows=10)
    settings = {
        "input.uri": f"{s3_bucket}in/",
        "input.shard_rows": 10,
        "output.uri": f"{s3_bucket}run/",
        "s3.endpoint_url": s3_server.endpoint_url,
        "model.name": "scripted",
        "model.engine": "{token_s: 0.001}",
        "decoding.max_tokens": 400,
        "truncation.escalate": "[]",
    }
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def test_a_submitted_job_succeeds_and_its_engines_can_be_watched(
    head: Head, places: list[str], s3_bucket: str, s3_server: S3Server
) -> None:
    head.submit("receipts-1", *places)
    job, seen = head.ended("receipts-1")
    assert (job["status"], job["driver_exit_code"]) == ("SUCCEEDED", 0), job["message"]
    store = store_of(s3_bucket, s3_server.endpoint_url)
    report = json.loads(store.get(f"{s3_bucket}run/report/report.json"))
    assert report["is_complete"]
    assert sum(report["balance"]["outcomes"].values()) == 40
    names = {metric.exported + ("_count" if metric.kind == "histogram" else "") for metric in METRICS}
    assert names <= seen


def test_a_job_that_cannot_be_read_ends_with_exit_code_2(head: Head, places: list[str]) -> None:
    head.submit("receipts-2", *places, "--set", "decoding.no_such_key=1")
    job, _ = head.ended("receipts-2")
    assert (job["status"], job["driver_exit_code"]) == ("FAILED", 2), job["message"]


def test_the_job_server_turns_away_who_has_no_token(head: Head) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{head.dashboard}/api/jobs/", timeout=30)
    assert refused.value.code in (401, 403)
