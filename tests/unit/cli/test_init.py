"""`init`: a job that works as it is, and nothing overwritten."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Say

SCRIPTED = ("--set", "model.name=scripted", "--set", "model.engine={}", "--set", "cluster.gpus_per_engine=0")


@pytest.fixture
def started(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in sys.modules if name == "schemas" or name.startswith("schemas.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert say("init", tmp_path / "new").code == 0
    monkeypatch.chdir(tmp_path / "new")
    return tmp_path / "new"


def test_what_init_writes_passes_lint_without_a_word_of_advice(started: Path, say: Say) -> None:
    linted = say("lint", "jobs/orders.yaml", "--json", *SCRIPTED)
    assert linted.code == 0
    assert linted.json["advice"] == []
    assert {field["verdict"] for field in linted.json["fields"]} == {"enforced"}
    assert linted.json["least_tokens"] > 0


def test_what_init_writes_extracts_its_sample_documents(started: Path, say: Say) -> None:
    shown = say("preview", "jobs/orders.yaml", "--json", *SCRIPTED)
    assert shown.code == 0
    assert [row["document_id"] for row in shown.json] == ["letter-1", "mail-2", "note-3"]
    assert {row["status"] for row in shown.json} <= {"valid", "closed"}
    for row in shown.json:
        assert row["record"]["customer"] in " ".join(row["text"].split())


SCHEMAS = {
    "a field without a description": "class Order(BaseModel):\n    customer: str\n",
    "a recursive type": "class Order(BaseModel):\n    parts: list['Order']\n",
}


@pytest.mark.parametrize("text", SCHEMAS.values(), ids=SCHEMAS)
def test_the_template_that_init_writes_takes_any_record_type(text: str, started: Path, say: Say) -> None:
    (started / "schemas" / "order.py").write_text(f"from pydantic import BaseModel\n\n\n{text}")
    planned = say("plan", "jobs/orders.yaml", *SCRIPTED)
    assert (planned.code, planned.err) == (0, "")


def test_init_overwrites_nothing_and_then_writes_nothing_at_all(started: Path, say: Say) -> None:
    (started / "jobs" / "orders.yaml").unlink()
    (started / "schemas" / "order.py").write_text("mine")
    again = say("init", started)
    assert again.code == 2
    assert "already there" in again.err
    assert (started / "schemas" / "order.py").read_text() == "mine"
    assert not (started / "jobs" / "orders.yaml").exists()
