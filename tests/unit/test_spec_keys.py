"""What a job spec gets wrong is named with its place and with what was meant or wanted there."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.errors import SpecError
from pipeline.core.spec import parse_spec


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decoding": {"max_token": 5}}, "decoding.max_token: unknown key; did you mean 'max_tokens'?"),
        ({"decoding": {"Seed": 5}}, "decoding.Seed: unknown key; did you mean 'seed'?"),
        ({"promt": {}}, "promt: unknown key; did you mean 'prompt'?"),
        ({"max_tokens": 5}, "max_tokens: unknown key; did you mean 'decoding.max_tokens'?"),
        (
            {"truncation": {"temperature": 0}},
            "truncation.temperature: unknown key; did you mean 'decoding.temperature'?",
        ),
        (
            {"prompt": {"examples": [{"text": "t", "record": {}, "recrod": {}}]}},
            "prompt.examples.0.recrod: unknown key; did you mean 'record'?",
        ),
        (
            {"rerun": {"of": "a", "status": ["failed"], "causes": []}},
            "rerun.causes: unknown key; did you mean 'cause'?",
        ),
        ({"truncation": {"record": "a:B"}}, "truncation.record: unknown key; did you mean 'record'?"),
        ({"decoding": {"zzz": 5}}, "decoding.zzz: unknown key"),
        ({"name_": "x", "outputs": {}}, "name_: unknown key; did you mean 'name'?; outputs: unknown key;"),
    ],
)
def test_it_is_named_with_what_was_meant(changes: dict[str, Any], said: str) -> None:
    raw = {"name": "t", "input": {"uri": "in"}, "record": "a:B", "model": {"name": "m"}, "output": {"uri": "out"}}
    with pytest.raises(SpecError) as caught:
        parse_spec({**raw, **changes}, source="job.yaml")
    assert str(caught.value).startswith("job.yaml: ")
    assert said in str(caught.value)
    if said.endswith("key"):
        assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decoding": "512"}, "decoding: is a section: its keys stand beneath it, indented"),
        ({"prompt": None}, "prompt: is a section: its keys stand beneath it, indented"),
        ({"decoding": {"max_tokens": "many"}}, "decoding.max_tokens: must be an integer"),
        ({"truncation": {"escalate": 1024}}, "truncation.escalate: must be a list"),
        ({"truncation": {"escalate": [0]}}, "truncation.escalate.0: must be greater than or equal to 1"),
        ({"cluster": {"engines": "many"}}, "cluster.engines: must be an integer or must be 'auto'"),
        ({"input": {"uri": ["in/", 3]}}, "input.uri.1: must be text; put a number or a date in quotes"),
        ({"input": {}}, "input.uri: is required"),
        (
            {"output": {"uri": "~/run/"}},
            "output.uri: '~/run/' begins with '~', which stands for a home in a shell alone; write the path in full",
        ),
        (
            {"s3": {"endpoint_url": "127.0.0.1:9000"}},
            "s3.endpoint_url: an endpoint is http:// or https:// and a host, as http://127.0.0.1:9000",
        ),
        ({"name": "my job"}, "name: 'my job': up to 100 letters, digits, '_', '.' and '-', a letter or digit first"),
        (
            {"model": {"name": "m", "revision": 1234567}},
            "model.revision: must be text; put a number or a date in quotes",
        ),
    ],
)
def test_a_wrong_value_is_named_in_the_words_of_the_file(changes: dict[str, Any], said: str) -> None:
    """Fails when Pydantic's names for its own classes and for the kinds of a union are shown."""
    raw = {"name": "t", "input": {"uri": "in"}, "record": "a:B", "model": {"name": "m"}, "output": {"uri": "out"}}
    with pytest.raises(SpecError) as caught:
        parse_spec({**raw, **changes}, source="job.yaml")
    assert str(caught.value) == f"job.yaml: {said}"


def test_an_empty_file_is_said_to_be_one() -> None:
    with pytest.raises(SpecError, match="a mapping of keys, not nothing"):
        parse_spec(None, source="job.yaml")
