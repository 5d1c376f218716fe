"""Forced text as drafts, an experiment: what the schema leaves no choice about is proposed, and the model checks it.

Where a record must go on with `","date":"`, its tokens are given to vLLM as a draft, in the tokenizer's own way of
writing them; the model then says of all of them in one step what it would have said one by one, and vLLM keeps those it
agrees with.  So a greedy output is the one without drafts, in fewer steps, as far as rounding is the same for several
tokens at once (it is in 32 bits); above temperature 0, a seed gives another sample.

vLLM takes drafts from the class that its speculative configuration names; ours has none, and the scheduler puts in what
the cursors know.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DRAFTER", "ForcedDrafts", "NoDrafts", "draft_arguments"]

DRAFTER = f"{__name__}.NoDrafts"
_KEPT = 4096


def draft_arguments(tokens: int) -> dict[str, Any]:
    """Engine arguments with which forced text is drafted, `tokens` a step at most.

    Drafts need a scheduler that knows the last token before it plans the next step, so steps are not prepared ahead.
    """
    speculative = {"method": "custom_class", "model": DRAFTER, "num_speculative_tokens": tokens}
    return {"async_scheduling": False, "speculative_config": speculative}


class NoDrafts:
    """What vLLM builds beside its model: it proposes nothing."""

    def __init__(self, vllm_config: Any) -> None:
        del vllm_config

    def load_model(self, *_: Any, **__: Any) -> None:
        """There is none."""

    def propose(self, sampled_token_ids: list[list[int]], *_: Any, **__: Any) -> list[list[int]]:
        """No token for any request."""
        return [[] for _ in sampled_token_ids]


class ForcedDrafts:
    """Token ids of forced text, as the tokenizer writes them."""

    def __init__(self, tokenizer: Any, tokens: int) -> None:
        """Args:
        tokenizer: the engine's.
        tokens: the most of one draft.
        """
        self._tokenizer = tokenizer
        self._tokens = tokens
        self._known: dict[bytes, list[int]] = {}

    def ids(self, forced: bytes) -> list[int]:
        """A new list; empty where nothing is forced, or it ends within a character."""
        found = self._known.get(forced)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[forced] = self._encoded(forced)
        return found[: self._tokens]

    def _encoded(self, forced: bytes) -> list[int]:
        text = forced.decode("utf-8", "ignore")
        return list(self._tokenizer.encode(text, add_special_tokens=False)) if text else []
