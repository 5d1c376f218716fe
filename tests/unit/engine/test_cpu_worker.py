"""Masks on a CPU, against the kernel that vLLM would have used and against vLLM's own order of rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("vllm")

from vllm.v1.structured_output.utils import apply_grammar_bitmask  # noqa: E402

from pipeline.engine.cpu_worker import MaskingCPUWorker, forbid  # noqa: E402

pytestmark = pytest.mark.slow

IDS = 96


@st.composite
def steps(draw: st.DrawFn) -> tuple[Any, Any, Any, Any]:
    """Logits, and what the scheduler says of a step: some requests without a guide, some with drafts, some gone."""
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
    requests = [f"r{number}" for number in range(draw(st.integers(1, 5)))]
    drafts = {name: [0] * draw(st.integers(1, 3)) for name in requests if draw(st.booleans())}
    guided = draw(st.permutations([*(name for name in requests if draw(st.booleans())), "gone"]))
    rows = sum(1 + len(drafts.get(name, ())) for name in requests)
    masks = sum(1 + len(drafts.get(name, ())) for name in guided)
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    words = random.choice(np.array([0, -1, 5, -7, 2**31 - 1, -(2**31)], np.int32), (masks, (IDS + 31) // 32))
    logits = torch.from_numpy(random.standard_normal((rows, IDS)).astype(np.float32)).to(dtype)
    scheduled = SimpleNamespace(scheduled_spec_decode_tokens=drafts)
    guides = SimpleNamespace(structured_output_request_ids=guided, grammar_bitmask=words)
    return logits, scheduled, guides, SimpleNamespace(req_ids=requests)


class Sampler:
    """In place of vLLM's model runner: keeps what would be sampled from."""

    def __init__(self, logits: Any, scheduled: Any, batch: Any) -> None:
        self.execute_model_state = SimpleNamespace(logits=logits, scheduler_output=scheduled)
        self.input_batch = batch
        self.mask: Any = "none yet"

    def sample_tokens(self, grammar_output: Any) -> Any:
        self.mask = grammar_output
        return self.execute_model_state.logits


def _worker(runner: Any) -> Any:
    worker = MaskingCPUWorker.__new__(MaskingCPUWorker)
    worker.use_v2_model_runner = False
    worker.model_runner = runner
    return worker


@settings(max_examples=200, deadline=None)
@given(steps())
def test_logits_are_those_that_vllm_would_have_sampled_from(step: tuple[Any, Any, Any, Any]) -> None:
    logits, scheduled, guides, batch = step
    expected = logits.clone()
    apply_grammar_bitmask(scheduled, guides, batch, expected)
    worker = _worker(Sampler(logits, scheduled, batch))
    masked = worker.sample_tokens(guides)
    assert worker.model_runner.mask is None
    assert torch.equal(masked, expected)


def test_a_step_without_guides_is_left_to_vllm() -> None:
    logits = torch.zeros(1, IDS)
    worker = _worker(Sampler(logits, SimpleNamespace(scheduled_spec_decode_tokens={}), None))
    assert torch.equal(worker.sample_tokens(None), torch.zeros(1, IDS))
    worker.model_runner.execute_model_state = None
    worker.model_runner.sample_tokens = lambda grammar_output: grammar_output
    assert worker.sample_tokens("kept") == "kept"


def test_the_model_runner_that_masks_by_itself_is_left_alone() -> None:
    worker = _worker(SimpleNamespace(sample_tokens=lambda grammar_output: grammar_output))
    worker.use_v2_model_runner = True
    assert worker.sample_tokens("its masks") == "its masks"


def test_ids_that_do_not_fill_the_last_word_leave_the_next_row_alone() -> None:
    """xgrammar 0.2.8 goes on into the next row where the first bit that is 0 stands for no id."""
    logits = torch.zeros(2, 70)
    forbid(logits, np.array([[-1, -1, 0x3F], [-1, -1, 0x1F]], np.int32), [0, 1])
    assert torch.isneginf(logits).nonzero().tolist() == [[1, 69]]
