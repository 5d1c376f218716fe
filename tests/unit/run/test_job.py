"""How a submission ends: its exit code, its error, and what its entry says, where no worker is needed to show it."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pipeline.core.document import Shard
from pipeline.core.errors import FingerprintError, LeftOutError, StorageAccessError, StorageError, VerificationError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run import job
from pipeline.run.attempt import Work
from pipeline.run.commit import Committer
from pipeline.run.plan import write_plan
from pipeline.run.preflight import Prepared, prepare
from pipeline.run.task import Task
from pipeline.run.verify import verify
from pipeline.storage.footer import Timings


def _spec(folder: Path, **decoding: Any) -> JobSpec:
    raw = {
        "name": "notes",
        "input": {"uri": str(folder / "in")},
        "record": "tests.integration.scripted:Note",
        "model": {"name": "scripted"},
        "decoding": decoding,
        "output": {"uri": str(folder / "run")},
    }
    return parse_spec(raw, source="test")


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    """A job over two documents."""
    (tmp_path / "in").mkdir()
    lines = '{"document_id": "a", "text": "note 1 of some"}\n{"document_id": "b", "text": "note 2"}\n'
    (tmp_path / "in" / "a.jsonl").write_text(lines)
    return _spec(tmp_path)


def _commit_all(spec: JobSpec, folder: Path, *, rows: int = 2) -> None:
    """Plays an earlier submission, which put the job's one part, with so many outcomes."""
    prepared = prepare(spec, folder)
    plan = write_plan(prepared.store, prepared.layout, prepared.stored, attempt="a").plan
    [shard] = plan.shards
    piece = shard.pieces[0]
    held = Shard((type(piece)(piece.uri, piece.etag, piece.row_group, 0, rows),))
    outcomes = tuple(Outcome(f"d{number}", Status.FAILED, Cause.EMPTY) for number in range(rows))
    now = datetime.now(UTC)
    committer = Committer(prepared.store, prepared.layout, prepared.schema, plan.fingerprint, "played")
    committer.commit(Task(shard.shard_id, held, shard.shard_id), Work(outcomes, Timings(), 0, now, now), "earlier")


def _entry(folder: Path) -> dict[str, Any]:
    """What the last submission wrote down."""
    [path] = (folder / "run" / "_run" / "submissions").iterdir()
    written: dict[str, Any] = json.loads(path.read_text())
    return written


def _check_entry(folder: Path, result: job.RunResult) -> None:
    written = _entry(folder)
    assert written["exit_code"] == result.exit_code
    assert written["reason"] == (None if result.error is None else result.error.message)


@pytest.fixture
def _no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> NoReturn:
        pytest.fail("Ray was asked for")

    monkeypatch.setattr(job, "stoppable_ray", refuse)


@pytest.mark.usefixtures("_no_ray")
def test_a_run_with_nothing_left_starts_no_cluster_and_writes_its_report(spec: JobSpec, tmp_path: Path) -> None:
    _commit_all(spec, tmp_path)
    result = job.run(spec, base=tmp_path)
    assert (result.exit_code, result.error) == (0, None)
    assert result.report is not None
    assert result.report.is_complete
    assert result.report.engine.submissions_left_out == 0
    assert (tmp_path / "run" / "report" / "report.html").is_file()
    _check_entry(tmp_path, result)


@pytest.mark.usefixtures("_no_ray")
def test_a_report_that_cannot_be_written_stands_in_the_submissions_entry_with_the_exit_code(
    spec: JobSpec, tmp_path: Path
) -> None:
    """Fails when the entry keeps the exit code 0 of a process that exited with 3."""
    _commit_all(spec, tmp_path)
    (tmp_path / "run" / "report").write_text("where the folder of the report would be")
    result = job.run(spec, base=tmp_path)
    assert result.exit_code == 3
    assert isinstance(result.error, StorageError)
    _check_entry(tmp_path, result)


@pytest.mark.usefixtures("_no_ray")
def test_a_part_that_lacks_outcomes_is_no_success(spec: JobSpec, tmp_path: Path) -> None:
    """Fails when a listed part is taken for a whole one."""
    _commit_all(spec, tmp_path, rows=1)
    result = job.run(spec, base=tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.error, VerificationError)
    assert "recordmill verify" in result.error.message
    _check_entry(tmp_path, result)


@pytest.mark.usefixtures("_no_ray")
def test_a_damaged_part_is_named_and_what_to_do(spec: JobSpec, tmp_path: Path) -> None:
    """Fails when it is taken for done in every submission, and nobody says how to have it made anew."""
    _commit_all(spec, tmp_path)
    [part] = (tmp_path / "run" / "parts").iterdir()
    part.write_bytes(b"PAR1 cut short")
    result = job.run(spec, base=tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.error, VerificationError)
    assert "remove them, and submit again" in result.error.message
    assert part.name in verify(str(tmp_path / "run"), spec.s3).wrong[0]


@pytest.mark.usefixtures("_no_ray")
def test_an_object_that_was_left_out_is_no_success(spec: JobSpec, tmp_path: Path) -> None:
    (tmp_path / "in" / "b.parquet").write_bytes(b"no Parquet")
    _commit_all(spec, tmp_path)
    result = job.run(spec, base=tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.error, LeftOutError)
    assert "b.parquet" in result.error.message
    _check_entry(tmp_path, result)


def test_credentials_that_expire_while_it_runs_leave_it_resumable(
    spec: JobSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the error's own exit code, 2 before anything starts, is given."""

    def expired(*_: Any) -> AbstractContextManager[Any]:
        raise StorageAccessError("the token has expired")

    monkeypatch.setattr(job, "stoppable_ray", expired)
    result = job.run(spec, base=tmp_path)
    assert (result.exit_code, type(result.error)) == (3, StorageAccessError)
    _check_entry(tmp_path, result)


@pytest.mark.usefixtures("_no_ray")
def test_a_prefix_that_another_run_takes_meanwhile_is_refused(
    spec: JobSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a run works through the plan of another."""

    def late(asked: JobSpec, base: Path) -> Prepared:
        prepared = prepare(asked, base)
        other = prepare(_spec(tmp_path, max_tokens=300), base)
        write_plan(other.store, other.layout, other.stored, attempt="other")
        return prepared

    monkeypatch.setattr(job, "prepare", late)
    with pytest.raises(FingerprintError, match="taken by another run"):
        job.run(spec, base=tmp_path)
