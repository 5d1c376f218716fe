"""What may be imported without anything heavy: preflight and workers pay for vLLM only when they start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("vllm", "torch", "transformers", "ray", "numba")


@pytest.mark.parametrize(
    "module",
    ["pipeline.engine.base", "pipeline.engine.prompts", "pipeline.engine.scripted", "pipeline.engine.vllm_engine"],
)
def test_a_module_of_the_adapters_side_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & {set(HEAVY)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.split() == []
