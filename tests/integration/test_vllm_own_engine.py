"""Our guides in an engine of the user's: the page's script as it stands, and what is refused before vLLM is asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from pipeline import Span, VllmGuide, vllm_arguments
from pipeline.core.errors import BudgetError, RequestRefusedError
from pipeline.core.sections import ModelSpec
from pipeline.decoding import NoSpanError
from pipeline.engine import own_vllm
from pipeline.engine.prompts import load_tokenizer
from pipeline.engine.vllm_args import cpu_arguments
from tests.docs_blocks import DOCS, blocks

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

DEADLINE_S = 300


class Parcel(BaseModel):
    """One copied value and one that is written."""

    number: Annotated[int, Span()]
    note: Annotated[str, Field(max_length=12)] = ""


@pytest.fixture(scope="module")
def tokenizer(tiny_llama: Path) -> Any:
    return load_tokenizer(ModelSpec(name=str(tiny_llama)))


@pytest.fixture(scope="module")
def guide(tokenizer: Any) -> VllmGuide:
    return VllmGuide(Parcel, tokenizer)


def test_the_script_of_the_page_works_as_written(tiny_llama: Path, tmp_path: Path) -> None:
    """Random weights: nothing but the guides makes these records."""
    script = next(block for block in blocks(DOCS / "own-engine.md") if block.saved_as == "mails.py")
    (tmp_path / "mails.py").write_text(script.text)
    environment = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [sys.executable, "mails.py", str(tiny_llama)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if "the budget" in line]
    assert len(lines) == 2, done.stdout
    found = [re.fullmatch(r"(order|complaint|question) (\S+) \(.*\)", line) for line in lines]
    first, second = (match and match[2] for match in found)
    assert first in ("KM-2041", "None"), lines
    assert second == "None", lines


def test_what_vllm_is_told_is_what_its_engine_core_can_import() -> None:
    """Fails when the scheduler is renamed, which vLLM would say only from within its own process."""
    from vllm.utils.import_utils import resolve_obj_by_qualname

    for is_async in (False, True):
        arguments = vllm_arguments(async_scheduling=is_async)
        assert resolve_obj_by_qualname(arguments["scheduler_cls"]).__name__.startswith("Guided")
        assert arguments["async_scheduling"] is is_async


@pytest.mark.parametrize("is_cpu", [True, False])
def test_a_gpu_prepares_a_step_while_the_last_one_runs_and_a_cpu_is_told_what_ours_are(
    monkeypatch: pytest.MonkeyPatch, is_cpu: bool
) -> None:
    monkeypatch.setattr(own_vllm, "check_vllm", lambda: None)
    monkeypatch.setattr(own_vllm, "is_cpu", lambda: is_cpu)
    arguments = vllm_arguments()
    assert arguments["async_scheduling"] is not is_cpu
    assert ("Async" in arguments["scheduler_cls"]) is not is_cpu
    assert ({*cpu_arguments()} <= arguments.keys()) is is_cpu


def test_a_request_holds_its_own_budget_document_and_arguments(guide: VllmGuide, tokenizer: Any) -> None:
    params = guide.sampling_params(40, "number 4711", temperature=0.5, extra_args={"theirs": 1})
    assert (params.max_tokens, params.temperature, params.extra_args["theirs"]) == (40, 0.5, 1)
    text = '{"number":4711,"note":"x"}'
    ids = tokenizer.encode(text, add_special_tokens=False)
    made, marks = guide.read(_completion([*ids, tokenizer.eos_token_id]), params)
    assert (made, marks.is_complete, marks.slack_tokens) == (text, True, 40 - len(ids))
    assert [place for span in marks.spans for place in span.places] == [(7, 11)]


def test_a_completion_that_left_the_guide_is_refused(guide: VllmGuide, tokenizer: Any) -> None:
    params = guide.sampling_params(40, "number 4711")
    ids = tokenizer.encode(json.dumps({"number": 4712}, separators=(",", ":")), add_special_tokens=False)
    with pytest.raises(ValueError, match="not legal"):
        guide.read(_completion(ids), params)


def test_what_no_engine_could_do_is_refused_at_once(guide: VllmGuide, tokenizer: Any) -> None:
    with pytest.raises(BudgetError, match="the least record takes"):
        guide.sampling_params(guide.guide.least_tokens - 1, "number 4711")
    with pytest.raises(NoSpanError):
        guide.sampling_params(40, "no number here")
    with pytest.raises(ValueError, match="needs the document"):
        guide.sampling_params(40)
    with pytest.raises(BudgetError, match="the least record takes"):
        guide.sampling_params(guide.guide.least_tokens, "number 471185")
    with pytest.raises(ValueError, match="ignore_eos, stop cannot be asked for"):
        guide.sampling_params(40, "number 4711", stop=["}"], ignore_eos=True)
    with pytest.raises(RequestRefusedError, match="its log says why"):
        guide.read(SimpleNamespace(token_ids=[], finish_reason="error"), guide.sampling_params(40, "number 4711"))
    with pytest.raises(ValueError, match="repetition_detection cannot be asked for"):
        guide.sampling_params(40, "number 4711", repetition_detection=object())
    plain = VllmGuide(Parcel, tokenizer, extractive=False)
    with pytest.raises(ValueError, match="was not made with guide"):
        plain.read(_completion([]), guide.sampling_params(40, "number 4711"))


def _completion(token_ids: list[int]) -> Any:
    return SimpleNamespace(token_ids=token_ids, finish_reason="stop")
