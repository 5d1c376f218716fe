"""`report`: what only illustrates does not keep a run from its counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.core.outcome import Status
from tests.unit.cli.conftest import Say
from tests.unit.run.test_rerun import finished


@pytest.mark.parametrize("spec", [None, '{"name": "of a later version"}', "no JSON"])
def test_a_run_whose_spec_cannot_be_read_has_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say, spec: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    finished(tmp_path, lambda _: (Status.VALID, None))
    stored = tmp_path / "old[1]" / "_run" / "spec.json"
    stored.unlink()
    if spec is not None:
        stored.write_text(spec)
    answered = say("report", tmp_path / "old[1]")
    assert answered.code == 0
    assert "shows no documents" in answered.err
    assert "spec.json" in answered.err
    assert (tmp_path / "old[1]" / "report" / "report.html").exists()


def test_answers_that_are_not_there_are_said_to_be_missing(tmp_path: Path, say: Say) -> None:
    answered = say("report", tmp_path, "--gold", tmp_path / "no.parquet")
    assert answered.code == 2
    assert "'--gold'" in answered.err
    assert answered.err.endswith("does not exist.\n")
