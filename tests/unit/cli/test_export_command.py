"""`recordmill export`: what is missing is said, folders are made, a Delta table has a run once however it is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipeline.cli import main
from pipeline.cli.specs import s3_settings
from pipeline.run.fingerprint import Identity
from pipeline.run.plan import StoredPlan, write_plan
from pipeline.storage.layout import RunLayout
from tests.unit.report.runs import Run, plan_of, valid


def _run(folder: Path, *, parts: int) -> Path:
    """A run of two shards of two documents, of which the first `parts` stand."""
    run, plan = Run(RunLayout(f"{folder}/run/")), plan_of(2, 2)
    write_plan(run.store, run.layout, StoredPlan(plan, Identity({})), attempt="a")
    for position in range(parts):
        run.put_part(plan, position, [valid(f"d{position}"), valid(f"e{position}")])
    return folder / "run"


def test_an_export_of_part_of_a_run_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = _run(tmp_path, parts=1)
    assert main(["export", str(run), "--to", "csv", "-o", str(tmp_path / "new" / "x.csv")]) == 0
    assert len((tmp_path / "new" / "x.csv").read_text().splitlines()) == 3
    assert "is not complete: 2 of 4 documents have no outcome" in capsys.readouterr().err


def test_a_whole_run_is_exported_without_a_word_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(_run(tmp_path, parts=2)), "-o", str(tmp_path / "x.parquet")]) == 0
    assert capsys.readouterr().err == "4 rows\n"


def test_an_export_reads_no_problem_documents_to_know_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a whole report is made for it, with the parts of its problem documents and all submissions."""
    run = _run(tmp_path, parts=2)
    monkeypatch.delattr("pipeline.report.write.read_problems")
    monkeypatch.delattr("pipeline.report.write._submissions")
    assert main(["export", str(run), "-o", str(tmp_path / "x.parquet")]) == 0
    assert main(["export", str(run), "--delta", str(tmp_path / "lake")]) == 0


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["export", str(_run(tmp_path, parts=2)), "-o", str(tmp_path / "file" / "x.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("place", [".", "/"])
def test_a_folder_is_no_file_to_export_to(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(_run(tmp_path, parts=2)), "-o", place]) == 2
    assert f"'{place}' is a directory" in capsys.readouterr().err


def test_a_delta_table_has_a_run_once_however_its_prefix_is_spelt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the transaction carries the prefix as it was typed."""
    run, table = _run(tmp_path, parts=2), tmp_path / "lake"
    monkeypatch.chdir(tmp_path)
    for spelt in (str(run), "run", "./run/", f"{run}/"):
        assert main(["export", spelt, "--delta", str(table)]) == 0
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 4


def test_a_delta_table_takes_no_run_that_is_not_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(_run(tmp_path, parts=1)), "--delta", str(tmp_path / "lake")]) == 1
    assert "is not complete" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_a_terminal_is_not_written_full_of_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(_run(tmp_path, parts=1))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["export", run]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        "recordmill: a Parquet file is no text for a terminal: give --out FILE, or --to jsonl\n",
    )
    assert main(["export", run, "--to", "csv"]) == 0


@pytest.mark.parametrize(
    ("given", "environment", "endpoint"),
    [
        (None, {}, None),
        (None, {"AWS_ENDPOINT_URL": "http://a"}, "http://a"),
        (None, {"AWS_ENDPOINT_URL": "http://a", "AWS_ENDPOINT_URL_S3": "http://b"}, "http://b"),
        ("http://c", {"AWS_ENDPOINT_URL_S3": "http://b"}, "http://c"),
    ],
)
def test_the_endpoint_of_the_environment_is_that_of_the_command(
    given: str | None, environment: dict[str, str], endpoint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a library that does not look there, such as Delta's, is left to find it."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert s3_settings(given, None).endpoint_url == endpoint


def test_credentials_in_an_endpoint_are_refused_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://key:hush@127.0.0.1:9")
    assert main(["status", str(_run(tmp_path, parts=2))]) == 2
    said = capsys.readouterr().err
    assert "AWS_ENDPOINT_URL_S3: credentials do not belong in a URL" in said
    assert "hush" not in said


@pytest.mark.parametrize("to", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("has_file", [True, False])
def test_a_damaged_part_is_told_as_such(
    to: str, has_file: bool, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Fails when the error of reading is left to whoever writes the file."""
    run = _run(tmp_path, parts=2)
    part = sorted((run / "parts").iterdir())[1]
    content = bytearray(part.read_bytes())
    content[8:40] = bytes(32)
    part.write_bytes(content)
    out = tmp_path / "x"
    assert main(["export", str(run), "--to", to, *(["-o", str(out)] if has_file else [])]) == 3
    said = capsysbinary.readouterr().err.decode()
    assert "a part of the run cannot be read" in said
    assert "recordmill verify" in said
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
