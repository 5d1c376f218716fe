"""vLLM's worker without a GPU, with masks applied in place and at once.

vLLM hands masks to a kernel of xgrammar's, which on a CPU clears one id after the other, in a copy of the logits in 32
bits: 50 ms for 32 requests at 262,144 ids where few are legal, a tenth of the whole step of a 270M model.  Here it is
1.0 ms (two cores, `python -m tests.bench.apply`).  Where ids do not fill the last word, that kernel (xgrammar 0.2.8)
also writes into the next row.  On a GPU there is another kernel, and nothing of this is used.

vLLM builds the class that `worker_cls` names in its engine core (`fits_engine_core`), or in a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from vllm.v1.worker.cpu_worker import CPUWorker

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import GrammarOutput

__all__ = ["MaskingCPUWorker", "forbid"]


_AS_INTEGERS = {
    torch.float32: (torch.int32, np.uint32, 0xFF800000),
    torch.bfloat16: (torch.int16, np.uint16, 0xFF80),
    torch.float16: (torch.int16, np.uint16, 0xFC00),
}
"""By type of logits: the integers of its width, and minus infinity as one."""


class MaskingCPUWorker(CPUWorker):  # type: ignore[misc]
    """Applies the masks itself, and leaves the rest to vLLM."""

    def compile_or_warm_up_model(self) -> Any:
        done = super().compile_or_warm_up_model()
        # The first step would wait for its compiler otherwise.
        forbid(torch.zeros(1, 1, dtype=self.model_config.dtype), np.zeros((1, 1), np.int32), [0])
        return done

    def sample_tokens(self, grammar_output: GrammarOutput | None) -> Any:
        # vLLM's second model runner, which needs a Triton that knows the CPU, applies masks in a way of its own.
        state = None if self.use_v2_model_runner else self.model_runner.execute_model_state
        if grammar_output is not None and state is not None:
            rows = _rows(grammar_output, self.model_runner.input_batch.req_ids, state.scheduler_output)
            with torch.inference_mode():
                forbid(state.logits, grammar_output.grammar_bitmask, rows)
            grammar_output = None
        return super().sample_tokens(grammar_output)


def _rows(grammar_output: GrammarOutput, request_ids: Sequence[str], scheduler_output: Any) -> list[int]:
    """For each row of the bitmask the row of logits it is for, or -1; drafts have rows after their request's."""
    drafts = scheduler_output.scheduled_spec_decode_tokens
    first: dict[str, int] = {}
    row = 0
    for request_id in request_ids:
        first[request_id] = row
        row += 1 + len(drafts.get(request_id, ()))
    rows: list[int] = []
    for request_id in grammar_output.structured_output_request_ids:
        start = first.get(request_id)
        count = 1 + len(drafts.get(request_id, ()))
        rows.extend([-1] * count if start is None else range(start, start + count))
    return rows


def forbid(logits: torch.Tensor, bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
    """Sets the logits of illegal ids to minus infinity, in place.

    Args:
        logits: `[n, ids]`, of any floating type of 16 or 32 bits.
        bitmask: `[m, words]`, 32 ids a word, the lowest bit first; bits beyond the last id do not count.
        rows: for each of the m masks the row of logits it is for, or -1 for none.
    """
    # Not above: numba must not be imported before vLLM has registered its own kernels.
    from pipeline.decoding.kernels import forbid_ids

    bits, numbers, minus_infinity = _AS_INTEGERS[logits.dtype]
    written = logits.view(bits).numpy().view(numbers)
    forbid_ids(bitmask.view(np.uint32), np.array(rows, np.int64), written, minus_infinity)
