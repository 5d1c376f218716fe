"""What an engine is started with, beside what the job says under `model.engine`."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.core.errors import SpecError
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run import engines
from pipeline.run.messages import EngineContext

RAW = {"name": "t", "input": {"uri": "in"}, "record": "a:B", "output": {"uri": "out"}}


class Started:
    """What stands in for an engine's class, and remembers what it was started with."""

    async def start(self, model: Any, **arguments: Any) -> Any:
        self.model = model
        self.arguments = arguments
        return self


def spec_of(engine: dict[str, Any] | None = None, **cluster: Any) -> JobSpec:
    model = {"name": "some/model", "engine": engine or {}}
    return parse_spec({**RAW, "model": model, "cluster": cluster}, source="test")


def test_a_part_of_a_gpu_is_taken_of_one_only() -> None:
    assert spec_of(gpus_per_engine=2).cluster.gpus_per_engine == 2
    with pytest.raises(SpecError, match=r"cluster\.gpus_per_engine: 1\.5 .*whole GPUs"):
        spec_of(gpus_per_engine=1.5)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    started = Started()
    monkeypatch.setattr(engines, "VllmEngine", started)
    return started


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("engine", "cluster", "arguments"),
    [
        ({}, {"concurrency": 300}, {"max_num_seqs": 300}),
        ({"max_num_seqs": 20}, {"concurrency": 300}, {"max_num_seqs": 20}),
        ({}, {"concurrency": 3000}, {"max_num_seqs": 2048}),
        (
            {"max_num_batched_tokens": 512},
            {"concurrency": 600},
            {"max_num_seqs": 512, "max_num_batched_tokens": 512},
        ),
        ({}, {"gpus_per_engine": 0.5}, {"max_num_seqs": 64, "gpu_memory_utilization": 0.46}),
        (
            {"gpu_memory_utilization": 0.3},
            {"gpus_per_engine": 0.5},
            {"max_num_seqs": 64, "gpu_memory_utilization": 0.3},
        ),
        (
            {"tensor_parallel_size": 2},
            {"gpus_per_engine": 0.5},
            {"max_num_seqs": 64, "tensor_parallel_size": 2, "distributed_executor_backend": "ray"},
        ),
    ],
)
async def test_vllm_is_asked_for_what_the_cluster_section_says(
    started: Started, engine: dict[str, Any], cluster: dict[str, Any], arguments: dict[str, Any]
) -> None:
    await engines.start_engine(EngineContext(spec_of(engine, **cluster), {}))
    assert started.model.engine == arguments
    assert started.arguments["gpus"] == cluster.get("gpus_per_engine", 1)
