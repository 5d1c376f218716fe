"""Engines of fault tests: the scripted one with a fault that no script holds.  Picklable by name, for `run`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

import pipeline.storage.s3
from pipeline.core.sections import ModelSpec
from pipeline.engine.base import Completion, Engine, Request
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import Script
from pipeline.run.engines import start_engine
from pipeline.run.messages import EngineContext, EngineFactory
from pipeline.storage.s3 import Patience

__all__ = ["BEARABLE", "CONTROL", "HUNGER_BYTES", "dying", "gathered", "hungry", "impatient", "obedient"]

T = TypeVar("T", bound=ScriptedEngine)

CONTROL = "RECORDMILL_TEST_CONTROL"
"""Names the folder in which an obedient engine looks for orders."""
GATHER_S = 180
"""How long engines wait for each other at most."""
HUNGER_BYTES = 384 * 1024 * 1024
BEARABLE = 9
"""What a worker has in flight that works on eight at once."""


def _impatient() -> EngineFactory:
    pipeline.storage.s3.Patience = partial(Patience, first_s=2.0, total_s=2.0)  # type: ignore[assignment,misc]
    return start_engine


class _Impatient:
    """A worker whose stores give up soon: they are opened after this has come to its process, and before its engine."""

    def __reduce__(self) -> tuple[Callable[[], EngineFactory], tuple[()]]:
        return _impatient, ()

    async def __call__(self, context: EngineContext) -> Engine:
        return await start_engine(context)


impatient = _Impatient()


class _Hungry(ScriptedEngine):
    """Needs memory for each document in flight beyond so many."""

    _in_flight = 0

    async def generate(self, request: Request) -> Completion:
        self._in_flight += 1
        ballast = np.ones(HUNGER_BYTES if self._in_flight > BEARABLE else 1, np.uint8)
        try:
            return await super().generate(request)
        finally:
            self._in_flight -= int(ballast[-1])


class _Obedient(ScriptedEngine):
    """Falls silent when there is a file `freeze` in the folder of orders; who takes the file obeys, and nobody else."""

    async def generate(self, request: Request) -> Completion:
        try:
            Path(os.environ[CONTROL], "freeze").unlink()
        except FileNotFoundError:
            pass
        else:
            self._is_frozen = True
        return await super().generate(request)


class _Gathered(ScriptedEngine):
    """Answers nothing until so many engines were asked something: each then leaves a file in a folder they share."""

    folder: Path
    engines: int

    async def generate(self, request: Request) -> Completion:
        (self.folder / str(os.getpid())).touch()
        async with asyncio.timeout(GATHER_S):
            while len(list(self.folder.iterdir())) < self.engines:
                await asyncio.sleep(0.05)
        return await super().generate(request)


async def dying(context: EngineContext) -> Engine:
    """Takes its worker's process with it."""
    os._exit(1)


async def hungry(context: EngineContext) -> Engine:
    """See `_Hungry`."""
    return await _start(_Hungry, context)


async def gathered(folder: Path, engines: int, context: EngineContext) -> Engine:
    """See `_Gathered`; with folder and number bound, what starts an engine."""
    engine = await _start(_Gathered, context)
    engine.folder, engine.engines = folder, engines
    return engine


async def obedient(context: EngineContext) -> Engine:
    """See `_Obedient`."""
    return await _start(_Obedient, context)


async def _start(kind: type[T], context: EngineContext) -> T:
    model: ModelSpec = context.spec.model
    return kind(Script.of(model), guides=context.guides, silence_s=context.spec.limits.engine_silence_s)
