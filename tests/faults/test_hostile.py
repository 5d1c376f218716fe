"""What a job, an input or its keys must never reach: other paths, the shell, and any artefact of a run."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from ray.cluster_utils import Cluster

from demo.s3 import S3Server
from pipeline.core.errors import RecordImportError, SpecError, StorageAccessError
from pipeline.core.spec import parse_spec
from pipeline.run.job import run
from pipeline.run.preflight import prepare_job
from pipeline.run.submission import redacted
from tests.faults.driver import start_driver
from tests.integration.scripted import assert_each_once, documents, job, put_parquet, store_of

KEY = "hf_abcdefghijklmnopqrstuvwx"


@pytest.mark.ray
@pytest.mark.s3
@pytest.mark.slow
def test_no_secret_is_in_any_object_log_or_command_line_of_a_run(
    cluster: Cluster,
    s3_bucket: str,
    s3_server: S3Server,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails when `submission.versions` also stores `os.environ`, or a log line says which key is used."""
    caplog.set_level(logging.DEBUG, "pipeline")
    store = store_of(s3_bucket, s3_server.endpoint_url)
    put_parquet(store, f"{s3_bucket}in/a.parquet", documents(40))
    spec = job(s3_bucket, s3_server.endpoint_url, cluster={"engines": 1})
    said = [("command lines", text) for text in _command_lines()]
    process = start_driver(spec, address=cluster.address)
    while process.poll() is None:
        said += [("command lines", text) for text in _command_lines()]
        if _is_there(store, f"{spec.output.uri}_run/plan.json"):
            break
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    said += [("the driver's log", errors)]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key + "-expired")
    with pytest.raises(StorageAccessError) as refused:
        run(spec, base=Path.cwd(), address=cluster.address)
    said += [("the error", repr(refused.value)), ("the log", caplog.text)]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    said += [(item.uri, text) for item in store.list(spec.output.uri) for text in _texts(store.get(item.uri))]
    session = Path(cluster.head_node.get_session_dir_path())
    said += [(str(path), path.read_text(errors="replace")) for path in (session / "logs").rglob("*") if path.is_file()]
    assert_each_once(spec, [row["document_id"] for row in documents(40)])
    # That what is looked through is what was written: names that must be there are found.
    whole = "\n".join(text for _, text in said)
    assert all(known in whole for known in ("tests.faults.driver", "d00007", "note 7", spec.output.uri, "committed"))
    for secret in (s3_server.secret_key, s3_server.access_key):
        assert [place for place, text in said if secret in text] == []


def test_settings_of_an_engine_that_hold_secrets_are_stored_as_such() -> None:
    """Fails when `without_secrets` knows the setting's name no more, or looks at the top only."""
    spec = parse_spec(
        _raw(model={"name": "m", "engine": {"hf_token": KEY, "seed": 1, "loader": [{"s3_secret": KEY, "x": 2}]}}),
        source="t",
    )
    stored = json.dumps(redacted(spec))
    assert KEY not in stored
    assert '"hf_token": "redacted"' in stored
    assert '"seed": 1' in stored


@pytest.mark.parametrize(
    "changes",
    [
        {"output": {"uri": "s3://b/in/../other/"}},
        {"output": {"uri": "s3://b/\x00/"}},
        {"output": {"uri": "/data/../etc/"}},
        {"output": {"uri": "s3://b/"}},
        {"output": {"uri": "s3://b/in/run/"}},
        {"output": {"uri": "s3://key:secret@b/run/"}},
        {"output": {"uri": "http://example.invalid/run/"}},
        {"input": {"uri": "s3://key:secret@b/in/"}},
        {"input": {"uri": "s3://b/../c/"}},
        {"s3": {"endpoint_url": "http://key:secret@example.invalid"}},
        {"record": "os:system('id')"},
        {"record": "../../evil:Record"},
        {"record": "s3://b/evil:Record"},
        {"name": "../../etc/passwd"},
        {"name": "a\nb"},
        {"name": "<script>"},
        {"s3": {"secret_access_key": KEY}},
    ],
)
def test_a_spec_that_reaches_elsewhere_is_refused_and_its_secret_is_not_repeated(changes: dict[str, Any]) -> None:
    """Fails when `core.places.checked_uri`, `_consistent` or a pattern of a key lets it pass."""
    with pytest.raises(SpecError) as caught:
        parse_spec(_raw(**changes), source="job.yaml")
    assert "secret@" not in str(caught.value)
    assert KEY not in str(caught.value)


def test_a_record_or_template_outside_of_the_jobs_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (tmp_path / "elsewhere.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "secret.txt").write_text(KEY)
    with pytest.raises(RecordImportError):
        prepare_job(parse_spec(_raw(record="elsewhere:Record"), source="t"), folder)
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    for template in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt"):
        raw = _raw(record="tests.integration.scripted:Note", prompt={"template": template})
        with pytest.raises(SpecError, match="outside"):
            prepare_job(parse_spec(raw, source="t"), folder)


def _raw(**changes: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "name": "n",
        "input": {"uri": "s3://b/in/"},
        "record": "m:R",
        "model": {"name": "scripted"},
        "output": {"uri": "s3://b/run/"},
    }
    return raw | changes


def _command_lines() -> Iterator[str]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it has ended


def _is_there(store: Any, uri: str) -> bool:
    return store.head(uri) is not None


def _texts(data: bytes) -> Iterator[str]:
    """What an object says: its bytes as text and, of a Parquet object, what is compressed in it and its footer."""
    yield data.decode(errors="replace")
    if data[:4] == b"PAR1":
        file = pq.ParquetFile(io.BytesIO(data))
        yield repr(file.read().to_pylist()) + repr(file.schema_arrow.metadata)
