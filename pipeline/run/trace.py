"""Owns a trace: one document decoded as a run would, and what the model and the mask thought at each step.

The record is decoded first, by the run's own policy.  Its tokens are then scored by the same engine under no mask, and
replayed against the guide: what is shown is what happened.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.core.document import Document
from pipeline.core.errors import SpecError
from pipeline.core.outcome import Outcome, Status
from pipeline.core.spec import JobSpec
from pipeline.decoding import Guide, SpanDocument
from pipeline.engine.base import Completion, Engine, EngineMetrics, Request
from pipeline.report.trace import Candidate, Step, Trace, Unguided
from pipeline.run.engines import start_engine
from pipeline.run.extract import Extracted
from pipeline.run.guidance import GuideReviewer, guidance_of
from pipeline.run.in_process import extractor_of, local_engine
from pipeline.run.messages import EngineFactory
from pipeline.run.parse import Refusal, parse_record, strip_fence
from pipeline.run.preflight import Job, prepare_job
from pipeline.run.sample import read_document
from pipeline.storage.arrow import record_schema

__all__ = ["Traced", "trace"]

ALTERNATIVES = 10
"""Log-probabilities asked for at each step."""
SHOWN = 6
"""Candidates that a step shows."""

_ByToken = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Traced:
    """A trace, and what made it."""

    trace: Trace
    engine: str


def trace(
    spec: JobSpec,
    base: Path,
    document_id: str,
    *,
    with_unguided: bool = True,
    engine_factory: EngineFactory = start_engine,
) -> Traced:
    """Decodes one document of a job's input and keeps what stood behind each token.

    Args:
        spec: the job; its output is neither looked at nor written to.
        base: its folder.
        document_id: the document.
        with_unguided: whether the same prompt is answered without a guide as well.
        engine_factory: starts the engine.

    Raises:
        SpecError: the job is not guided by `recordmill`.
        InputError: there is no such document.
        RecordmillError: the job is wrong otherwise, or the engine cannot start or died.
    """
    if spec.decoding.guide != "recordmill":
        raise SpecError(f"trace shows guide recordmill at work; this job has {spec.decoding.guide}")
    job = prepare_job(spec, base)
    sample = read_document(spec, document_id)
    record_schema(job.record, sample.columns)  # raises what a run would refuse: two columns of one name
    row, document = sample.rows[0], sample.documents[0]

    async def traced() -> Traced:
        async with local_engine(job, engine_factory) as engine:
            listener = _Listener(engine)
            with ThreadPoolExecutor(1, "tokenise") as tokenising:
                found = await extractor_of(job, listener, tokenising).extract(row, "trace")
            return Traced(await _trace(job, engine, listener, document, found, with_unguided), engine.name)

    return asyncio.run(traced())


@dataclass(slots=True)
class _Listener:
    """An engine that asks for log-probabilities where its caller does not, and keeps what it hears."""

    engine: Engine
    heard: list[tuple[Request, Completion]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def max_model_len(self) -> int:
        return self.engine.max_model_len

    async def generate(self, request: Request) -> Completion:
        completion = await self.engine.generate(replace(request, logprobs=ALTERNATIVES))
        self.heard.append((request, completion))
        return completion

    def metrics(self) -> EngineMetrics:
        return self.engine.metrics()

    async def close(self) -> None:
        await self.engine.close()


async def _trace(
    job: Job, engine: Engine, listener: _Listener, document: Document, found: Extracted, with_unguided: bool
) -> Trace:
    outcome = found.outcome
    trace = Trace(document.document_id, document.text or "", outcome, (), None)
    if not listener.heard or job.guide is None:
        return replace(trace, note="Nothing was asked of the engine.")
    prompt_ids = tuple(listener.heard[0][0].prompt_ids)
    if with_unguided:
        trace = replace(trace, unguided=await _unguided(job, engine, listener.heard[0][0]))
    asked = listener.heard[0][0].guide
    if asked is None or not found.token_ids:
        return replace(trace, note="Nothing was generated.")
    # The text that was read, which may be a part of the document's.
    copied = None if asked.document is None else SpanDocument.from_bytes(asked.document)
    reviewer = GuideReviewer(job.guide, copied)
    is_whole = outcome.status is not Status.TRUNCATED and found.token_ids and _is_complete(reviewer, found.token_ids)
    ids = (*found.token_ids, job.guide.eos_ids[0]) if is_whole else found.token_ids
    scores = await _scores(engine, prompt_ids, ids)
    steps = _Replay(job, reviewer, outcome, scores, _masked(listener.heard, found.token_ids)).steps(ids)
    note = (
        None if len(steps) == len(ids) else f"Step {len(steps) + 1} is not legal under the guide; the rest is left out."
    )
    return replace(trace, steps=steps, note=note)


def _is_complete(reviewer: GuideReviewer, token_ids: Sequence[int]) -> bool:
    marks = reviewer.review(token_ids, None)
    return marks is not None and marks.is_complete


async def _scores(engine: Engine, prompt_ids: tuple[int, ...], ids: Sequence[int]) -> tuple[_ByToken, ...]:
    """What the model alone thought of each id; fewer at the end where the context has no room to ask for all."""
    room = engine.max_model_len - len(prompt_ids) - 1
    asked = tuple(ids[:room])
    if not asked:
        return ()
    request = Request("trace-scores", prompt_ids + asked, 1, None, logprobs=ALTERNATIVES, scored_tokens=len(asked))
    return (await engine.generate(request)).scores


def _masked(heard: Sequence[tuple[Request, Completion]], kept: Sequence[int]) -> dict[int, _ByToken]:
    """Log-probabilities under the mask by step, from the last request under a budget that led to each kept token."""
    found: dict[int, _ByToken] = {}
    for request, completion in heard:
        guide = request.guide
        start = 0 if guide is None else guide.prefix_tokens
        is_comparison = start > 0 and guide is not None and guide.budget_tokens is None
        if is_comparison or tuple(request.prompt_ids[len(request.prompt_ids) - start :]) != tuple(kept[:start]):
            continue
        for step, (token_id, by_token) in enumerate(
            zip(completion.token_ids, completion.logprobs, strict=False), start
        ):
            if step >= len(kept) or kept[step] != token_id:
                break
            found[step] = by_token
    return found


async def _unguided(job: Job, engine: Engine, first: Request) -> Unguided:
    max_tokens = min(job.spec.decoding.max_tokens, engine.max_model_len - len(first.prompt_ids))
    completion = await engine.generate(replace(first, request_id="trace-free", guide=None, max_tokens=max_tokens))
    parsed = parse_record(strip_fence(completion.text), job.record)
    if not isinstance(parsed, Refusal):
        verdict = "It would have been a record all the same."
    elif completion.finish == "length":
        verdict = "It would have been truncated."
    else:
        verdict = f"It would have been invalid ({parsed.cause}): {parsed.detail}"
    return Unguided(completion.text, len(completion.token_ids), completion.finish == "length", verdict)


class _Replay:
    """A record's tokens walked through its guide again, with and without the budget."""

    def __init__(
        self,
        job: Job,
        reviewer: GuideReviewer,
        outcome: Outcome,
        scores: Sequence[_ByToken],
        masked: Mapping[int, _ByToken],
    ) -> None:
        self._guide: Guide = reviewer.guide
        self._tokenizer = job.tokenizer
        self._reviewer = reviewer
        self._budget = outcome.budget_tokens if job.spec.truncation.policy == "close" else None
        self._reserve = guidance_of(job.spec, reviewer.guide, job.schema).reserve
        self._scores = scores
        self._masked = masked

    def steps(self, ids: Sequence[int]) -> tuple[Step, ...]:
        """One step an id, as long as they are legal."""
        guide, document = self._guide, self._reviewer.document
        spoken = [token_id for token_id in ids if token_id not in guide.eos_ids]
        reserve: tuple[int, ...] = ()
        if self._budget is not None and self._reviewer.is_legal(spoken, self._budget, self._reserve):
            reserve = self._reserve
        bounded, free = guide.cursor(self._budget, reserve, document), guide.cursor(None, (), document)
        found: list[Step] = []
        for number, token_id in enumerate(ids):
            legal, allowed = _bits(bounded.row().words), _bits(free.row().words)
            slack = None if self._budget is None else self._budget - bounded.emitted - bounded.least_left
            is_tightened = bounded.is_tightened
            if not (bounded.advance(token_id) and free.advance(token_id)):
                break
            step = Step(
                number=number + 1,
                text=self._text(token_id),
                before=guide.decode(ids[:number]).decode("utf-8", "replace"),
                field=bounded.path,
                legal_tokens=int(legal.sum()),
                is_tightened=is_tightened,
                is_bent=is_tightened and self._is_bent(number, legal, allowed),
                slack_tokens=slack,
                free=None,
                masked=None,
                legal_mass=None,
                candidates=(),
            )
            found.append(self._weighed(step, token_id, legal))
        return tuple(found)

    def _is_bent(self, number: int, legal: NDArray[np.bool_], allowed: NDArray[np.bool_]) -> bool:
        """Whether the likeliest token that the schema allows is one that the budget forbids."""
        likely = [(logprob, token_id) for token_id, logprob in self._score(number).items() if allowed[token_id]]
        return bool(likely) and not legal[max(likely)[1]]

    def _score(self, number: int) -> _ByToken:
        return self._scores[number] if number < len(self._scores) else {}

    def _weighed(self, step: Step, token_id: int, legal: NDArray[np.bool_]) -> Step:
        number = step.number - 1
        scores, masked = self._score(number), self._masked.get(number, {})
        free, under_mask = _probability(scores, token_id), _probability(masked, token_id)
        mass = free if step.is_forced else None
        if mass is None and free is not None and under_mask:
            # The mask only takes tokens away and scales what is left: the ratio is what the legal ones had together.
            mass = min(1.0, free / under_mask)
        elif mass is None and scores:
            mass = sum(math.exp(logprob) for other, logprob in scores.items() if legal[other])
        likeliest = sorted(scores, key=lambda other: -scores[other])[:SHOWN]
        best_legal = sorted((other for other in masked if legal[other]), key=lambda other: -masked[other])[: SHOWN // 2]
        shown = list(dict.fromkeys((*likeliest, *best_legal, token_id)))
        candidates = tuple(
            Candidate(
                self._text(other),
                _probability(scores, other),
                _probability(masked, other) if legal[other] else None,
                bool(legal[other]),
                other == token_id,
            )
            for other in sorted(shown, key=lambda other: -scores.get(other, -math.inf))
        )
        return replace(step, free=free, masked=under_mask, legal_mass=mass, candidates=candidates)

    def _text(self, token_id: int) -> str:
        """What a token spells; the end and other control tokens in angle brackets."""
        if token_id in self._guide.eos_ids:
            return "⟨end⟩"
        spelt = self._guide.decode((token_id,))
        if spelt:
            return spelt.decode("utf-8", "replace")
        named = str(self._tokenizer.decode([token_id]))
        return f"⟨{named or token_id}⟩"


def _probability(by_token: _ByToken, token_id: int) -> float | None:
    return math.exp(by_token[token_id]) if token_id in by_token else None


def _bits(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """bool[ids] of a mask row."""
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)
