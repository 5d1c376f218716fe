"""What a worker imports is what its driver has imported, or it does not start."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ray.util import get_node_ip_address

from pipeline.core.errors import RecordImportError
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.engines import start_engine
from pipeline.run.fingerprint import schema_digest
from pipeline.run.messages import Setup
from pipeline.run.record import load_record
from pipeline.run.worker import Worker
from pipeline.storage.arrow import record_schema

TICKET = "from pydantic import BaseModel\n\n\nclass Ticket(BaseModel):\n    {field}: int\n"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has imported nothing of a job."""
    for name in [name for name in sys.modules if name.startswith("some_tickets")]:
        monkeypatch.delitem(sys.modules, name)


def _folder(root: Path, name: str, field: str) -> Path:
    folder = root / name
    folder.mkdir()
    (folder / "some_tickets.py").write_text(TICKET.format(field=field))
    return folder


def _spec(folder: Path) -> JobSpec:
    raw: dict[str, Any] = {
        "name": "tickets",
        "input": {"uri": str(folder / "in")},
        "record": "some_tickets:Ticket",
        "model": {"name": "scripted"},
        "decoding": {"guide": "none"},
        "truncation": {"policy": "reject"},
        "output": {"uri": str(folder / "run")},
    }
    return parse_spec(raw, source="test")


@pytest.mark.parametrize("field", ["number", "amount"])
async def test_a_worker_with_another_record_class_says_on_which_machine_and_does_not_start(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a worker takes whatever class stands under the name where it looks."""
    job, there = _folder(tmp_path, "job", "number"), _folder(tmp_path, "there", field)
    _forget(monkeypatch)
    record = load_record("some_tickets:Ticket", job)
    digest = schema_digest(record.model_json_schema())
    _forget(monkeypatch)
    schema: pa.Schema = record_schema(record)
    setup = Setup(_spec(job), str(there), digest, None, "f" * 16, None, "s", start_engine, schema)
    answer = await Worker(setup, 1).start(None)
    if field == "number":
        assert isinstance(answer, str)
        return
    assert isinstance(answer, RecordImportError)
    assert f"on {get_node_ip_address()} is not the class" in answer.message
    assert str(there / "some_tickets.py") in answer.message
