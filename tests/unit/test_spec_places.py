"""Input and output are the same places in every process, and do not hold each other, however they are spelt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import SpecError
from pipeline.core.spec import check_input_apart, parse_spec


def _spec(source: Any, output: str) -> None:
    raw = {"name": "t", "input": {"uri": source}, "record": "a:B", "model": {"name": "m"}, "output": {"uri": output}}
    check_input_apart(parse_spec(raw, source="t"))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("documents/", "."),
        ("documents", "documents/"),
        ("documents/", "./documents/out/"),
        ("documents/", "{here}/documents/out/"),
        ("{here}/documents/", "documents/out"),
        ("file://{here}/documents/", "documents/out"),
        ("file://{here}/a#1/", "a#1/out"),
        ("documents/*.parquet", "./documents/out"),
        (["other/", "documents/"], "./documents/out"),
        ("s3://b/in/", "s3://b/in/out/"),
        ("s3://b/in/", "s3://b/"),
        ("s3://b/receipts*", "s3://b/receipts-out/"),
        ("s3://b/2024-*/", "s3://b/2024-out/"),
        ("./receipts*", "receipts-out/"),
    ],
)
def test_one_inside_the_other_is_refused(
    source: Any, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when places are compared as they are written."""
    monkeypatch.chdir(tmp_path)
    filled = (
        [item.format(here=tmp_path) for item in source] if isinstance(source, list) else source.format(here=tmp_path)
    )
    with pytest.raises(SpecError, match=r"lies inside|contains the input"):
        _spec(filled, output.format(here=tmp_path))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("documents/", "documents-out/"),
        ("s3://b/in/", "s3://b/in-out/"),
        ("a/in", "a/out"),
        ("s3://b/receipts*", "s3://b/out/receipts/"),
        ("s3://b/receipts-[0-9]*", "s3://b/receipts-out/"),
    ],
)
def test_beside_each_other_is_fine(source: str, output: str) -> None:
    _spec(source, output)


def test_a_pattern_that_is_none_is_said_so() -> None:
    with pytest.raises(SpecError, match=r"docs/\*\*\.parquet.*is no pattern"):
        _spec("s3://b/docs/**.parquet", "s3://b/out/")


@pytest.mark.parametrize(
    ("spelt", "expected"),
    [
        ("documents/", "{here}/documents/"),
        ("./documents/*.jsonl", "{here}/documents/*.jsonl"),
        ("/data/documents/", "/data/documents/"),
        ("file:///data/documents/", "file:///data/documents/"),
        ("s3://b/in/", "s3://b/in/"),
        (["documents/", "/data/more"], ("{here}/documents/", "/data/more")),
    ],
)
def test_local_places_can_be_named_from_the_root(
    spelt: Any, expected: str | tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    raw = {"name": "t", "input": {"uri": spelt}, "record": "a:B", "model": {"name": "m"}, "output": {"uri": "out/"}}
    spec = parse_spec(raw, source="t").with_absolute_uris()
    filled = [item.format(here=tmp_path) for item in ((expected,) if isinstance(expected, str) else expected)]
    assert spec.input.uris == tuple(filled)
    assert spec.output.uri == f"{tmp_path}/out/"
    monkeypatch.chdir("/")
    assert spec.with_absolute_uris() == spec


@pytest.mark.parametrize("uri", ["file://data/in/", "file://localhost/data/", "file:/data/", "FILE:///data/"])
def test_a_file_uri_that_is_no_path_from_the_root_is_refused(uri: str) -> None:
    """Fails when the store takes it for another place than the comparison does."""
    for source, output in ((uri, "out/"), ("in/", uri)):
        with pytest.raises(SpecError, match=r"names no file of this machine; write file:///"):
            _spec(source, output)
