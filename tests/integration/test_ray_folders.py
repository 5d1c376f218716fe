"""A job's folder on a cluster that no job was submitted to: it stands at the same path on every machine.

A worker's own working directory is where its machine's Ray was started, as beside another project.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from demo.s3 import S3Server
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.job import run
from pipeline.run.progress import Snapshot
from pipeline.run.verify import verify
from tests.machines import machines

pytestmark = [pytest.mark.ray, pytest.mark.slow]

NOTE = "from pydantic import BaseModel\n\n\nclass Note(BaseModel):\n    {field}: int\n"
COUNT = 12


def _project(folder: Path, field: str) -> Path:
    folder.mkdir()
    (folder / "notes_of_folders.py").write_text(NOTE.format(field=field))
    return folder


def _spec() -> JobSpec:
    raw: dict[str, Any] = {
        "name": "folders",
        "input": {"uri": "in/", "shard_rows": 4},
        "record": "notes_of_folders:Note",
        "model": {"name": "scripted"},
        "decoding": {"max_tokens": 100},
        "output": {"uri": "out/"},
        "cluster": {"engines": 1, "gpus_per_engine": 1, "cpus_per_engine": 0.5, "wait_s": 60},
    }
    return parse_spec(raw, source="test")


def test_workers_import_and_write_where_the_driver_does(
    cluster: Cluster, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a worker looks into its own working directory, for the record class or for local documents."""
    job, other = _project(tmp_path / "job", "number"), _project(tmp_path / "other", "amount")
    (job / "in").mkdir()
    rows = [{"document_id": f"d{number}", "text": f"note {number}"} for number in range(COUNT)]
    (job / "in" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(other)
    with machines(cluster, s3_server, 1, num_cpus=1, num_gpus=1):
        monkeypatch.chdir(job)
        result = run(_spec(), base=Path.cwd(), address=cluster.address)
    assert result.error is None
    assert result.prefix == f"{job}/out/"
    assert [path.name for path in other.iterdir() if path.suffix != ".py"] == []
    found = verify("out/", _spec().s3)
    assert found.is_sound, found.problems
    assert found.documents_found == COUNT
    # From the same folder, it is the same run, and nothing is left to do.
    snapshots: list[Snapshot] = []
    assert run(_spec(), base=Path.cwd(), progress=snapshots.append).exit_code == 0
    assert "start" not in [snapshot.phase for snapshot in snapshots]
