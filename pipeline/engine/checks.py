"""What every engine refuses, whatever generates."""

from __future__ import annotations

from pipeline.core.errors import RequestRefusedError
from pipeline.engine.base import Request

__all__ = ["check_budget"]


def check_budget(request: Request, max_model_len: int) -> None:
    """A budget that cannot be spent would let the mask promise an end that never comes.

    Raises:
        RequestRefusedError: the request's tokens, or the context, end before the budget does.
    """
    guide = request.guide
    if guide is None or guide.budget_tokens is None:
        return
    room = min(request.max_tokens, max_model_len - len(request.prompt_ids)) + guide.prefix_tokens
    if guide.budget_tokens > room:
        raise RequestRefusedError(
            f"a budget of {guide.budget_tokens} tokens where there is room for {room}: "
            f"max_tokens {request.max_tokens}, prompt {len(request.prompt_ids)}, context {max_model_len}"
        )
