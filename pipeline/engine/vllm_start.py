"""Starts vLLM's engine in a thread, within a time, with every process it starts tied to ours.

Imports vLLM: only what runs after its environment is set may import this module.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import ValidationError
from vllm import AsyncEngineArgs
from vllm.config import VllmConfig
from vllm.exceptions import VLLMError
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.executor.uniproc_executor import UniProcExecutor

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import GuideName, ModelSpec
from pipeline.engine.tether import Tether
from pipeline.engine.vllm_args import engine_arguments, fits_engine_core, scheduler_name, set_cpu_environment
from pipeline.engine.vllm_names import is_cpu, vllm_version
from pipeline.engine.vllm_progress import EngineCounters, stat_logger
from pipeline.engine.vllm_requests import one_line, reason

__all__ = ["start_vllm"]

_POLL_S = 0.2
_SOCKETS = "VLLM_RPC_BASE_PATH"
_FOLDER_CHARACTERS = 65
"""The path of a socket has 107 at most, and vLLM's names have 36."""
_START_ERRORS = (VLLMError, ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError, AssertionError)
"""What vLLM raises where it cannot start; anything else is a fault of ours."""


async def start_vllm(
    model: ModelSpec,
    guide_backend: GuideName,
    tether: Tether,
    counters: EngineCounters,
    on_progress: Callable[[], None],
    *,
    start_s: float,
    seed: int,
) -> AsyncLLM:
    """Builds the engine and gives up in time.

    Args:
        tether: each process that appears meanwhile is tied to it.
        counters: told of each step of the engine; `on_progress` is called for each that did something.
        start_s: how long it may take; where a process is about to start when it is over, until that can be tied.

    Raises:
        EngineStartError: vLLM cannot start, or was not ready in time; the caller closes the tether then.
    """
    before = {process.pid for process in multiprocessing.active_children()}
    decision = threading.Lock()
    building = asyncio.create_task(
        asyncio.to_thread(_build, model, guide_backend, seed, counters, on_progress, tether.folder, decision)
    )
    # Without its processes the thread fails soon; nobody waits for what it says then.
    building.add_done_callback(lambda task: task.cancelled() or task.exception())
    deadline = time.monotonic() + start_s
    try:
        while not building.done() and time.monotonic() < deadline:
            await asyncio.wait({building}, timeout=_POLL_S)
            _tie_new_children(tether, before)
    finally:
        if not building.done() and not decision.acquire(blocking=False):
            # The thread is starting a process, or has: what is not tied now would outlive the tether.
            while not _tie_new_children(tether, before) and not building.done():
                await asyncio.wait({building}, timeout=_POLL_S)
    if not building.done():
        raise EngineStartError(f"the engine was not ready after {start_s:g} s")
    return building.result()


@contextlib.contextmanager
def _sockets_in(folder: Path) -> Iterator[None]:
    """vLLM leaves its sockets lying where a variable says; a later engine must not look for a folder that is gone."""
    if len(str(folder)) > _FOLDER_CHARACTERS:
        yield
        return
    before = os.environ.get(_SOCKETS)
    os.environ[_SOCKETS] = str(folder)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_SOCKETS, None)
        else:
            os.environ[_SOCKETS] = before


def _tie_new_children(tether: Tether, before: set[int | None]) -> bool:
    """Whether there are any."""
    new = [process.pid for process in multiprocessing.active_children() if process.pid not in before]
    for pid in new:
        if pid is not None:
            tether.tie(pid)
    return bool(new)


def _build(
    model: ModelSpec,
    guide_backend: GuideName,
    seed: int,
    counters: EngineCounters,
    on_progress: Callable[[], None],
    folder: Path,
    decision: threading.Lock,
) -> AsyncLLM:
    """An engine that is ready to serve.  Blocks for as long as loading takes.

    Args:
        folder: for its sockets.
        decision: taken once, by this before it starts a process, or by who gives up before that.
    """
    without_gpu = is_cpu()
    if without_gpu:
        set_cpu_environment()
    arguments = engine_arguments(model, guide_backend, known=AsyncEngineArgs, is_cpu=without_gpu, seed=seed)
    if without_gpu and fits_engine_core(arguments, guide_backend):
        # The class: of the name `uni` vLLM makes `mp`.
        arguments["distributed_executor_backend"] = UniProcExecutor
    try:
        # As for `vllm.LLM`: larger batches than for a server.  On a CPU they would only take more memory.
        config = AsyncEngineArgs(**arguments).create_engine_config(None if without_gpu else UsageContext.LLM_CLASS)
        if guide_backend == "recordmill":
            _install_scheduler(config)
        if not decision.acquire(blocking=False):
            raise EngineStartError("the start was given up")
        # Ray gives this environment to workers on other machines, which have no such folder.
        with contextlib.nullcontext() if config.parallel_config.use_ray else _sockets_in(folder):
            return AsyncLLM.from_vllm_config(
                config, stat_loggers=[stat_logger(counters, on_progress)], disable_log_stats=True
            )
    except _START_ERRORS as error:
        raise EngineStartError(f"vLLM {vllm_version()} cannot start {model.name}: {_why(error)}") from error


def _why(error: BaseException) -> str:
    """The reason, and of vLLM's own checks of its settings the first that failed, without the value."""
    if not isinstance(error, ValidationError):
        return reason(error)
    first = error.errors(include_input=False, include_url=False)[0]
    setting = first["loc"][0] if first["loc"] else error.title
    return f"{setting}: {one_line(first['msg'])}"


def _install_scheduler(config: VllmConfig) -> None:
    """Names our scheduler, of the kind that vLLM chose for this platform and model."""
    if (chosen := config.scheduler_config.scheduler_cls) is not None:
        raise EngineStartError(f"this model needs the scheduler {chosen}; guide recordmill cannot be used with it")
    config.scheduler_config.scheduler_cls = scheduler_name(
        is_async=config.scheduler_config.async_scheduling, is_measured=True
    )
