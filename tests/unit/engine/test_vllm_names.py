"""What is found out about vLLM before an engine is started."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import ModelSpec
from pipeline.engine import vllm_engine, vllm_names
from pipeline.engine.vllm_engine import VllmEngine


def test_a_gpu_that_was_not_given_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_names, "vllm_version", lambda: "1")
    monkeypatch.setattr(vllm_names, "is_cpu", lambda: False)
    for gpus in (None, 0.5, 1):
        vllm_names.check_device(gpus)
    with pytest.raises(EngineStartError, match=r"set cluster\.gpus_per_engine: 1"):
        vllm_names.check_device(0)
    monkeypatch.setattr(vllm_names, "is_cpu", lambda: True)
    for gpus in (0, 1):
        vllm_names.check_device(gpus)


@pytest.mark.asyncio
async def test_an_engine_is_refused_before_anything_of_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_engine, "set_environment", lambda model: None)
    monkeypatch.setattr(vllm_engine, "check_vllm", lambda: None)
    monkeypatch.setattr(vllm_names, "is_cpu", lambda: False)
    monkeypatch.setattr(vllm_engine, "Tether", None)
    with pytest.raises(EngineStartError, match="not the CPU build"):
        await VllmEngine.start(ModelSpec(name="a/b"), guides={}, guide_backend="none", silence_s=1, start_s=1, gpus=0)


def _names_taken(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Modules of vLLM, and what is imported from them when the code runs; what stands in `vllm` itself is public."""
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vllm.") and id(node) not in for_types:
            yield from ((str(node.module), alias.name) for alias in node.names)


def test_every_name_taken_from_vllm_is_looked_up_before_an_engine_starts() -> None:
    """Fails when a name is relied on that `check_vllm` would not miss: the error would come from deep inside."""
    always = {(module, path.split(".")[0]) for module, path in vllm_names._RELIED_ON}
    on_cpu = {(module, path.split(".")[0]) for module, path in vllm_names._RELIED_ON_CPU}
    files = sorted(Path(vllm_names.__file__).parent.glob("*.py"))
    taken = {file.name: set(_names_taken(ast.parse(file.read_text()))) for file in files}
    missed = {name: pairs - always - (on_cpu if name == "cpu_worker.py" else set()) for name, pairs in taken.items()}
    assert sum(map(len, taken.values())) > 15
    assert not any(missed.values()), missed


def test_no_name_is_looked_up_that_nothing_uses() -> None:
    words = Counter(
        word for file in Path(vllm_names.__file__).parent.glob("*.py") for word in re.findall(r"\w+", file.read_text())
    )
    looked_up = Counter(path.split(".")[-1] for _, path in vllm_names._RELIED_ON + vllm_names._RELIED_ON_CPU)
    unused = {name for name, count in looked_up.items() if words[name] <= count}
    assert unused == {"grammar_init"}, "vLLM's own, which builds no backend where there is one"
