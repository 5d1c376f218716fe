"""Owns the way of one document: prompt, generation, parse, outcome.  It knows neither shards nor storage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel

from pipeline.core.document import Document
from pipeline.core.errors import RequestRefusedError
from pipeline.core.outcome import RECORD_STATUSES, Cause, FoundSpan, Outcome, Status
from pipeline.core.spec import JobSpec
from pipeline.decoding import NoSpanError
from pipeline.engine.base import Engine
from pipeline.engine.prompts import LongDocuments, PromptResult
from pipeline.run.generation import Ended, Generation, Sampling, Usage
from pipeline.run.guidance import Guidance, GuideReviewer
from pipeline.run.intake import Row
from pipeline.run.located import located
from pipeline.run.parse import Refusal, parse_record, salvage_record, strip_fence
from pipeline.run.policy import decode_closed, decode_plain, document_seed

__all__ = ["Extracted", "Extractor", "Prepared", "room_to_leave"]


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
    token_ids: tuple[int, ...] = ()
    """Of the generation that was kept."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A document, its prompt, what reviews its records, and the budgets to try."""

    document: Document
    prompt: PromptResult
    reviewer: GuideReviewer | None
    ladder: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A row, and what is asked for it, or what it has come to without being asked."""

    row: Row
    asked: _Asked | Outcome
    prompt_s: float = 0.0


def room_to_leave(spec: JobSpec, least_tokens: int) -> int:
    """Tokens of the context that a prompt leaves free: the budget where documents are cut, else the least record."""
    return least_tokens if spec.truncation.long_documents == "reject" else spec.decoding.max_tokens


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
        [prepared] = await self.prepare([row])
        return await self.extract_prepared(prepared, request_id)

    async def prepare(self, rows: Sequence[Row]) -> list[Prepared]:
        """Rows with their prompts, in one turn of the thread: each turn costs as much as a short prompt."""
        return await asyncio.get_running_loop().run_in_executor(
            self._tokenising, lambda: [self._prepare_one(row) for row in rows]
        )

    def _prepare_one(self, row: Row) -> Prepared:
        if isinstance(row.content, Outcome):
            return Prepared(row, row.content)
        started = time.perf_counter()
        asked = self._asked(row.content)
        return Prepared(row, asked, time.perf_counter() - started)

    async def extract_prepared(self, prepared: Prepared, request_id: str) -> Extracted:
        """The outcome of one row whose prompt is built.

        Raises:
            EngineDeadError: the engine is gone; nothing is said about the document.
        """
        row, asked, prompt_s = prepared.row, prepared.asked, prepared.prompt_s
        if isinstance(asked, Outcome):
            return Extracted(row.index, asked, prompt_s=prompt_s)
        try:
            generation = await self._generate(asked, request_id)
        except RequestRefusedError as error:
            refused = _failed(asked.document, Cause.REFUSED, error.message, prompt_tokens=len(asked.prompt.ids))
            return Extracted(row.index, refused, prompt_s=prompt_s)
        started = time.perf_counter()
        outcome, written = self._judge(generation)
        outcome = self._completed(outcome, written, row, asked, generation)
        parse_s = time.perf_counter() - started
        return Extracted(row.index, outcome, generation.usage, prompt_s, parse_s, generation.token_ids)

    def _asked(self, document: Document) -> _Asked | Outcome:
        """What is asked for a document, or why nothing is.  Takes a thread's time: tokens and spans are looked for."""
        where = self._spec.truncation.long_documents
        least = self._guidance.least_tokens
        context = self._engine.max_model_len
        try:
            prompt = self._prompts.build(document.text or "", context - room_to_leave(self._spec, least), where)
            if prompt.is_too_long:
                why = (
                    f"at least {prompt.document_tokens} tokens of text and a record of {least} or more do not fit "
                    f"into the context of {context} together with the prompt"
                )
                return _failed(document, Cause.TOO_LONG, why)
            reviewer = self._guidance.for_document(prompt.document)
        except NoSpanError as error:
            return _failed(document, Cause.NO_SPAN, str(error), prompt_tokens=len(prompt.ids))
        except RequestRefusedError as error:
            return _failed(document, Cause.REFUSED, error.message)
        ladder = self._ladder(prompt, reviewer)
        return _Asked(document, prompt, reviewer, ladder) if ladder else _without_budget(document, len(prompt.ids))

    def _ladder(self, prompt: PromptResult, reviewer: GuideReviewer | None) -> tuple[int, ...]:
        """The budgets to try, rising: what the context has room for, and holds this document's least record."""
        room = self._engine.max_model_len - len(prompt.ids)
        budgets = (self._spec.decoding.max_tokens, *self._spec.truncation.escalate)
        ladder = sorted({min(budget, room) for budget in budgets})
        if reviewer is None or reviewer.document is None or self._spec.truncation.policy != "close":
            return tuple(ladder)
        return tuple(budget for budget in ladder if reviewer.is_legal((), budget))

    def _completed(self, outcome: Outcome, written: str, row: Row, asked: _Asked, generation: Generation) -> Outcome:
        """The outcome with all that is known beside status, cause and record."""
        document = asked.document
        cut = None
        if asked.prompt.is_cut:
            kept, whole = len(asked.prompt.document), len(document.text or "")
            cut = f"only the {self._spec.truncation.long_documents} was read: {kept} of {whole} characters"
        notes = [note for note in (row.note, cut, outcome.detail, generation.detail) if note]
        return replace(
            outcome,
            document_id=document.document_id,
            detail="; ".join(notes) or None,
            prompt_tokens=len(asked.prompt.ids),
            output_tokens=len(generation.token_ids),
            budget_tokens=generation.budget_tokens,
            slack_tokens=generation.slack_tokens,
            spans=_spans(outcome, written, generation, asked.reviewer, asked.prompt),
            extra=document.extra,
        )

    async def _generate(self, asked: _Asked, request_id: str) -> Generation:
        decoding, guidance, reviewer = self._spec.decoding, self._guidance, asked.reviewer
        is_closing = self._spec.truncation.policy == "close"
        sampling = Sampling(
            request_id,
            tuple(asked.prompt.ids),
            guidance.backend,
            guidance.name,
            decoding.temperature,
            None if decoding.seed is None else document_seed(decoding.seed, asked.document.document_id or ""),
            guidance.reserve if is_closing else (),
            None if reviewer is None or reviewer.document is None else reviewer.document.to_bytes(),
        )
        if is_closing and reviewer is not None:
            return await decode_closed(self._engine, sampling, asked.ladder, reviewer)
        return await decode_plain(self._engine, sampling, asked.ladder[0], reviewer)

    def _judge(self, generation: Generation) -> tuple[Outcome, str]:
        """Status, cause and record, from the guide's marks and the parser, and the JSON that the record was read from;
        the caller adds the rest."""
        text = self._guidance.decode(generation.token_ids)
        if text is None:
            text = generation.text or ""
            text = strip_fence(text) if self._guidance.backend is None else text
        parsed = parse_record(text, self._model)
        if not isinstance(parsed, Refusal):
            return self._with_record(parsed, generation), text
        if parsed.cause is Cause.NOT_JSON and generation.ended in (Ended.CUT, Ended.RUNAWAY):
            return self._cut_off(text, generation)
        return Outcome(None, Status.INVALID, parsed.cause, parsed.detail, raw=text), text

    def _with_record(self, record: Mapping[str, Any], generation: Generation) -> Outcome:
        if not generation.is_closed:
            return Outcome(None, Status.VALID, record=record)
        cause = Cause.RUNAWAY if generation.ended is Ended.RUNAWAY else Cause.BUDGET
        return Outcome(None, Status.CLOSED, cause, record=record, shaped_fields=generation.shaped_fields)

    def _cut_off(self, text: str, generation: Generation) -> tuple[Outcome, str]:
        cause = Cause.RUNAWAY if generation.ended is Ended.RUNAWAY else Cause.BUDGET
        if self._spec.truncation.policy == "salvage" and (salvaged := salvage_record(text, self._model)) is not None:
            outcome = Outcome(
                None,
                Status.CLOSED,
                Cause.SALVAGED,
                f"cut off: {cause.value}",
                record=salvaged.record,
                shaped_fields=salvaged.lost,
            )
            return outcome, salvaged.text
        return Outcome(None, Status.TRUNCATED, cause, raw=text), text


def _failed(document: Document, cause: Cause, detail: str, *, prompt_tokens: int | None = None) -> Outcome:
    return Outcome(
        document.document_id, Status.FAILED, cause, detail, prompt_tokens=prompt_tokens, extra=document.extra
    )


def _without_budget(document: Document, prompt_tokens: int) -> Outcome:
    """What extractive fields must copy from this document takes more tokens than any budget of the job."""
    return Outcome(
        document.document_id,
        Status.TRUNCATED,
        Cause.BUDGET,
        "the least record that can be copied from this document takes more tokens than decoding.max_tokens",
        raw="",
        prompt_tokens=prompt_tokens,
        output_tokens=0,
        extra=document.extra,
    )


def _spans(
    outcome: Outcome, written: str, generation: Generation, reviewer: GuideReviewer | None, prompt: PromptResult
) -> tuple[FoundSpan, ...]:
    """Where the record's extractive values stand in the whole document; `written` is the record's JSON."""
    if outcome.status not in RECORD_STATUSES or reviewer is None or reviewer.document is None:
        return ()
    marks = reviewer.review(generation.token_ids, None)
    if marks is None:
        return ()
    return located(
        marks.spans, written, fields=reviewer.guide.fields, offset=prompt.document_start, kept=outcome.record
    )
