"""How many engines fit, and what is said when none does."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.core.sections import ClusterSpec, ModelSpec
from pipeline.run.capacity import Need, engines_that_fit, missing, need_of

GPU_MACHINE = {"CPU": 8.0, "GPU": 4.0}
CPU_MACHINE = {"CPU": 16.0}


def _need(gpus: float, cpus: float = 1.0, **engine: Any) -> Need:
    return need_of(
        ClusterSpec(gpus_per_engine=gpus, cpus_per_engine=cpus), ModelSpec(name="some/model", engine=dict(engine))
    )


def test_a_model_on_as_many_gpus_as_an_engine_has_stays_on_one_machine() -> None:
    assert _need(4, tensor_parallel_size=4) == Need(1.0, 4.0)
    assert _need(0, tensor_parallel_size=4) == Need(1.0, 0.0)
    assert _need(0.5) == Need(1.0, 0.5)


@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_a_model_on_more_gpus_than_an_engine_has_gets_a_place_for_each_rank(gpus: float) -> None:
    need = _need(gpus, 2.0, tensor_parallel_size=2, pipeline_parallel_size=2)
    assert need == Need(2.0, 1.0, ranks=4)
    assert need.bundles == [{"CPU": 2.0, "GPU": 1.0}, {"GPU": 1.0}, {"GPU": 1.0}, {"GPU": 1.0}]


def test_every_size_that_multiplies_the_gpus_of_an_engine_is_counted() -> None:
    assert _need(1, tensor_parallel_size=2, prefill_context_parallel_size=2) == Need(1.0, 1.0, ranks=4)


def test_an_engine_that_would_be_several_is_refused() -> None:
    assert _need(1, data_parallel_size=1) == Need(1.0, 1.0)
    with pytest.raises(ValidationError, match=r"set cluster\.engines"):
        _need(1, data_parallel_size=2)


def test_a_size_that_makes_no_sense_is_left_to_the_engine() -> None:
    assert _need(1, tensor_parallel_size="many") == Need(1.0, 1.0)


@pytest.mark.parametrize(
    ("machines", "need", "fits"),
    [
        ([GPU_MACHINE, CPU_MACHINE], Need(1, 1), 4),
        ([GPU_MACHINE], Need(4, 1), 2),
        ([GPU_MACHINE, CPU_MACHINE], Need(1, 0), 24),
        ([{"CPU": 4, "GPU": 1}] * 3, Need(1, 2), 0),
        ([{"CPU": 4, "GPU": 1}] * 3, Need(1, 1, ranks=2), 1),
        ([{"CPU": 4, "GPU": 1}] * 4, Need(1, 1, ranks=2), 2),
        ([{"CPU": 0, "GPU": 4}], Need(1, 1, ranks=2), 0),
        ([{"CPU": 1, "GPU": 2}, {"CPU": 0, "GPU": 2}], Need(1, 1, ranks=2), 1),
        ([], Need(1, 1, ranks=2), 0),
        ([{"CPU": 8, "GPU": 3}] * 2, Need(1, 2), 2),
        ([{"CPU": 8, "GPU": 1}], Need(1, 0.25), 4),
        ([{"CPU": 2}], Need(0.1, 0), 20),
    ],
)
def test_engines_are_counted_as_ray_can_place_them(machines: list[dict[str, float]], need: Need, fits: int) -> None:
    assert engines_that_fit(machines, need) == fits


@pytest.mark.parametrize(
    ("machines", "need", "words"),
    [
        ([CPU_MACHINE], Need(1, 1), ("no machine has enough GPU", "gpus_per_engine: 0")),
        ([GPU_MACHINE], Need(16, 1), ("no machine has enough CPU", "cpus_per_engine")),
        ([{"CPU": 1, "GPU": 1}, CPU_MACHINE], Need(2, 1), ("no machine has both",)),
        ([GPU_MACHINE], Need(1, 1, ranks=8), ("8 times 1 GPU", "together have fewer GPUs", "tensor_parallel_size")),
        ([GPU_MACHINE], Need(1, 1), ("all of it is taken",)),
        ([], Need(1, 1), ("machines: none",)),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(
    machines: list[dict[str, float]], need: Need, words: tuple[str, ...]
) -> None:
    said = missing(machines, need)
    for word in words:
        assert word in said
