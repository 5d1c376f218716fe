"""What makes two submissions the same run, and how a difference is said."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.fingerprint import differences, fingerprint_of, hidden_settings, identity_of, without_secrets

SCHEMA = {"properties": {"shop": {"type": "string"}, "total": {"type": "number"}}}
ETAGS = {"s3://b/in/a.parquet": "1", "s3://b/in/b.parquet": "2"}


def _spec(**changes: Any) -> JobSpec:
    raw: dict[str, Any] = {
        "name": "n",
        "input": {"uri": "s3://b/in/"},
        "record": "m:R",
        "model": {"name": "m"},
        "output": {"uri": "s3://b/out/"},
    }
    for name, value in changes.items():
        raw[name] = {**raw.get(name, {}), **value}
    return parse_spec(raw, source="test")


def _fingerprint(spec: JobSpec, etags: dict[str, str] = ETAGS, **changes: Any) -> str:
    made = {"schema": SCHEMA, "template": None, "prompt": "p", "guide": "g", **changes}
    return fingerprint_of(identity_of(spec, **made), etags)


@pytest.mark.parametrize(
    "changes",
    [
        {"decoding": {"max_tokens": 99}},
        {"truncation": {"policy": "close", "escalate": [1024]}},
        {"prompt": {"system": "Be brief."}},
        {"model": {"revision": "abc"}},
        {"model": {"engine": {"max_model_len": 100}}},
        {"input": {"text": "body"}},
        {"input": {"shard_rows": 7}},
    ],
)
def test_what_changes_a_record_changes_the_fingerprint(changes: dict[str, Any]) -> None:
    assert _fingerprint(_spec(**changes)) != _fingerprint(_spec())


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": {"engines": 3}},
        {"limits": {"attempts_per_shard": 9}},
        {"model": {"engine": {"gpu_memory_utilization": 0.5}}},
        {"model": {"engine": {"hf_token": "a-secret"}}},
        {"s3": {"region": "eu-west-1"}},
    ],
)
def test_what_does_not_change_a_record_may_change_between_submissions(changes: dict[str, Any]) -> None:
    assert _fingerprint(_spec(**changes)) == _fingerprint(_spec())


def test_schema_prompt_guide_and_objects_are_part_of_it() -> None:
    spec = _spec()
    others = [
        _fingerprint(spec, schema={"properties": {}}),
        _fingerprint(spec, prompt="q"),
        _fingerprint(spec, guide="h"),
        _fingerprint(spec, {**ETAGS, "s3://b/in/a.parquet": "3"}),
        _fingerprint(spec, {"s3://b/in/a.parquet": "1"}),
    ]
    assert len({_fingerprint(spec), *others}) == 6


def test_every_difference_is_named() -> None:
    before = identity_of(_spec(), schema=SCHEMA, template=None, prompt="p", guide="g")
    schema = {"properties": {"shop": {"type": "string"}, "date": {"type": "string"}}}
    now = identity_of(_spec(decoding={"max_tokens": 99}), schema=schema, template="long " * 40, prompt="q", guide="g")
    said = differences(before, now, ETAGS, {"s3://b/in/a.parquet": "9", "s3://b/in/c.parquet": "3"})
    text = "; ".join(said)
    assert "decoding.max_tokens: 512 there, 99 here" in text
    assert "record.fields.date: nothing there" in text
    assert "record.fields.total" in text
    assert 'prompt.template: null there, "sha256:' in text
    assert "replaced since: s3://b/in/a.parquet" in text
    assert "gone: s3://b/in/b.parquet" in text
    assert "new: s3://b/in/c.parquet" in text


def test_the_same_run_differs_in_nothing() -> None:
    identity = identity_of(_spec(), schema=SCHEMA, template=None, prompt="p", guide="g")
    assert differences(identity, identity, ETAGS, ETAGS) == ()


def test_a_secret_that_is_rotated_changes_nothing_at_any_depth() -> None:
    first, second = (
        _fingerprint(_spec(model={"name": "m", "engine": {"extra": {"api_key": key, "threads": 2}}})) for key in "ab"
    )
    assert first == second
    assert hidden_settings(without_secrets({"extra": [{"api_key": "a"}]}), "engine") == ["engine.extra.0.api_key"]
