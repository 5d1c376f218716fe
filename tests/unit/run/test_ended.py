"""How a submission ended is written down as the process says it, also where its report cannot be."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.core.errors import StorageError, VerificationError
from pipeline.core.spec import parse_spec
from pipeline.run.job import _ended, run
from pipeline.run.plan import write_plan
from pipeline.run.preflight import Prepared, prepare
from pipeline.run.submission import SubmissionLog
from pipeline.run.verify import verify


def _prepared(folder: Path) -> Prepared:
    """A job over one document, with its plan written."""
    (folder / "in").mkdir()
    (folder / "in" / "a.jsonl").write_text('{"document_id": "a", "text": "note 1 of some"}\n')
    raw = {
        "name": "notes",
        "input": {"uri": str(folder / "in")},
        "record": "tests.integration.scripted:Note",
        "model": {"name": "scripted"},
        "output": {"uri": str(folder / "run")},
    }
    prepared = prepare(parse_spec(raw, source="test"), folder)
    write_plan(prepared.store, prepared.layout, prepared.stored, attempt="a")
    return prepared


def test_a_report_that_cannot_be_written_stands_in_the_submissions_entry_with_the_exit_code(tmp_path: Path) -> None:
    """Fails when the entry keeps the exit code 0 of a process that exited with 3."""
    prepared = _prepared(tmp_path)
    log = SubmissionLog(prepared.store, prepared.layout)
    log.started(prepared.stored.plan.fingerprint, shards_pending=1)
    (tmp_path / "run" / "report").write_text("where the folder of the report would be")
    result = _ended(prepared, log, None)
    assert result.exit_code == 3
    assert isinstance(result.error, StorageError)
    [entry] = (tmp_path / "run" / "_run" / "submissions").iterdir()
    written = json.loads(entry.read_text())
    assert (written["exit_code"], written["reason"]) == (3, result.error.message)


def test_a_submission_with_nothing_to_do_is_not_one_whose_engines_are_unknown(tmp_path: Path) -> None:
    prepared = _prepared(tmp_path)
    log = SubmissionLog(prepared.store, prepared.layout)
    log.started(prepared.stored.plan.fingerprint, shards_pending=0)
    result = _ended(prepared, log, None)
    assert result.report is not None
    assert result.report.engine.submissions_left_out == 0


def test_a_run_with_a_damaged_part_says_what_to_do(tmp_path: Path) -> None:
    prepared = _prepared(tmp_path)
    [shard] = prepared.stored.plan.shards
    part = Path(prepared.layout.part(shard.shard_id))
    part.parent.mkdir()
    part.write_bytes(b"PAR1 cut short")
    result = run(prepared.job.spec, base=tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.error, VerificationError)
    assert "verify" in result.error.message
    assert "remove them, and submit again" in result.error.message
    assert part.name in verify(str(tmp_path / "run"), prepared.job.spec.s3).wrong[0]
