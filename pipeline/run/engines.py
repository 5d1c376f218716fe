"""Owns the choice of an engine for a worker."""

from __future__ import annotations

from typing import Any

from pipeline.core.sections import ModelSpec
from pipeline.core.spec import JobSpec
from pipeline.engine.base import Engine
from pipeline.engine.drafts import draft_arguments
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import is_scripted
from pipeline.engine.vllm_engine import VllmEngine
from pipeline.run.capacity import need_of
from pipeline.run.messages import EngineContext

__all__ = ["start_engine"]

_MEMORY_SHARE = 0.92
"""Of a GPU, that vLLM takes where it has the whole of it."""
_BATCHED_TOKENS = 2048
"""vLLM's own least `max_num_batched_tokens`, which it wants `max_num_seqs` to keep to."""


async def start_engine(context: EngineContext) -> Engine:
    """vLLM for the model that the job names; the scripted engine for the scripted model.

    Raises:
        EngineStartError: it cannot start as configured.
    """
    spec = context.spec
    engine_class: type[ScriptedEngine] | type[VllmEngine] = ScriptedEngine if is_scripted(spec.model) else VllmEngine
    return await engine_class.start(
        _model(spec),
        guides=context.guides,
        guide_backend=spec.decoding.guide,
        silence_s=spec.limits.engine_silence_s,
        start_s=spec.limits.engine_start_s,
        seed=spec.decoding.seed or 0,
        gpus=spec.cluster.gpus_per_engine,
    )


def _model(spec: JobSpec) -> ModelSpec:
    """The model, and what the job asks of vLLM beside it; what the user says under `model.engine` stands.

    Its ranks stand where Ray has room for them: vLLM refuses a model that needs more GPUs than its machine has unless
    it is told so.
    """
    if is_scripted(spec.model):
        return spec.model
    batched = spec.model.engine.get("max_num_batched_tokens")
    most = batched if isinstance(batched, int) else _BATCHED_TOKENS
    engine: dict[str, Any] = {"max_num_seqs": min(spec.cluster.concurrency, most)}
    need = need_of(spec.cluster, spec.model)
    if 0 < need.gpus < 1:
        engine["gpu_memory_utilization"] = round(_MEMORY_SHARE * need.gpus, 4)
    if need.ranks > 1:
        engine["distributed_executor_backend"] = "ray"
    if spec.decoding.drafts:
        engine |= draft_arguments(spec.decoding.drafts)
    return spec.model.model_copy(update={"engine": {**engine, **spec.model.engine}})
