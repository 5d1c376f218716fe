"""A job spec that is no YAML is refused with the place, and nothing that stands in it is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cli.specs import load_spec
from pipeline.core.errors import SpecError

WHOLE = "name: t\ninput: {uri: in/}\nrecord: a:B\nmodel: {name: m}\noutput: {uri: out/}\n"


@pytest.mark.parametrize(
    ("added", "said"),
    [
        (
            "decoding: {max_tokens: 5}\ndecoding: {seed: 1}\n",
            "line 7, column 1: the key 'decoding' stands",
        ),
        ("limits:\n  shard_s: 1\n  shard_s: 2\n", "line 8, column 3: the key 'shard_s' stands here a second time"),
        (
            "decoding:\n\tmax_tokens: 5\n",
            "line 7, column 1: found character '\\t' that cannot start any token; ind",
        ),
        (
            "prompt:\n  system: Note: be brief\n",
            "line 7, column 15: mapping values are not allowed here; if the ':'",
        ),
        ("prompt: {system: @you}\n", "; if the '@' belongs to a text, put that in quotes"),
    ],
)
def test_the_place_and_the_way_out_are_said(added: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(WHOLE + added)
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path}: not YAML at line ")
    assert said in str(caught.value)


def test_an_endpoint_of_the_environment_that_is_none_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when it is left to the S3 client, which ends with a traceback."""
    path = tmp_path / "job.yaml"
    path.write_text(WHOLE)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "127.0.0.1:9000")
    with pytest.raises(SpecError, match=r"^AWS_ENDPOINT_URL_S3: an endpoint is http:// or https:// and a host"):
        load_spec(path)
    path.write_text(f"{WHOLE}s3: {{endpoint_url: 'http://127.0.0.1:9000'}}\n")
    assert load_spec(path).s3.endpoint_url == "http://127.0.0.1:9000"


def test_a_key_may_stand_once_in_each_section_and_override_what_is_merged_into_it(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(WHOLE.replace("{name: m}", "&m {name: m, engine: {seed: 1}}") + "rerun: null\n")
    assert load_spec(path).model.engine == {"seed": 1}
    path.write_text(WHOLE.replace("{name: m}", "{<<: {name: x, revision: r}, name: m}"))
    assert load_spec(path).model.name == "m"
    deep = "engine: {hf_overrides: &mid {<<: &base {a: 1}, a: 2}, more: {<<: *mid}}"
    path.write_text(WHOLE.replace("{name: m}", "{name: m, " + deep + "}"))
    assert set(load_spec(path).model.engine) == {"hf_overrides", "more"}
