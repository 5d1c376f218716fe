"""What a worker imports and sees is what its driver does, or it does not start."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ray.util import get_node_ip_address

from pipeline.core.errors import ClusterError, RecordImportError
from pipeline.core.sections import InputSpec
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


def _setup(job: Path, there: Path, monkeypatch: pytest.MonkeyPatch) -> Setup:
    """What the driver tells its workers, which look for the record class in another folder."""
    (job / "in").mkdir()
    (job / "run" / "_run").mkdir(parents=True)
    (job / "run" / "_run" / "plan.json").write_text("{}")
    _forget(monkeypatch)
    record = load_record("some_tickets:Ticket", job)
    digest = schema_digest(record.model_json_schema())
    _forget(monkeypatch)
    schema: pa.Schema = record_schema(record)
    return Setup(_spec(job), str(there), digest, None, "f" * 16, None, "s", start_engine, schema)


@pytest.mark.parametrize("field", ["number", "amount"])
async def test_a_worker_with_another_record_class_says_on_which_machine_and_does_not_start(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a worker takes whatever class stands under the name where it looks."""
    job, there = _folder(tmp_path, "job", "number"), _folder(tmp_path, "there", field)
    answer = await Worker(_setup(job, there, monkeypatch), 1).start(None)
    if field == "number":
        assert isinstance(answer, str)
        return
    assert isinstance(answer, RecordImportError)
    assert f"on {get_node_ip_address()} is not the class" in answer.message
    assert str(there / "some_tickets.py") in answer.message


@pytest.mark.parametrize("absent", ["in", "run/_run/plan.json"])
@pytest.mark.parametrize("pattern", ["in", "in/day-*/[ab]*.parquet"])
async def test_a_worker_on_a_machine_without_the_input_or_the_output_does_not_start(
    absent: str, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when it would fail every document for want of its file, or keep its parts where nobody reads them."""
    job = _folder(tmp_path, "job", "number")
    setup = _setup(job, job, monkeypatch)
    spec = setup.spec.model_copy(update={"input": InputSpec(uri=str(job / pattern))})
    setup = replace(setup, spec=spec)
    (job / absent).rename(job / "away")
    answer = await Worker(setup, 1).start(None)
    assert isinstance(answer, ClusterError)
    named = job / pattern if absent == "in" else job / "run"
    assert answer.message.startswith(f"{named} on {get_node_ip_address()} is not what it is on the driver's machine")
