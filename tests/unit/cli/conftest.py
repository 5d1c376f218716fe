"""A job in a folder of its own, played by the scripted engine: what the commands are tried on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.cli import main


@dataclass(frozen=True, slots=True)
class Answered:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Say = Callable[..., Answered]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs a command line in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str | Path) -> Answered:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        heard = capsys.readouterr()
        return Answered(code, heard.out, heard.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's folder: 30 documents as JSON lines in `in/`, and `job.yaml`; it is the working directory."""
    monkeypatch.chdir(tmp_path)
    rows = [{"document_id": f"d{number:03}", "text": f"note {number} of some length"} for number in range(30)]
    put_lines(tmp_path / "in" / "a.jsonl", rows)
    put_job(tmp_path)
    return tmp_path


def put_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def put_job(folder: Path, **changes: Any) -> Path:
    """Writes `job.yaml`; keyword arguments replace sections' keys, as `decoding={"max_tokens": 20}`."""
    raw: dict[str, Any] = {
        "name": "notes",
        "input": {"uri": str(folder / "in"), "shard_rows": 20},
        "record": "tests.integration.scripted:Note",
        "model": {"name": "scripted", "engine": {"answers": "tests.integration.scripted:answer"}},
        "decoding": {"max_tokens": 100},
        "output": {"uri": str(folder / "run")},
        "cluster": {"engines": 1, "gpus_per_engine": 0, "cpus_per_engine": 0.5},
    }
    for section, values in changes.items():
        raw[section] = {**raw.get(section, {}), **values} if isinstance(values, dict) else values
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path
