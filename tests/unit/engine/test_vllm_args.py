"""What is refused, and what is set, before vLLM is asked."""

from __future__ import annotations

import os
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import EngineStartError, RequestRefusedError
from pipeline.core.sections import ModelSpec
from pipeline.engine import vllm_args
from pipeline.engine.vllm_args import (
    check_model,
    engine_arguments,
    fits_engine_core,
    set_cpu_environment,
    set_environment,
)
from pipeline.engine.wire import Binding, guide_literal, is_guide_literal

NAMES = (
    "model revision tokenizer_revision trust_remote_code load_format enable_prefix_caching seed disable_log_stats "
    "enable_log_requests enable_chunked_prefill use_tqdm_on_load structured_outputs_config max_model_len dtype"
)
KNOWN = make_dataclass("KNOWN", NAMES.split())


def model_folder(folder: Path, *files: str) -> ModelSpec:
    for name in files:
        (folder / name).write_bytes(b"{}")
    return ModelSpec(name=str(folder))


def test_a_whole_model_folder_passes_and_a_hub_name_is_left_to_the_hub(tmp_path: Path) -> None:
    check_model(model_folder(tmp_path, "config.json", "model-00001-of-00002.safetensors"))
    check_model(ModelSpec(name="Qwen/Qwen3-4B", revision="abc"))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ((), "no config.json"),
        (("config.json",), "no *.safetensors"),
        (("config.json", "pytorch_model.bin"), "no *.safe"),
    ],
)
def test_an_incomplete_model_folder_is_refused_by_what_it_lacks(tmp_path: Path, files: Any, reason: str) -> None:
    with pytest.raises(EngineStartError) as caught:
        check_model(model_folder(tmp_path, *files))
    assert reason in str(caught.value)


def test_a_misspelt_argument_is_named(tmp_path: Path) -> None:
    model = ModelSpec(name=str(tmp_path), engine={"max_model_length": 10})
    with pytest.raises(EngineStartError, match="knows no max_model_length"):
        engine_arguments(model, "none", known=KNOWN, is_cpu=False, seed=0)


def test_arguments_are_safe_by_default_and_the_job_spec_stands(tmp_path: Path) -> None:
    model = ModelSpec(name="a/b", revision="c0ffee", engine={"max_model_len": 10, "load_format": "dummy"})
    arguments = engine_arguments(model, "none", known=KNOWN, is_cpu=False, seed=7)
    assert (arguments["revision"], arguments["tokenizer_revision"]) == ("c0ffee", "c0ffee")
    assert arguments["trust_remote_code"] is False
    assert (arguments["load_format"], arguments["max_model_len"], arguments["seed"]) == ("dummy", 10, 7)
    assert "structured_outputs_config" not in arguments
    assert (
        engine_arguments(ModelSpec(name="a/b"), "none", known=KNOWN, is_cpu=False, seed=0)["load_format"]
        == "safetensors"
    )


@pytest.mark.parametrize(
    ("guide", "backend"),
    [("recordmill", "outlines"), ("outlines", "outlines"), ("xgrammar", "xgrammar"), ("guidance", "guidance")],
)
def test_each_guide_has_its_backend(guide: Any, backend: str) -> None:
    arguments = engine_arguments(ModelSpec(name="a/b"), guide, known=KNOWN, is_cpu=False, seed=0)
    assert arguments["structured_outputs_config"] == {"backend": backend}


def test_other_settings_of_a_backend_stand_beside_it() -> None:
    """Fails when they take its place, and vLLM chooses a backend of its own."""
    model = ModelSpec(name="a/b", engine={"structured_outputs_config": {"disable_any_whitespace": True}})
    arguments = engine_arguments(model, "recordmill", known=KNOWN, is_cpu=False, seed=0)
    assert arguments["structured_outputs_config"] == {"disable_any_whitespace": True, "backend": "outlines"}


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("fma avx avx2", "float32"),
        ("avx2 avx512f avx512_bf16", "auto"),
        ("fma amx_bf16", "auto"),
        ("asimd bf16", "auto"),
    ],
)
def test_a_cpu_without_bfloat16_is_given_float32(
    flags: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = tmp_path / "cpuinfo"
    facts.write_text(f"processor\t: 0\nflags\t\t: {flags}\n", encoding="utf-8")
    monkeypatch.setattr(vllm_args, "_CPU_FACTS", facts)
    model = ModelSpec(name="a/b")
    assert engine_arguments(model, "none", known=KNOWN, is_cpu=True, seed=0)["dtype"] == dtype
    assert "dtype" not in engine_arguments(model, "none", known=KNOWN, is_cpu=False, seed=0)
    chosen = ModelSpec(name="a/b", engine={"dtype": "float16"})
    assert engine_arguments(chosen, "none", known=KNOWN, is_cpu=True, seed=0)["dtype"] == "float16"


@pytest.mark.parametrize(
    ("arguments", "binding", "fits"),
    [
        ({}, "nobind", True),
        ({"distributed_executor_backend": "uni"}, "nobind", True),
        ({"prefill_context_parallel_size": 2}, "nobind", False),
        ({"tensor_parallel_size": 1, "pipeline_parallel_size": 1}, "nobind", True),
        ({}, "0-7", False),
        ({}, "auto", False),
        ({}, None, False),
        ({"tensor_parallel_size": 2}, "nobind", False),
        ({"pipeline_parallel_size": 2}, "nobind", False),
        ({"distributed_executor_backend": "mp"}, "nobind", False),
    ],
)
def test_a_model_on_a_cpu_runs_in_its_engine_core_where_nothing_speaks_for_another_process(
    arguments: dict[str, Any], binding: str | None, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_CPU_OMP_THREADS_BIND", raising=False)
    if binding is not None:
        monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", binding)
    assert fits_engine_core(arguments, "recordmill") is fits
    assert fits_engine_core(arguments, "none") is fits
    assert not fits_engine_core(arguments, "xgrammar")


def test_what_the_user_set_in_the_environment_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ("VLLM_LOGGING_LEVEL", "HF_HUB_OFFLINE", "VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND")
    for name in names:
        monkeypatch.setenv(name, "put back")  # what is unset here would stay set after it
        monkeypatch.delenv(name)
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "7")
    set_environment(ModelSpec(name="a/b"))
    assert "HF_HUB_OFFLINE" not in os.environ
    set_environment(ModelSpec(name=str(tmp_path)))
    set_cpu_environment()
    assert [os.environ[name] for name in names] == ["ERROR", "1", "7", "nobind"]


def test_a_binding_travels_whole_and_a_wrong_one_is_refused_without_its_text() -> None:
    binding = Binding("f" * 16, "/tmp/g.bin", 10, 2, (1, 2), b"\x00text")
    assert Binding.from_extra_args(binding.extra_args()) == binding
    assert Binding.from_extra_args(None) is None
    assert Binding.from_extra_args({"other": 1}) is None
    with pytest.raises(RequestRefusedError, match="budget_tokens") as caught:
        Binding.from_extra_args({"recordmill": {"fingerprint": "f", "path": "p", "budget_tokens": "SECRET"}})
    assert "SECRET" not in str(caught.value)


def test_a_guides_literal_is_a_regular_expression_that_matches_itself() -> None:
    import re

    assert is_guide_literal(guide_literal("abc123"))
    assert re.fullmatch(guide_literal("abc123"), guide_literal("abc123"))
    assert not is_guide_literal("[a-z]+")
