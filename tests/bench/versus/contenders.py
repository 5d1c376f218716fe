"""All contenders by name: each takes a task and returns its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.bench.versus.ours import ours, ours_extractive
from tests.bench.versus.plain import ceiling, plain_loop, validate_and_retry
from tests.bench.versus.ray_data import ray_data
from tests.bench.versus.task import Result, Task

__all__ = ["CEILINGS", "CONTENDERS", "INNER_CEILING", "OURS"]

OURS = "ours"
CEILING = "engine alone"
INNER_CEILING = "engine alone, one process"
CEILINGS = (CEILING, INNER_CEILING)
"""What an engine does without all that is ours: as vLLM starts it, and with the model in its engine core, as ours."""
CONTENDERS: dict[str, Callable[[Task], Result]] = {
    OURS: ours,
    "ours, extractive": ours_extractive,
    "Ray Data LLM": partial(ray_data, guide={"backend": "auto"}),
    "Ray Data LLM, compact": partial(ray_data, guide={"backend": "xgrammar", "disable_any_whitespace": True}),
    "Ray Data LLM, outlines": partial(ray_data, guide={"backend": "outlines"}),
    "LLM.generate": plain_loop,
    "validate and retry": validate_and_retry,
    CEILING: ceiling,
    INNER_CEILING: partial(ceiling, in_engine_core=True),
}
