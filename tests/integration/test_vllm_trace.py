"""A trace by vLLM itself: masked and free probabilities come from different requests and must fit together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.cli import main
from tests.unit.cli.conftest import put_job, put_lines

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def test_what_the_mask_left_and_what_the_model_gave_fit_together_at_every_step(
    tmp_path: Path, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    put_lines(tmp_path / "in" / "a.jsonl", [{"document_id": "d", "text": "note 7 of some length"}])
    put_job(
        tmp_path,
        model={"name": str(tiny_llama), "engine": {"dtype": "float32", "enforce_eager": True, "max_model_len": 1024}},
        decoding={"max_tokens": 26},
    )
    capfd.readouterr()
    assert main(["trace", "job.yaml", "--document", "d", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    steps = found["steps"]
    assert found["note"] is None
    assert json.loads("".join(step["text"] for step in steps[:-1])) == found["outcome"]["record"]
    assert found["unguided"]["text"]
    assert any(step["is_tightened"] for step in steps)
    for step in steps[:-1]:
        assert 0 < step["free"] <= step["legal_mass"] * 1.01
        assert step["masked"] is not None
        if step["legal_tokens"] == 1:
            assert step["masked"] == pytest.approx(1.0, abs=1e-4)
        known = sum(candidate["free"] or 0 for candidate in step["candidates"] if candidate["is_legal"])
        assert known <= step["legal_mass"] * 1.01
