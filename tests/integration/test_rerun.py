"""A rerun from the command line: a real run, its closed documents again with more room, both verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.cli import main
from tests.integration.scripted import stored_rows
from tests.unit.cli.conftest import put_job, put_lines

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def test_closed_documents_become_valid_in_a_linked_run_and_the_old_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # Records of one-digit notes take 29 tokens, of two-digit ones 31: a budget of 30 bends the latter.
    put_lines(
        tmp_path / "in" / "a.jsonl", [{"document_id": f"d{number}", "text": f"note {number} x"} for number in range(25)]
    )
    path = put_job(tmp_path, decoding={"max_tokens": 30}, truncation={"reserve": False})
    assert main(["run", str(path)]) == 0
    before = sorted((item, item.stat().st_mtime_ns) for item in (tmp_path / "run").rglob("*") if item.is_file())
    words = ["rerun", str(tmp_path / "run"), "--max-tokens", "60", "--output", str(tmp_path / "again")]
    assert main(words) == 0
    assert main(words) == 0
    assert sorted((item, item.stat().st_mtime_ns) for item in (tmp_path / "run").rglob("*") if item.is_file()) == before
    spec = json.loads((tmp_path / "again" / "_run" / "spec.json").read_text())
    assert spec["rerun"] == {"of": f"{tmp_path}/run/", "status": ["truncated", "closed"], "cause": []}
    rows = _rows(tmp_path / "again")
    assert {row["_document_id"]: row["_status"] for row in rows} == {f"d{number}": "valid" for number in range(10, 25)}
    capsys.readouterr()
    assert main(["report", str(tmp_path / "again")]) == 0
    assert f"{tmp_path}/run/" in "".join(capsys.readouterr().out.split())
    assert f"{tmp_path}/run/" in (tmp_path / "again" / "report" / "report.html").read_text()
    assert main(["verify", str(tmp_path / "again")]) == 0
    assert main(["verify", str(tmp_path / "run")]) == 0


def _rows(prefix: Path) -> list[dict[str, object]]:
    from pipeline.core.sections import S3Spec
    from pipeline.run.verify import stored_spec
    from pipeline.storage.layout import RunLayout
    from pipeline.storage.store import open_store

    return stored_rows(stored_spec(open_store(str(prefix), S3Spec()), RunLayout(str(prefix))))
