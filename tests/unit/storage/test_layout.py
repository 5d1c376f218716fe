"""Names of objects: what is formed parses back, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.storage.layout import RunLayout, shard_id_of

shard_ids = st.from_regex(r"\A[0-9a-f]{16}\Z")


@given(shard_ids, st.sampled_from(["s3://bucket/run", "s3://bucket/run/", "/data/run", "file:///data/run", "run"]))
def test_a_part_gives_its_shard_back(shard_id: str, prefix: str) -> None:
    assert shard_id_of(RunLayout(prefix).part(shard_id)) == shard_id


@given(shard_ids)
def test_a_half_is_no_part(shard_id: str) -> None:
    layout = RunLayout("s3://bucket/run")
    assert shard_id_of(layout.half(shard_id)) is None
    assert layout.half(shard_id) != layout.part(shard_id)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/run/parts/part-0123456789abcdef.parquet.tmp",
        "s3://bucket/run/parts/part-0123456789ABCDEF.parquet",
        "s3://bucket/run/parts/part-0123456789abcde.parquet",
        "s3://bucket/run/parts/x/part-0123456789abcdef.parquet",
        "s3://bucket/run/parts/.recordmill-0123.tmp",
        "s3://bucket/run/otherparts/part-0123456789abcdef.parquet",
        "s3://bucket/run/parts/part-0123456789abcdef.parquet\n",
        "s3://bucket/run/report/report.json",
    ],
)
def test_leftovers_and_strangers_are_no_parts(uri: str) -> None:
    assert shard_id_of(uri) is None


def test_every_name_lies_under_the_prefix_and_is_its_own() -> None:
    layout = RunLayout("s3://bucket/run")
    names = [
        layout.spec,
        layout.plan,
        layout.probe,
        layout.report_json,
        layout.report_html,
        layout.guide("0" * 64),
        layout.submission("2026-11-01_a"),
        layout.part("0" * 16),
        layout.half("0" * 16),
    ]
    assert all(name.startswith("s3://bucket/run/") for name in names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("bad", ["", "..", "../../etc", "a/b", "\x00", "0" * 15, "0" * 17, "G" * 16, "0" * 16 + "\n"])
def test_an_id_of_another_kind_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        RunLayout("s3://bucket/run").part(bad)
    with pytest.raises(ValueError, match="not an id"):
        RunLayout("s3://bucket/run").half(bad)


@pytest.mark.parametrize("bad", ["", "..", "a/b", "-a", "a b"])
def test_a_submission_id_cannot_lead_elsewhere(bad: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        RunLayout("s3://bucket/run").submission(bad)
