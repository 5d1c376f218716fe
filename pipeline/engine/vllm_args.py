"""From a `ModelSpec` to vLLM's engine arguments: defaults, and what can be refused before vLLM is asked.

vLLM reads a part of its settings from the environment alone; they are given defaults here and nowhere else, and what
the user set stands.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import GuideName, ModelSpec

__all__ = [
    "RANK_SIZES",
    "check_model",
    "cpu_arguments",
    "cpu_dtype",
    "engine_arguments",
    "fits_engine_core",
    "is_folder",
    "scheduler_name",
    "set_cpu_environment",
    "set_environment",
    "stock_backend",
]

RANK_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "prefill_context_parallel_size")
"""What vLLM multiplies to the ranks of one engine."""

_CPU_WORKER = "pipeline.engine.cpu_worker.MaskingCPUWorker"
"""What vLLM's `worker_cls` names on a CPU."""

_CPU_KV_CACHE_GIB = 2
_BINDING = "VLLM_CPU_OMP_THREADS_BIND"
_CPU_FACTS = Path("/proc/cpuinfo")


def is_folder(model: ModelSpec) -> bool:
    """Whether the model is named by a path, not by its name on a hub."""
    name = model.name
    return name.startswith((".", "/", "~")) or name.count("/") != 1 or Path(name).is_dir()


def check_model(model: ModelSpec) -> None:
    """Looks at a model folder before anything heavy is started; hub names are left to the hub.

    Raises:
        EngineStartError: the folder is missing, is no model folder, or has no safetensors weights.
    """
    if not is_folder(model):
        return
    folder = Path(model.name).expanduser()
    if folder.exists() and not folder.is_dir():
        raise EngineStartError(f"model.name {model.name} is a file; name the folder that holds config.json")
    if not folder.is_dir():
        hint = "" if "/" in model.name else "; a model of the hub is named owner/name"
        raise EngineStartError(f"model folder {model.name} does not exist{hint}")
    if not (folder / "config.json").is_file():
        raise EngineStartError(f"model folder {model.name} has no config.json")
    if model.engine.get("load_format", "safetensors") == "safetensors" and not any(folder.glob("*.safetensors")):
        raise EngineStartError(f"model folder {model.name} has no *.safetensors file; other weights are not loaded")


def set_environment(model: ModelSpec) -> None:
    """Gives defaults to the settings that vLLM takes from the environment alone.  Call before vLLM is imported."""
    defaults = {
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "VLLM_NO_USAGE_STATS": "1",
        # A fork of a process with threads may hold for ever what one of them held, such as a compiler's lock.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        # FlashInfer's sampler is compiled at the start, with a CUDA toolkit that an image need not have; it is faster
        # for top-k and top-p alone, which no request here asks for.
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "TOKENIZERS_PARALLELISM": "false",
    }
    if is_folder(model):
        defaults["HF_HUB_OFFLINE"] = "1"
    _set_unset(defaults)


def set_cpu_environment() -> None:
    """The same, for engines without a GPU.

    Threads are left to the operating system: two engines of one node would else be bound to the same cores.
    """
    _set_unset({"VLLM_CPU_KVCACHE_SPACE": str(_CPU_KV_CACHE_GIB), _BINDING: "nobind"})


def _set_unset(defaults: dict[str, str]) -> None:
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def stock_backend(guide: GuideName) -> str:
    """The structured-output backend that vLLM is told of; ours stands in for its Outlines backend."""
    return "outlines" if guide == "recordmill" else guide


def scheduler_name(*, is_async: bool, is_measured: bool = False) -> str:
    """What vLLM's `scheduler_cls` names for our guides, of the kind that the engine needs.

    Args:
        is_async: whether a step is prepared while the last one runs.
        is_measured: whether it says what masks take, which only our own stat logger understands.
    """
    kind = ("Measured" if is_measured else "Guided") + ("Async" if is_async else "")
    return f"pipeline.engine.scheduler.{kind}Scheduler"


def cpu_arguments() -> dict[str, Any]:
    """Engine arguments where there is no GPU.

    A request with a seed of its own whose prompt is read in more than one step kills the engine core of vLLM 0.32 on a
    CPU ("CPU Generator does not use offset"): prompts are read in one step there.
    """
    return {"enable_chunked_prefill": False, "worker_cls": _CPU_WORKER}


def cpu_dtype() -> str:
    """vLLM's `dtype` for this machine's CPU: the model's own, or `float32` where the CPU knows no bfloat16.

    PyTorch then multiplies numbers of that type one by one: with AVX2 alone, 8 prompts of 400 tokens and 40 tokens more
    of SmolLM2-135M took 63 s in bfloat16 and 12 s in float32, on two cores.
    """
    words = _CPU_FACTS.read_text(encoding="utf-8", errors="replace").split() if _CPU_FACTS.exists() else []
    return "auto" if any("bf16" in word for word in words) else "float32"


def fits_engine_core(arguments: Mapping[str, Any], guide_backend: GuideName) -> bool:
    """Whether an engine without a GPU runs its model inside its engine core, as one with a GPU does.

    vLLM gives the model a process of its own there, and the two wait for each other by spinning: with threads left to
    the operating system, two cores took 70 s for 1,500 short notes, and 45 s in one process.  But in one process masks
    are not made while the model runs.  Those of our guides take a millisecond for 256 requests; other backends, which
    may take a hundred (`docs/benchmarks.md`), keep vLLM's way.  So do threads that are bound, and several ranks.

    Args:
        arguments: of the engine; call after `set_cpu_environment`.
        guide_backend: what guides its requests.
    """
    return (
        guide_backend in ("recordmill", "none")
        and arguments.get("distributed_executor_backend") in (None, "uni")
        and all(arguments.get(name, 1) == 1 for name in RANK_SIZES)
        and os.environ.get(_BINDING) == "nobind"
    )


def engine_arguments(
    model: ModelSpec, guide_backend: GuideName, *, known: type, is_cpu: bool, seed: int
) -> dict[str, Any]:
    """Keyword arguments for vLLM's `AsyncEngineArgs`; what the job spec sets under `model.engine` stands.

    Args:
        known: the class that takes them, to tell a misspelt key.

    Raises:
        EngineStartError: `model.engine` has a key that this vLLM does not know.
    """
    arguments: dict[str, Any] = {
        "model": str(Path(model.name).expanduser()) if is_folder(model) else model.name,
        "revision": model.revision,
        "tokenizer_revision": model.revision,
        "trust_remote_code": False,
        "load_format": "safetensors",
        "enable_prefix_caching": True,
        "seed": seed,
        "disable_log_stats": True,
        "enable_log_requests": False,
        "use_tqdm_on_load": False,
    }
    if is_cpu:
        arguments |= {"dtype": cpu_dtype(), **cpu_arguments()}
    fields = {field.name for field in dataclasses.fields(known)}
    if unknown := sorted(model.engine.keys() - fields):
        raise EngineStartError(f"model.engine: this vLLM knows no {', '.join(unknown)}")
    arguments |= model.engine
    if guide_backend != "none":
        settings = arguments.get("structured_outputs_config", {})
        arguments["structured_outputs_config"] = {**settings, "backend": stock_backend(guide_backend)}
    return arguments
