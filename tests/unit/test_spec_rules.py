"""Settings that contradict each other are refused, with what goes together."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.errors import SpecError
from pipeline.core.spec import parse_spec

RAW: dict[str, Any] = {
    "name": "t",
    "input": {"uri": "in"},
    "record": "a:B",
    "model": {"name": "m"},
    "output": {"uri": "out"},
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"truncation": {"escalate": [2048, 1024]}}, "escalate must rise from rung to rung"),
        ({"truncation": {"escalate": [1024, 1024]}}, "escalate must rise from rung to rung"),
        ({"truncation": {"escalate": [512]}}, "escalate starts at 512, which is not above decoding.max_tokens 512"),
        ({"truncation": {"policy": "reject", "escalate": [1024]}}, "escalate goes with policy close, not reject"),
        ({"decoding": {"guide": "xgrammar"}}, "policy close needs decoding.guide recordmill"),
        (
            {"decoding": {"guide": "none", "drafts": 4}, "truncation": {"policy": "reject"}},
            "drafts needs decoding.guide recordmill, not none",
        ),
        ({"cluster": {"gpus_per_engine": 1.5}}, "1.5 is not a number of whole GPUs"),
        ({"rerun": {"of": "./out/", "status": ["failed"]}}, "is the run that is to be run again"),
        ({"input": {"uri": ["s3://b/in/", "in/"]}}, "objects on S3 and local files; use one kind"),
        ({"input": {"uri": []}}, "an empty list; name at least one URI"),
        ({"s3": {"endpoint_url": "http://key:hidden@example.invalid"}}, "credentials do not belong in a URL"),
        ({"output": {"uri": "s3://key:hidden@b/run/"}}, "credentials do not belong in a URI"),
        ({"output": {"uri": "gs://b/run/"}}, "has scheme 'gs'"),
        ({"model": {"name": "m", "engine": {"trust_remote_code": True}}}, "trust_remote_code cannot be set here"),
        (
            {"model": {"name": "m", "engine": {"structured_outputs_config": {"backend": "xgrammar"}}}},
            "structured_outputs_config: backend cannot be set here; decoding.guide says which backend",
        ),
        (
            {"model": {"name": "m", "engine": {"structured_outputs_config": {"reasoning_parser": "qwen3"}}}},
            "structured_outputs_config: reasoning_parser cannot be set here",
        ),
        (
            {"model": {"name": "m", "engine": {"structured_outputs_config": "xgrammar"}}},
            "structured_outputs_config is a mapping",
        ),
        ({"record": "os.system('x')"}, "is not `package.module:ClassName`"),
    ],
)
def test_it_is_refused_and_no_secret_is_repeated(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec({**RAW, **changes}, source="job.yaml")
    assert said in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"truncation": {"escalate": [513, 2048]}},
        {"decoding": {"guide": "none"}, "truncation": {"policy": "salvage"}},
        {"cluster": {"gpus_per_engine": 0.5}},
        {"cluster": {"gpus_per_engine": 2.0}},
        {"s3": {"endpoint_url": "http://example.invalid:9000"}},
    ],
)
def test_what_goes_together_is_taken(changes: dict[str, Any]) -> None:
    parse_spec({**RAW, **changes}, source="job.yaml")
