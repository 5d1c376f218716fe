"""An engine without a model, for tests and rehearsals: deterministic, guided as the real one, with faults on demand.

It ships, because the policies and the fault handling of a run are tested against it, by us and by users.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeline.core.errors import RequestRefusedError
from pipeline.core.sections import GuideName, ModelSpec
from pipeline.decoding.cursor import Cursor
from pipeline.decoding.guide import Guide
from pipeline.decoding.span_document import SpanDocument
from pipeline.engine.base import Completion, EngineMetrics, Finish, GuideRequest, Request
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.checks import check_budget
from pipeline.engine.guide_files import GuideFiles
from pipeline.engine.repetition import ends_in_repetition
from pipeline.engine.scripted_model import Script, ToyModel
from pipeline.engine.watchdog import Watchdog

__all__ = ["ScriptedEngine"]

_GARBAGE = "Sure! Here is the record you asked for."
_CRASH_STATUS = 13
_EOS_ID = ByteTokenizer.eos_token_id


class ScriptedEngine:
    """Plays a `Script`.  Prompts and completions are bytes: see `ByteTokenizer`."""

    def __init__(
        self,
        script: Script,
        *,
        guides: Mapping[str, str] | None = None,
        answer: Callable[[str], str] | None = None,
        silence_s: float = 120.0,
    ) -> None:
        """Needs a running event loop.

        Args:
            script: what to play.
            guides: path of each guide, by fingerprint.
            answer: from a prompt to its completion; None for what the script names, or random completions.
            silence_s: how long a frozen engine is waited for.
        """
        self._script = script
        self._files = GuideFiles(guides or {})
        self._opened: dict[str, Guide] = {}
        self._answer = answer or script.answer_function()
        self._tokenizer = ByteTokenizer()
        self._watchdog = Watchdog(silence_s)
        self._is_frozen = False
        self._counts: dict[str, float] = {"requests": 0, "output_tokens": 0, "mask_s": 0.0}

    @classmethod
    async def start(
        cls,
        model: ModelSpec,
        *,
        guides: Mapping[str, str],
        guide_backend: GuideName,
        silence_s: float,
        start_s: float,
        seed: int = 0,
        gpus: float | None = None,
    ) -> Self:
        """As `VllmEngine.start`; `model.engine` is the script."""
        return cls(Script.of(model), guides=guides, silence_s=silence_s)

    @property
    def name(self) -> str:
        return "scripted"

    @property
    def max_model_len(self) -> int:
        return self._script.max_model_len

    async def generate(self, request: Request) -> Completion:
        """One completion.

        Raises:
            RequestRefusedError: the script says so, or the request does not fit.
            EngineDeadError: the engine was frozen.
        """
        self._counts["requests"] += 1
        self._log("request", request)
        check_budget(request, self.max_model_len)
        completion = await self._watchdog.guard(self._play(request))
        self._counts["output_tokens"] += len(completion.token_ids)
        self._log("completion", request)
        return completion

    def metrics(self) -> EngineMetrics:
        return EngineMetrics({name: float(count) for name, count in self._counts.items()})

    async def close(self) -> None:
        self._watchdog.condemn("the engine was closed")
        self._watchdog.close()

    async def _play(self, request: Request) -> Completion:
        prompt = self._tokenizer.decode(request.prompt_ids)
        script = self._script
        if _strikes(script.crash_on, prompt) and self._crashes_left():
            self._log("crash", request)
            os._exit(_CRASH_STATUS)
        self._is_frozen |= _strikes(script.freeze_on, prompt)
        if _strikes(script.refuse_on, prompt):
            raise RequestRefusedError("the script refuses this request")
        if not 0 < len(request.prompt_ids) < self.max_model_len:
            raise RequestRefusedError(f"a prompt of {len(request.prompt_ids)} tokens")
        if _strikes(script.garbage_on, prompt):
            return await self._told(tuple(_GARBAGE.encode())[: request.max_tokens], "stop")
        if request.scored_tokens:
            return replace(await self._told((), "length"), scores=self._scores(request))
        token_ids, finish, logprobs = self._decode(request)
        if _strikes(script.cut_on, prompt):
            token_ids, finish = token_ids[: len(token_ids) // 2], "length"
        return replace(await self._told(token_ids, finish), logprobs=tuple(logprobs[: len(token_ids)]))

    async def _told(self, token_ids: tuple[int, ...], finish: Finish) -> Completion:
        """Lets the tokens take their time."""
        for _ in token_ids if self._script.token_s else token_ids[:1]:
            await asyncio.sleep(self._script.token_s)
            if self._is_frozen:
                await asyncio.Event().wait()
            self._watchdog.progress()
        decode_s = len(token_ids) * self._script.token_s
        return Completion(token_ids, self._tokenizer.decode(token_ids), finish, decode_s=decode_s)

    def _decode(self, request: Request) -> tuple[tuple[int, ...], Finish, list[dict[int, float]]]:
        """What the toy model says under the request's mask, and how likely each step was, where that is asked for."""
        prefix_tokens = request.guide.prefix_tokens if request.guide else 0
        split = len(request.prompt_ids) - prefix_tokens
        prompt_ids, said = request.prompt_ids[:split], list(request.prompt_ids[split:])
        legal = _Mask(self._cursor(request.guide, said), self._counts)
        model = ToyModel(prompt_ids, self._wish(prompt_ids, legal.is_guided), self._seed(request), _EOS_ID)
        logprobs: list[dict[int, float]] = []
        for _ in range(min(request.max_tokens, self.max_model_len - len(request.prompt_ids))):
            scores = np.where(legal.ids(), model.scores(said, _EOS_ID + 1), -np.inf)
            token_id = int(np.argmax(scores))
            if token_id == _EOS_ID:
                return tuple(said[prefix_tokens:]), "stop", logprobs
            if request.logprobs is not None:
                logprobs.append(_log_probabilities(scores, token_id, request.logprobs))
            legal.advance(token_id)
            said.append(token_id)
            if ends_in_repetition(said[prefix_tokens:]):
                return tuple(said[prefix_tokens:]), "repetition", logprobs
        return tuple(said[prefix_tokens:]), "length", logprobs

    def _scores(self, request: Request) -> tuple[dict[int, float], ...]:
        """What the toy model, under no mask, thinks of the prompt's last ids."""
        split = len(request.prompt_ids) - request.scored_tokens
        prompt_ids, said = request.prompt_ids[:split], list(request.prompt_ids[split:])
        model = ToyModel(prompt_ids, self._wish(prompt_ids, True), self._seed(request), _EOS_ID)
        return tuple(
            _log_probabilities(model.scores(said[:step], _EOS_ID + 1), token_id, request.logprobs or 0)
            for step, token_id in enumerate(said)
        )

    def _wish(self, prompt_ids: Sequence[int], is_guided: bool) -> bytes | None:
        if self._answer is not None:
            return self._answer(self._tokenizer.decode(prompt_ids)).encode()
        return None if is_guided else b"{}"

    def _seed(self, request: Request) -> int:
        return self._script.seed if request.temperature == 0 or request.seed is None else request.seed

    def _cursor(self, guide: GuideRequest | None, prefix: Sequence[int]) -> Cursor | None:
        """The cursor after the prefix; None for a request that is not guided by us."""
        if guide is None or guide.backend != "recordmill":
            return None
        if guide.name not in self._opened:
            self._opened[guide.name] = Guide.load(self._files.path(guide.name))
        try:
            document = None if guide.document is None else SpanDocument.from_bytes(guide.document)
            cursor = self._opened[guide.name].cursor(guide.budget_tokens, guide.reserve_tokens, document)
        except ValueError as error:
            raise RequestRefusedError(str(error)) from error
        if cursor.validate(prefix) != list(prefix):
            raise RequestRefusedError("the guide does not allow the record's prefix within the budget")
        for token_id in prefix:
            cursor.advance(token_id)
        return cursor

    def _crashes_left(self) -> bool:
        if self._script.crash_times is None or self._script.log is None:
            return True
        lines = Path(self._script.log).read_text().splitlines()
        crashes = [line for line in lines if json.loads(line)["event"] == "crash"]
        return len(crashes) < self._script.crash_times

    def _log(self, event: str, request: Request) -> None:
        """One line an event, written in one call, so that lines of several processes do not mix."""
        if self._script.log is None:
            return
        line = json.dumps({"event": event, "request_id": request.request_id, "pid": os.getpid()}) + "\n"
        descriptor = os.open(self._script.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class _Mask:
    """The legal ids of the next step: those of a cursor, or all."""

    def __init__(self, cursor: Cursor | None, counts: dict[str, float]) -> None:
        """Args:
        counts: `mask_s` among them grows by what masks take.
        """
        self._cursor = cursor
        self._counts = counts
        self._words = np.full((_EOS_ID + 32) // 32, 0xFFFFFFFF, np.uint32)

    @property
    def is_guided(self) -> bool:
        return self._cursor is not None

    def ids(self) -> NDArray[np.bool_]:
        """bool[257]."""
        if self._cursor is not None:
            started = time.perf_counter()
            self._cursor.write_mask(self._words.ctypes.data)
            self._counts["mask_s"] += time.perf_counter() - started
        bits = np.unpackbits(self._words.view(np.uint8), bitorder="little")
        return np.asarray(bits[: _EOS_ID + 1], np.bool_)

    def advance(self, token_id: int) -> None:
        if self._cursor is not None:
            self._cursor.advance(token_id)


def _log_probabilities(scores: NDArray[np.float64], chosen: int, count: int) -> dict[int, float]:
    """Of the chosen id and the `count` likeliest ones; scores are taken as logits."""
    logits = scores - np.logaddexp.reduce(scores)
    likeliest = np.argsort(-logits)[:count].tolist()
    return {token_id: float(logits[token_id]) for token_id in (*likeliest, chosen) if np.isfinite(logits[token_id])}


def _strikes(marker: str | None, prompt: str) -> bool:
    return marker is not None and marker in prompt
