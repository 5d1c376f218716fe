"""What is found out about vLLM before an engine is started."""

from __future__ import annotations

import pytest

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import ModelSpec
from pipeline.engine import vllm_engine, vllm_names
from pipeline.engine.vllm_engine import VllmEngine


def test_a_gpu_that_was_not_given_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_names, "vllm_version", lambda: "1")
    monkeypatch.setattr(vllm_names, "is_cpu", lambda: False)
    for gpus in (None, 0.5, 1):
        vllm_names.check_device(gpus)
    with pytest.raises(EngineStartError, match=r"set cluster\.gpus_per_engine: 1"):
        vllm_names.check_device(0)
    monkeypatch.setattr(vllm_names, "is_cpu", lambda: True)
    for gpus in (0, 1):
        vllm_names.check_device(gpus)


@pytest.mark.asyncio
async def test_an_engine_is_refused_before_anything_of_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_engine, "set_environment", lambda model: None)
    monkeypatch.setattr(vllm_engine, "check_vllm", lambda: None)
    monkeypatch.setattr(vllm_names, "is_cpu", lambda: False)
    monkeypatch.setattr(vllm_engine, "Tether", None)
    with pytest.raises(EngineStartError, match="not the CPU build"):
        await VllmEngine.start(ModelSpec(name="a/b"), guides={}, guide_backend="none", silence_s=1, start_s=1, gpus=0)
