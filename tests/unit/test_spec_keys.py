"""An unknown key of a job spec is refused with the key that was meant."""

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
