"""`preview`: what a run would make of some documents, written nowhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.conftest import Say, put_job, put_lines


def test_documents_come_with_the_records_a_run_would_make_and_nothing_is_written(folder: Path, say: Say) -> None:
    before = sorted(folder.rglob("*"))
    shown = say("preview", "job.yaml", "-n", "5", "--json")
    assert shown.code == 0
    assert len(shown.json) == 5
    for row in shown.json:
        number = int(row["document_id"][1:])
        assert row["status"] == "valid"
        assert row["record"] == {"title": f"note {number}", "number": number}
        assert row["text"] == f"note {number} of some length"
    assert sorted(folder.rglob("*")) == before
    assert say("preview", "job.yaml", "-n", "5", "--json").json == shown.json


def test_the_terminal_shows_text_record_and_counts(folder: Path, say: Say) -> None:
    shown = say("preview", "job.yaml", "-n", "2")
    assert shown.out.count("valid  d0") == 2
    assert "2 of 30 documents: 2 valid" in shown.out


def test_one_document_can_be_asked_for_and_one_that_is_not_there_is_an_error(folder: Path, say: Say) -> None:
    assert [row["document_id"] for row in say("preview", "job.yaml", "--document", "d017", "--json").json] == ["d017"]
    missing = say("preview", "job.yaml", "--document", "d99")
    assert missing.code == 2
    assert "none of the 30 documents" in missing.err


def test_rows_without_a_text_are_shown_with_their_cause(folder: Path, say: Say) -> None:
    put_lines(folder / "in" / "a.jsonl", [{"document_id": "e", "text": " "}, {"document_id": "n", "text": None}])
    shown = say("preview", "job.yaml", "--json")
    assert [(row["document_id"], row["cause"]) for row in shown.json] == [("e", "empty"), ("n", "null_text")]
    assert shown.code == 0


def test_the_page_holds_every_document_escaped(folder: Path, say: Say) -> None:
    put_lines(folder / "in" / "a.jsonl", [{"document_id": "<i>", "text": "note 3 <script>alert(1)</script> \x1b[2J"}])
    say("preview", "job.yaml", "--html", "out/p.html")
    page = (folder / "out" / "p.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\x1b[2J" in page
    assert "&lt;i&gt;" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


@pytest.mark.parametrize("place", [".", "/", "in"])
def test_a_folder_for_the_page_is_refused_before_an_engine_starts(
    place: str, folder: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("pipeline.run.preview.preview")
    monkeypatch.delattr("pipeline.run.trace.trace")
    for command in (
        ("preview", "--html"),
        ("trace", "--document", "d007", "--out"),
        ("trace", "--document", "d007", "-o"),
    ):
        refused = say(command[0], "job.yaml", *command[1:], place)
        assert refused.code == 2
        assert f"'{place}' is a directory" in refused.err


@pytest.mark.parametrize("kind", ["text", "parquet", "glob", "list", "partitioned"])
def test_every_kind_of_input_is_read(kind: str, folder: Path, say: Say) -> None:
    rows = [{"document_id": f"p{number}", "text": f"note {number} here", "extra": number} for number in range(4)]
    place = folder / kind
    place.mkdir()
    columns: dict[str, object] = {"columns": ["extra"]}
    if kind == "text":
        (place / "x.txt").write_text("note 0 here")
        columns = {}
    elif kind == "partitioned":
        for day in ("day=2026-01-01", "day=2026-01-02"):
            (place / day).mkdir()
        pq.write_table(pa.Table.from_pylist(rows[:2]), place / "day=2026-01-01" / "a.parquet")
        pq.write_table(pa.Table.from_pylist(rows[2:]), place / "day=2026-01-02" / "a.parquet")
        (place / "_SUCCESS").touch()
    else:
        pq.write_table(pa.Table.from_pylist(rows[:2]), place / "a.parquet")
        pq.write_table(pa.Table.from_pylist(rows[2:]), place / "b.parquet")
    uri = {"glob": f"{place}/*.parquet", "list": [f"{place}/a.parquet", f"{place}/b.parquet"]}.get(kind, str(place))
    put_job(folder, input={"uri": uri, **columns})
    found = say("preview", "job.yaml", "--json").json
    if kind != "text":
        assert [row["columns"] for row in found] == [{"extra": number} for number in range(4)]
    assert [row["record"]["number"] for row in found] == ([0] if kind == "text" else [0, 1, 2, 3])


def test_columns_that_are_passed_through_are_shown_with_their_document(folder: Path, say: Say) -> None:
    place = folder / "passed" / "day=2026-11-29"
    place.mkdir(parents=True)
    rows = [{"document_id": "p0", "text": "note 0 here", "source": "scan", "key": b"\xff", "rate": float("nan")}]
    pq.write_table(pa.Table.from_pylist(rows), place / "a.parquet")
    put_job(folder, input={"uri": str(folder / "passed"), "columns": ["day", "source", "key", "rate"]})
    asked = ("preview", "job.yaml", "--html", "p.html")
    shown = say(*asked).out
    assert "day: 2026-11-29" in shown
    assert "source: scan" in shown
    assert "<dt>source</dt><dd>scan</dd>" in (folder / "p.html").read_text()
    expected = {"day": "2026-11-29", "source": "scan", "key": "_w==", "rate": "NaN"}
    assert say(*asked, "--json").json[0]["columns"] == expected
    traced = ("trace", "job.yaml", "--document", "p0", "-o", "t.html")
    assert say(*traced).code == 0
    assert "<dt>day</dt><dd>2026-11-29</dd>" in (folder / "t.html").read_text()
    assert say(*traced, "--json").json["outcome"]["extra"] == expected


def test_rows_that_cannot_be_read_are_shown_with_what_their_folder_says(folder: Path, say: Say) -> None:
    place = folder / "torn" / "day=2026-11-29"
    place.mkdir(parents=True)
    rows = [{"document_id": f"p{number}", "text": f"note {number} here"} for number in range(3)]
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    pq.write_table(pa.Table.from_pylist(rows), place / "a.parquet", **options)
    data = (place / "a.parquet").read_bytes()
    (place / "a.parquet").write_bytes(data.replace(b"note 1", b"nope 1", 1))
    put_job(folder, input={"uri": str(folder / "torn"), "columns": ["day"]})
    found = say("preview", "job.yaml", "--json").json
    assert {row["cause"] for row in found} == {"unreadable"}
    assert [row["columns"] for row in found] == [{"day": "2026-11-29"}] * 3
