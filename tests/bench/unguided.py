"""vLLM without a guide, asked as anybody would ask it: stop strings after the record, and the first object is taken."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.run.parse import Refusal, parse_record, salvage_record
from pipeline.run.preflight import Job

__all__ = ["STOP", "Said", "Unguided", "first_object", "outcome_of"]

STOP = ("}\n", "\nReceipt:")
"""What follows a record in the prompts of the receipts: the end of its line, or the next example."""


def first_object(text: str) -> str:
    """The first JSON object in a text, without a fence before it or whatever comes after; else the text, stripped."""
    start = text.find("{")
    if start >= 0:
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            return text[start:].strip()
        return text[start:end]
    return text.strip()


@dataclass(frozen=True, slots=True)
class Said:
    """What came back: the first object in it, and the tokens of all of it."""

    text: str
    tokens: int
    cached_tokens: int = 0


class Unguided:
    """One vLLM engine in this process.  A context manager that ends it."""

    def __init__(self, folder: Path | str, engine: dict[str, Any], stop: Sequence[str] = STOP) -> None:
        from vllm import LLM

        self._llm = LLM(model=str(folder), disable_log_stats=True, **engine)
        self._stop = list(stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._llm.llm_engine.engine_core.shutdown()

    def ask(
        self, prompts: Sequence[list[int]], budgets: Sequence[int], *, temperature: float = 0.0, seed: int = 0
    ) -> list[Said]:
        """All prompts at once, each with its own most tokens."""
        from vllm import SamplingParams, TokensPrompt

        params = [
            SamplingParams(
                temperature=temperature,
                max_tokens=budget,
                seed=seed,
                stop=self._stop,
                include_stop_str_in_output=True,
            )
            for budget in budgets
        ]
        outputs = self._llm.generate([TokensPrompt(prompt_token_ids=ids) for ids in prompts], params, use_tqdm=False)
        return [
            Said(first_object(output.outputs[0].text), len(output.outputs[0].token_ids), output.num_cached_tokens or 0)
            for output in outputs
        ]


def outcome_of(document_id: str, said: Said, job: Job, budget: int, *, is_repaired: bool = False) -> Outcome:
    """What a text is worth, in the words that runs have for it.

    Args:
        document_id: whose text it is.
        said: the text.
        job: the record class.
        budget: the most tokens it could have had.
        is_repaired: whether the whole values of a cut-off text are taken for a record, which is then marked.
    """
    parsed = parse_record(said.text, job.record)
    outcome = Outcome(document_id, Status.VALID, output_tokens=said.tokens, record={})
    if not isinstance(parsed, Refusal):
        return replace(outcome, record=parsed)
    if is_repaired and (salvaged := salvage_record(said.text, job.record)) is not None:
        return replace(outcome, status=Status.CLOSED, cause=Cause.SALVAGED, record=salvaged.record)
    if parsed.cause is Cause.NOT_JSON and said.tokens >= budget:
        return replace(outcome, status=Status.TRUNCATED, cause=Cause.BUDGET, record=None, raw=said.text)
    return replace(outcome, status=Status.INVALID, cause=parsed.cause, record=None, raw=said.text)
