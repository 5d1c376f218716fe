"""`rerun`: what is said before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.core.outcome import Status
from tests.unit.cli.conftest import Say
from tests.unit.run.test_rerun import finished


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of which every document is valid."""
    monkeypatch.chdir(tmp_path)
    finished(tmp_path, lambda _: (Status.VALID, None))
    return tmp_path / "old[1]"


def test_nothing_to_run_again_is_no_error_and_writes_nothing(old: Path, say: Say) -> None:
    answered = say("rerun", old, "--max-tokens", "100", "--output", "new")
    assert answered.code == 0
    assert "nothing to run again" in answered.err
    assert not (old.parent / "new").exists()


def test_a_status_or_cause_that_does_not_exist_is_named_with_those_that_do(old: Path, say: Say) -> None:
    answered = say("rerun", old, "--status", "valid,broken", "--output", "new")
    assert answered.code == 2
    assert "--status broken" in answered.err
    assert "truncated" in answered.err
    assert "--cause bad" in say("rerun", old, "--cause", "bad", "--output", "new").err


def test_the_old_runs_own_prefix_is_refused(old: Path, say: Say) -> None:
    answered = say("rerun", old, "--status", "valid", "--max-tokens", "100", "--output", old)
    assert answered.code == 2
    assert "choose another" in answered.err


def test_the_same_again_is_refused_before_anything_starts(old: Path, say: Say) -> None:
    answered = say("rerun", old, "--status", "valid", "--output", "new")
    assert answered.code == 2
    assert "nothing differs" in answered.err
