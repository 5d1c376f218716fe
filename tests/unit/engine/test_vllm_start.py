"""What is done about vLLM's start, with vLLM's own part of it replaced."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm")

from vllm.usage.usage_lib import UsageContext
from vllm.v1.executor.uniproc_executor import UniProcExecutor

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import ModelSpec
from pipeline.engine import vllm_start
from pipeline.engine.tether import Tether
from pipeline.engine.vllm_progress import EngineCounters

pytestmark = [pytest.mark.slow, pytest.mark.asyncio]

MODEL = ModelSpec(name="some/model")
SOCKETS = "VLLM_RPC_BASE_PATH"


@pytest.fixture
def tether() -> Iterator[Tether]:
    tether = Tether()
    yield tether
    tether.close()


class Vllm:
    """What stands in for vLLM: making a configuration, and an engine of it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.arguments: dict[str, Any] = {}
        self.config: Any = SimpleNamespace(parallel_config=SimpleNamespace(use_ray=False))
        self.configure: Callable[[], Any] = lambda: None
        self.engine: Callable[[], Any] = lambda: None

    def __call__(self, **arguments: Any) -> Any:
        self.arguments = arguments
        return self

    def create_engine_config(self, *arguments: Any) -> Any:
        self.asked += arguments
        self.configure()
        return self.config

    def from_vllm_config(self, config: Any, **_: Any) -> Any:
        assert config is self.config
        return self.engine()


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Vllm:
    vllm = Vllm()
    monkeypatch.setattr(vllm_start, "set_cpu_environment", lambda: None)
    monkeypatch.setattr(vllm_start, "engine_arguments", lambda *_, **__: {})
    monkeypatch.setattr(vllm_start, "AsyncEngineArgs", vllm)
    monkeypatch.setattr(vllm_start, "AsyncLLM", vllm)
    monkeypatch.delenv(SOCKETS, raising=False)
    return vllm


async def start(tether: Tether, start_s: float = 60) -> Any:
    return await vllm_start.start_vllm(MODEL, "none", tether, EngineCounters(), lambda: None, start_s=start_s, seed=0)


@pytest.mark.parametrize(("is_cpu", "context"), [(True, None), (False, UsageContext.LLM_CLASS)])
async def test_a_gpu_gets_the_batches_that_vllm_has_for_work_without_a_server(
    vllm: Vllm, tether: Tether, monkeypatch: pytest.MonkeyPatch, is_cpu: bool, context: UsageContext | None
) -> None:
    monkeypatch.setattr(vllm_start, "is_cpu", lambda: is_cpu)
    await start(tether)
    assert vllm.asked == [context]


@pytest.mark.parametrize(("is_cpu", "binding"), [(True, "nobind"), (True, "0-3"), (False, "nobind")])
async def test_only_a_cpu_that_binds_no_threads_is_told_to_run_the_model_in_the_engine_core(
    vllm: Vllm, tether: Tether, monkeypatch: pytest.MonkeyPatch, is_cpu: bool, binding: str
) -> None:
    monkeypatch.setattr(vllm_start, "is_cpu", lambda: is_cpu)
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", binding)
    await start(tether)
    chosen = {"distributed_executor_backend": UniProcExecutor} if is_cpu and binding == "nobind" else {}
    assert vllm.arguments == chosen


@pytest.mark.parametrize("use_ray", [False, True])
async def test_sockets_go_into_the_tethers_folder_but_where_ray_takes_its_name_to_other_machines(
    vllm: Vllm, tether: Tether, use_ray: bool
) -> None:
    vllm.config.parallel_config.use_ray = use_ray
    vllm.engine = lambda: os.environ.get(SOCKETS)
    assert await start(tether) == (None if use_ray else str(tether.folder))
    assert SOCKETS not in os.environ


async def test_a_start_given_up_before_any_process_is_there_starts_none(vllm: Vllm, tether: Tether) -> None:
    """Fails when the thread goes on by itself: the core that it starts would belong to nobody."""
    given_up, started = threading.Event(), threading.Event()
    vllm.configure, vllm.engine = given_up.wait, started.set
    with pytest.raises(EngineStartError, match=r"not ready after 0\.1 s"):
        await start(tether, start_s=0.1)
    given_up.set()
    await the_thread()
    assert not started.is_set()


async def test_a_start_given_up_while_a_process_is_being_started_leaves_none(
    vllm: Vllm, tether: Tether, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the tether is closed before that process is tied to it."""
    is_starting, is_late = threading.Event(), threading.Event()
    processes = []

    def monotonic() -> float:
        if not is_starting.is_set():
            return 0.0
        is_late.set()
        return 9.0

    def engine() -> None:
        is_starting.set()
        is_late.wait()  # the time is up then, and no process is there
        processes.append(multiprocessing.get_context("spawn").Process(target=time.sleep, args=(30,)))
        processes[0].start()
        processes[0].join()
        raise RuntimeError("the core died")

    vllm.engine = engine
    monkeypatch.setattr(vllm_start, "time", SimpleNamespace(monotonic=monotonic))
    with pytest.raises(EngineStartError, match="not ready after 5 s"):
        await start(tether, start_s=5)
    tether.close()
    assert not processes[0].is_alive()
    await the_thread()


async def the_thread() -> None:
    """Waits for the end of the thread that builds the engine."""
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
