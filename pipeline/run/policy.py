"""Owns how tokens are asked for: which requests follow from a truncation policy, and what their answers amount to.

Under `close` a completion whose mask the budget tightened may have been bent by it.  Which one was, is found out, not
guessed: the stretch from the first tightened step on is asked for again, with the next rung of the ladder as budget, or
without any where there is no rung left.  The same tokens again mean that the budget changed nothing.  The prefix is
cached, and no request is ever made twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from pipeline.core.errors import RequestRefusedError
from pipeline.decoding import SpanMark
from pipeline.engine.base import Engine, GuideRequest, Request
from pipeline.engine.repetition import COPIES
from pipeline.run.generation import Ended, Generation, Sampling, Usage
from pipeline.run.repetition import repetition_start

__all__ = [
    "Marks",
    "Reviewer",
    "decode_closed",
    "decode_plain",
    "document_seed",
]


_LEFT = "the engine did not follow its guide"


class Marks(Protocol):
    """What a replay of a record's tokens against its guide shows."""

    @property
    def is_complete(self) -> bool: ...
    @property
    def first_tightened(self) -> int | None: ...
    @property
    def slack_tokens(self) -> int | None: ...
    @property
    def spans(self) -> tuple[SpanMark, ...]: ...
    def shaped_fields(self, from_step: int) -> tuple[str, ...]: ...


class Reviewer(Protocol):
    """A guide as its policy sees it: after the fact."""

    def review(
        self, token_ids: Sequence[int], budget_tokens: int | None, reserve_tokens: Sequence[int] = ()
    ) -> Marks | None:
        """Replays a record's tokens under the budget they were decoded with (None: no budget); None if illegal."""

    def is_legal(self, token_ids: Sequence[int], budget_tokens: int, reserve_tokens: Sequence[int]) -> bool:
        """Whether a record under this budget may begin so."""

    def least_left(self, token_ids: Sequence[int]) -> int:
        """The fewest tokens that complete the record these begin."""


async def decode_plain(engine: Engine, sampling: Sampling, budget_tokens: int, reviewer: Reviewer | None) -> Generation:
    """One request under the plain mask, or none: `reject` and `salvage`.

    Raises:
        RequestRefusedError, EngineDeadError: from the engine.
    """
    completion = await engine.generate(_request(sampling, 0, (), None, budget_tokens))
    tokens = completion.token_ids
    slack = max(0, budget_tokens - len(tokens))
    marks = None if reviewer is None else reviewer.review(tokens, None)
    if marks is not None and marks.is_complete:
        ended = Ended.COMPLETE
    elif completion.finish == "repetition":
        ended = Ended.RUNAWAY
    elif len(tokens) >= budget_tokens:
        ended = Ended.CUT
    else:
        ended = Ended.UNKNOWN
    return Generation(tokens, ended, budget_tokens, Usage().plus(completion), completion.text, slack)


async def decode_closed(engine: Engine, sampling: Sampling, ladder: Sequence[int], reviewer: Reviewer) -> Generation:
    """A record under the budget mask: `close`.

    Args:
        engine: generates.
        sampling: what the requests share.
        ladder: budgets in tokens, rising, none beyond the context; the first is the job's `max_tokens`.
        reviewer: replays tokens against the guide.

    Raises:
        RequestRefusedError, EngineDeadError: from the engine's first request; a later one that is refused leaves the
            record as it stands, marked as closed.
    """
    budget, reserve = ladder[0], sampling.reserve_tokens
    completion = await engine.generate(_request(sampling, 0, (), budget, budget, reserve))
    marks = reviewer.review(completion.token_ids, budget, reserve)
    current = Generation(
        completion.token_ids,
        Ended.COMPLETE,
        budget,
        Usage().plus(completion),
        completion.text,
        slack_tokens=budget - len(completion.token_ids),
    )
    if marks is None:
        return replace(current, ended=Ended.UNKNOWN, detail=_LEFT)
    if marks.is_complete:
        return await _settle(engine, sampling, current, marks, list(ladder[1:]), reviewer)
    if completion.finish == "repetition":
        return await _end_runaway(engine, sampling, current, reviewer)
    return replace(current, ended=Ended.CUT)


async def _settle(
    engine: Engine, sampling: Sampling, current: Generation, marks: Marks, rungs: list[int], reviewer: Reviewer
) -> Generation:
    """Finds out whether the budget bent a complete record, climbing the ladder while it did."""
    reserve = sampling.reserve_tokens
    number = 1
    while (first := marks.first_tightened) is not None:
        prefix = current.token_ids[:first]
        # A repetition is the document's own often enough (lines of a receipt): it names the cause, and proves nothing.
        ended = Ended.COMPLETE if repetition_start(prefix) is None else Ended.RUNAWAY
        shaped = replace(current, is_closed=True, shaped_fields=_shaped_fields(marks, first), ended=ended)
        if not rungs and sampling.temperature > 0:
            return shaped
        budget = rungs.pop(0) if rungs else None
        if budget is None:
            max_tokens = len(current.token_ids) - first + 1
        else:
            max_tokens = budget - first
            # A larger budget keeps more back for later fields, which may forbid what the smaller one allowed.
            reserve = reserve if reviewer.is_legal(prefix, budget, reserve) else ()
        try:
            completion = await engine.generate(_request(sampling, number, prefix, budget, max_tokens, reserve))
        except RequestRefusedError as error:
            return replace(shaped, detail=f"not compared with a larger budget: {error}")
        usage = current.usage.plus(completion)
        number += 1
        if budget is None:
            return replace(_compared(current, shaped, completion.token_ids, first, marks), usage=usage)
        tokens = prefix + completion.token_ids
        longer = reviewer.review(tokens, budget, reserve)
        if longer is None or not longer.is_complete:
            # Not for want of tokens: the mask sees to that.  The shorter record is the best one.
            return replace(shaped, ended=Ended.RUNAWAY, usage=usage)
        current = Generation(tokens, Ended.COMPLETE, budget, usage, slack_tokens=budget - len(tokens))
        marks = longer
    return current


def _compared(current: Generation, shaped: Generation, unbent: Sequence[int], first: int, marks: Marks) -> Generation:
    """The verdict on a record, given what follows its first tightened step where no budget is set."""
    ours = current.token_ids[first:]
    if tuple(unbent) == ours:
        return current
    same = next((i for i, (a, b) in enumerate(zip(ours, unbent, strict=False)) if a != b), min(len(ours), len(unbent)))
    return replace(shaped, shaped_fields=_shaped_fields(marks, first + same))


def _shaped_fields(marks: Marks, step: int) -> tuple[str, ...]:
    """Fields from a step on; the last one written where the step is the end that the budget put to the record."""
    while step >= 0:
        if fields := marks.shaped_fields(step):
            return fields
        step -= 1
    return ()


async def _end_runaway(engine: Engine, sampling: Sampling, current: Generation, reviewer: Reviewer) -> Generation:
    """Closes a record whose generation was stopped for repeating itself: one copy of the pattern stays.

    The budget is what closing needs and no more, so that the model cannot go on where it was stopped.  Where what the
    schema still asks for repeats itself too, as the items of a list of fixed length may, the engine stops again, and is
    asked for the rest.
    """
    # The shortest that an engine stops for: copies of a single token.
    start = repetition_start(current.token_ids, least_tokens=COPIES)
    kept = current.token_ids if start is None else current.token_ids[:start]
    runaway = replace(current, ended=Ended.RUNAWAY)
    budget = len(kept) + reviewer.least_left(kept)
    if budget > current.budget_tokens:
        return runaway
    tokens, usage, number = kept, current.usage, 1
    is_stopped = True
    while is_stopped:
        try:
            completion = await engine.generate(_request(sampling, number, tokens, budget, budget - len(tokens)))
        except RequestRefusedError as error:
            return replace(runaway, usage=usage, detail=f"not closed: {error}")
        tokens, usage, number = tokens + completion.token_ids, usage.plus(completion), number + 1
        is_stopped = completion.finish == "repetition" and len(tokens) < budget
    marks = reviewer.review(tokens, budget)
    if marks is None or not marks.is_complete:
        return replace(runaway, usage=usage)
    return Generation(
        tokens,
        Ended.RUNAWAY,
        current.budget_tokens,
        usage,
        slack_tokens=current.budget_tokens - len(tokens),
        is_closed=True,
        shaped_fields=_shaped_fields(marks, len(kept)),
    )


def _request(
    sampling: Sampling,
    number: int,
    prefix: tuple[int, ...],
    budget_tokens: int | None,
    max_tokens: int,
    reserve: tuple[int, ...] = (),
) -> Request:
    """Request `number` of a document: its prompt, then the part of the record that stands."""
    guide = None
    if sampling.backend is not None:
        guide = GuideRequest(
            sampling.backend,
            sampling.guide_name,
            budget_tokens,
            len(prefix),
            reserve if budget_tokens is not None else (),
            sampling.document,
        )
    seed = None if sampling.seed is None else _seed(sampling.seed, number)
    return Request(
        f"{sampling.request_id}-{number}",
        sampling.prompt_ids + prefix,
        max_tokens,
        guide,
        sampling.temperature,
        seed,
    )


def document_seed(seed: int, document_id: str) -> int:
    """A seed of its own for each document, the same in every submission."""
    return _digest_int(f"{seed}/{document_id}")


def _seed(seed: int, number: int) -> int:
    return _digest_int(f"{seed}/{number}")


def _digest_int(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
