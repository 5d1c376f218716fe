"""One request as vLLM takes it, and one completion as we do; vLLM's errors by type.

Imports vLLM: only what runs after its environment is set may import this module.
"""

from __future__ import annotations

from typing import Any

from vllm import SamplingParams
from vllm.exceptions import GracefulHTTPError, VLLMClientError
from vllm.sampling_params import RepetitionDetectionParams, RequestOutputKind, StructuredOutputsParams
from vllm.v1.engine.exceptions import EngineDeadError as VllmDeadError
from vllm.v1.engine.exceptions import EngineGenerateError

from pipeline.core.errors import EngineDeadError, RequestRefusedError
from pipeline.engine.base import Finish, Request
from pipeline.engine.repetition import COPIES, LONGEST_PATTERN_TOKENS
from pipeline.engine.wire import Binding, guide_literal

__all__ = ["DEAD", "REFUSALS", "finish_of", "one_line", "reason", "sampling_params", "spoken_ids"]

DEAD = VllmDeadError
"""The engine core is gone."""

REFUSALS = (VLLMClientError, GracefulHTTPError, EngineGenerateError, ValueError)
"""One request was refused or failed by itself; vLLM serves others."""

_DETAIL_CHARACTERS = 300
_ENGINE_FAILURE = "the engine core could not bind or continue the request; its log says why"


def sampling_params(request: Request, binding: Binding | None) -> SamplingParams:
    """What vLLM needs to know of a request besides its prompt.

    Args:
        request: where its guide is one of vLLM's own, the guide's name is a JSON Schema.
        binding: of a request that our guides guide.

    Raises:
        REFUSALS: vLLM does not take such a request.
    """
    structured = None
    if binding is not None:
        structured = StructuredOutputsParams(regex=guide_literal(binding.fingerprint))
    elif request.guide is not None:
        structured = StructuredOutputsParams(json=request.guide.name)
    return SamplingParams(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        seed=request.seed if request.temperature > 0 else None,
        logprobs=None if request.scored_tokens else request.logprobs,
        prompt_logprobs=request.logprobs if request.scored_tokens else None,
        output_kind=RequestOutputKind.FINAL_ONLY,
        detokenize=False,
        structured_outputs=structured,
        repetition_detection=RepetitionDetectionParams(max_pattern_size=LONGEST_PATTERN_TOKENS, min_count=COPIES),
        extra_args=None if binding is None else binding.extra_args(),
    )


def finish_of(vllm_reason: str | None) -> Finish:
    """How a completion ended.

    Raises:
        RequestRefusedError: the engine core failed this request alone.
        EngineDeadError: it ended for a reason that only a dying engine gives.
    """
    match vllm_reason:
        case "stop" | "length" | "repetition":
            return vllm_reason
        case "error":
            raise RequestRefusedError(_ENGINE_FAILURE)
        case _:
            raise EngineDeadError(f"vLLM ended a request with {vllm_reason!r}")


def spoken_ids(token_ids: Any, finish: Finish) -> tuple[int, ...]:
    """The ids without the end token, which is the only thing that stops a request of ours."""
    ids = tuple(token_ids)
    return ids[:-1] if finish == "stop" else ids


def reason(error: BaseException) -> str:
    """One short line, without the values that vLLM adds to its messages: they may hold text of the document."""
    while error.__cause__ is not None:
        error = error.__cause__
    line = one_line(str(error.args[0])) if error.args else ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def one_line(text: str) -> str:
    """What vLLM says, on one line and cut short."""
    return " ".join(text.split())[:_DETAIL_CHARACTERS]
