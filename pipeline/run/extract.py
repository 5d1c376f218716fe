"""Owns the way of one document: prompt, generation, parse, outcome.  It knows neither shards nor storage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel

from pipeline.core.document import Document
from pipeline.core.errors import RequestRefusedError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.core.spec import JobSpec
from pipeline.engine.base import Engine
from pipeline.engine.prompts import LongDocuments, PromptResult
from pipeline.run.guidance import Guidance
from pipeline.run.intake import Row
from pipeline.run.parse import Refusal, parse_record, salvage_record, strip_fence
from pipeline.run.policy import Ended, Generation, Sampling, Usage, decode_closed, decode_plain, document_seed

__all__ = ["Extracted", "Extractor"]


class Prompts(Protocol):
    """What builds prompts; see `engine.prompts.PromptBuilder`."""

    def build(self, text: str, max_prompt_tokens: int | None = None, mode: LongDocuments = "reject") -> PromptResult:
        """The prompt of one document, cut or refused where it is longer than `max_prompt_tokens`."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """A row's outcome, and what it took, in seconds of this document alone."""

    index: int
    outcome: Outcome
    usage: Usage = field(default_factory=Usage)
    prompt_s: float = 0.0
    parse_s: float = 0.0


class Extractor:
    """Turns documents into outcomes, one engine for all of them."""

    def __init__(
        self,
        spec: JobSpec,
        model: type[BaseModel],
        engine: Engine,
        guidance: Guidance,
        prompts: Prompts,
        tokenising: Executor,
    ) -> None:
        """Args:
        spec: the job.
        model: the record class.
        engine: generates.
        guidance: what guides it.
        prompts: builds them; called in `tokenising` only.
        tokenising: one thread, since tokenizers are not safe to share between threads.
        """
        self._spec = spec
        self._model = model
        self._engine = engine
        self._guidance = guidance
        self._prompts = prompts
        self._tokenising = tokenising

    async def extract(self, row: Row, request_id: str) -> Extracted:
        """The outcome of one row.

        Raises:
            EngineDeadError: the engine is gone; nothing is said about the document.
        """
        if isinstance(row.content, Outcome):
            return Extracted(row.index, row.content)
        document = row.content
        started = time.perf_counter()
        prompt_s = 0.0
        prompt_tokens = None
        try:
            prompt = await asyncio.get_running_loop().run_in_executor(
                self._tokenising, self._prompt, document.text or ""
            )
            prompt_s = time.perf_counter() - started
            if prompt.is_too_long:
                return _failed(row.index, document, Cause.TOO_LONG, self._too_long(prompt), prompt_s, None)
            prompt_tokens = len(prompt.ids)
            generation = await self._generate(document, prompt, request_id)
        except RequestRefusedError as error:
            return _failed(row.index, document, Cause.REFUSED, error.message, prompt_s, prompt_tokens)
        started = time.perf_counter()
        outcome = self._judge(generation)
        outcome = replace(
            outcome,
            document_id=document.document_id,
            detail=_joined(
                row.note, _cut_note(prompt, document.text or "", self._spec), outcome.detail, generation.detail
            ),
            prompt_tokens=prompt_tokens,
            output_tokens=len(generation.token_ids),
            budget_tokens=generation.budget_tokens,
            slack_tokens=generation.slack_tokens,
            extra=document.extra,
        )
        return Extracted(row.index, outcome, generation.usage, prompt_s, time.perf_counter() - started)

    def _prompt(self, text: str) -> PromptResult:
        """The prompt, cut where the job says so.  Cutting leaves room for the whole budget, no cutting for a record."""
        where = self._spec.truncation.long_documents
        room = self._guidance.least_tokens if where == "reject" else self._spec.decoding.max_tokens
        return self._prompts.build(text, self._engine.max_model_len - room, where)

    def _too_long(self, prompt: PromptResult) -> str:
        least = self._guidance.least_tokens
        return (
            f"at least {prompt.document_tokens} tokens of text and a record of {least} or more do not fit "
            f"into the context of {self._engine.max_model_len} together with the prompt"
        )

    async def _generate(self, document: Document, prompt: PromptResult, request_id: str) -> Generation:
        decoding, truncation, guidance = self._spec.decoding, self._spec.truncation, self._guidance
        is_closing = truncation.policy == "close" and guidance.reviewer is not None
        sampling = Sampling(
            request_id,
            tuple(prompt.ids),
            guidance.backend,
            guidance.name,
            decoding.temperature,
            None if decoding.seed is None else document_seed(decoding.seed, document.document_id or ""),
            guidance.reserve if is_closing else (),
        )
        room = self._engine.max_model_len - len(prompt.ids)
        ladder = sorted({min(budget, room) for budget in (decoding.max_tokens, *truncation.escalate)})
        if is_closing and guidance.reviewer is not None:
            return await decode_closed(self._engine, sampling, ladder, guidance.reviewer)
        return await decode_plain(self._engine, sampling, ladder[0], guidance.reviewer)

    def _judge(self, generation: Generation) -> Outcome:
        """Status, cause and record, from the guide's marks and the parser; the caller adds the rest."""
        text = self._guidance.decode(generation.token_ids)
        if text is None:
            text = generation.text or ""
            text = strip_fence(text) if self._guidance.backend is None else text
        parsed = parse_record(text, self._model)
        if not isinstance(parsed, Refusal):
            return self._with_record(parsed, generation)
        if parsed.cause is Cause.NOT_JSON and generation.ended in (Ended.CUT, Ended.RUNAWAY):
            return self._cut_off(text, generation)
        return Outcome(None, Status.INVALID, parsed.cause, parsed.detail, raw=text)

    def _with_record(self, record: Mapping[str, Any], generation: Generation) -> Outcome:
        if not generation.is_closed:
            return Outcome(None, Status.VALID, record=record)
        cause = Cause.RUNAWAY if generation.ended is Ended.RUNAWAY else Cause.BUDGET
        return Outcome(None, Status.CLOSED, cause, record=record, shaped_fields=generation.shaped_fields)

    def _cut_off(self, text: str, generation: Generation) -> Outcome:
        cause = Cause.RUNAWAY if generation.ended is Ended.RUNAWAY else Cause.BUDGET
        if self._spec.truncation.policy == "salvage" and (salvaged := salvage_record(text, self._model)) is not None:
            return Outcome(
                None,
                Status.CLOSED,
                Cause.SALVAGED,
                f"cut off: {cause.value}",
                record=salvaged.record,
                shaped_fields=salvaged.lost,
            )
        return Outcome(None, Status.TRUNCATED, cause, raw=text)


def _failed(
    index: int, document: Document, cause: Cause, detail: str, prompt_s: float, prompt_tokens: int | None
) -> Extracted:
    outcome = Outcome(
        document.document_id, Status.FAILED, cause, detail, prompt_tokens=prompt_tokens, extra=document.extra
    )
    return Extracted(index, outcome, prompt_s=prompt_s)


def _cut_note(prompt: PromptResult, text: str, spec: JobSpec) -> str | None:
    if not prompt.is_cut:
        return None
    return f"only the {spec.truncation.long_documents} was read: {len(prompt.document)} of {len(text)} characters"


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None
