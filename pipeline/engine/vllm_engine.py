"""The engine that is vLLM: one request a document, a watch on its silence, no leftovers.

This package is the only importer of vLLM; its errors become ours in this module, by type.  vLLM itself is imported
when an engine is started, because it reads its environment at import.  What a completion means is not decided here.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pipeline.core.errors import EngineDeadError, RequestRefusedError
from pipeline.core.sections import GuideName, ModelSpec
from pipeline.engine.base import Completion, EngineMetrics, Request
from pipeline.engine.checks import check_budget
from pipeline.engine.guide_files import GuideFiles
from pipeline.engine.prompts import load_tokenizer
from pipeline.engine.tether import Tether
from pipeline.engine.vllm_args import check_model, is_folder, set_environment
from pipeline.engine.vllm_names import check_device, check_vllm, vllm_version
from pipeline.engine.watchdog import Watchdog
from pipeline.engine.wire import Binding

__all__ = ["VllmEngine"]

_SHUTDOWN_S = 4.0


class VllmEngine:
    """One vLLM engine.  Build it with `start`; end it with `close`."""

    def __init__(
        self, llm: Any, model: ModelSpec, guides: GuideFiles, watchdog: Watchdog, tether: Tether, counters: Any
    ) -> None:
        self._llm = llm
        self._max_model_len = int(llm.model_config.max_model_len)
        self._guides = guides
        self._watchdog = watchdog
        self._tether = tether
        self._counters = counters
        self._model = model
        self._tokenizer: Any = None
        self._loading = asyncio.Lock()
        self._name = f"vllm {vllm_version()} {Path(model.name).name if is_folder(model) else model.name}"

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
        """Starts an engine and waits until it can serve.

        Args:
            model: a folder or a hub name, and vLLM's arguments.
            guides: the local file of each guide, by fingerprint; another guide of the same folder can be named later.
            guide_backend: what guides this engine's requests; the guide of a request must go with it.
            silence_s: with requests in flight and no progress for so long, the engine is taken for dead.
            start_s: how long the start may take.
            seed: of the engine's sampler.
            gpus: how many the engine was given, where somebody counts them.

        Raises:
            EngineStartError: the model, its arguments, a guide's file or this vLLM will not do, or it took too long.
        """
        check_model(model)
        files = GuideFiles(guides)
        set_environment(model)
        await asyncio.to_thread(check_vllm)  # imports vLLM, which takes seconds
        check_device(gpus)
        from pipeline.engine.vllm_progress import EngineCounters
        from pipeline.engine.vllm_start import start_vllm

        counters, watchdog, tether = EngineCounters(), Watchdog(silence_s), Tether()
        warming = asyncio.create_task(asyncio.to_thread(files.warm))
        try:
            llm = await start_vllm(
                model, guide_backend, tether, counters, watchdog.progress, start_s=start_s, seed=seed
            )
            await warming
            return cls(llm, model, files, watchdog, tether, counters)
        except BaseException:
            warming.cancel()
            watchdog.close()
            await asyncio.to_thread(tether.close)
            raise

    @property
    def name(self) -> str:
        return self._name

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    async def generate(self, request: Request) -> Completion:
        """One completion.

        Raises:
            RequestRefusedError: this request cannot be served; others can.
            EngineDeadError: the engine is gone or silent; no request will be served.
        """
        check_budget(request, self.max_model_len)
        return await self._completion(request, await self._watchdog.guard(self._final_output(request)))

    def metrics(self) -> EngineMetrics:
        values = {key: float(value) for key, value in asdict(self._counters).items()}
        return EngineMetrics(values | {"in_flight": float(self._watchdog.in_flight)})

    async def close(self) -> None:
        self._watchdog.condemn("the engine was closed")
        self._watchdog.close()
        try:
            await self._hang_up()
        finally:
            await asyncio.to_thread(self._shut_down)

    async def _hang_up(self) -> None:
        """Ends vLLM's listening to its core, which would take the core's own end for a death and log it as an error."""
        listening: asyncio.Task[None] | None = getattr(self._llm, "output_handler", None)
        if listening is not None:
            listening.cancel()
            await asyncio.wait((listening,))

    def _shut_down(self) -> None:
        """vLLM's own way first, then whatever is left of it by force.  Blocks for seconds."""
        llm, self._llm = self._llm, None
        try:
            if llm is not None:
                llm.shutdown(timeout=_SHUTDOWN_S)
        finally:
            self._tether.close()
        del llm
        gc.collect()  # vLLM's engine is a cycle; left to the interpreter's end, its destructor fails aloud

    async def _final_output(self, request: Request) -> Any:
        """vLLM's last output of a request."""
        from vllm.inputs import tokens_input

        from pipeline.engine.vllm_requests import DEAD, REFUSALS, reason, sampling_params

        last = None
        try:
            params = sampling_params(request, self._binding(request))
            prompt = tokens_input(list(request.prompt_ids))
            async for output in self._llm.generate(prompt, params, request.request_id):
                last = output
        except DEAD as error:
            self._watchdog.condemn("vLLM's engine core died")
            raise EngineDeadError("vLLM's engine core died") from error
        except REFUSALS as error:
            raise RequestRefusedError(f"vLLM refused the request: {reason(error)}") from error
        if last is None:
            raise EngineDeadError("vLLM ended a request without an output")
        return last

    def _binding(self, request: Request) -> Binding | None:
        guide = request.guide
        if guide is None or guide.backend != "recordmill":
            return None
        return Binding(
            fingerprint=guide.name,
            path=str(self._guides.path(guide.name)),
            budget_tokens=guide.budget_tokens,
            prefix_tokens=guide.prefix_tokens,
            reserve_tokens=guide.reserve_tokens,
            document=guide.document,
        )

    async def _completion(self, request: Request, output: Any) -> Completion:
        from pipeline.engine.vllm_requests import finish_of, spoken_ids

        answer, stats = output.outputs[0], output.metrics
        finish = finish_of(answer.finish_reason)
        token_ids = spoken_ids(answer.token_ids, finish)
        steps = () if answer.logprobs is None else answer.logprobs[: len(token_ids)]
        scored = () if not request.scored_tokens else output.prompt_logprobs[-request.scored_tokens :]
        return Completion(
            token_ids=token_ids,
            text=await self._text(token_ids, request),
            finish=finish,
            cached_tokens=output.num_cached_tokens or 0,
            queued_s=stats.scheduled_ts - stats.queued_ts,
            prefill_s=stats.first_token_ts - stats.scheduled_ts,
            decode_s=stats.last_token_ts - stats.first_token_ts,
            logprobs=tuple(map(_by_id, steps)),
            scores=tuple(map(_by_id, scored)),
        )

    async def _text(self, token_ids: tuple[int, ...], request: Request) -> str:
        """The bytes of a record are those of its guide; other text is what the tokenizer makes of it."""
        guide = request.guide
        if guide is not None and guide.backend == "recordmill":
            return self._guides.guide(guide.name).decode(token_ids).decode("utf-8", "replace")
        async with self._loading:
            if self._tokenizer is None:
                # Seconds, for a large vocabulary; a run under our guides never needs it.
                self._tokenizer = await asyncio.to_thread(load_tokenizer, self._model)
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))


def _by_id(step: Mapping[int, Any]) -> dict[int, float]:
    """Log-probabilities of one step as vLLM gives them, without those of ids that the mask forbids."""
    return {token_id: entry.logprob for token_id, entry in step.items() if entry.logprob > -math.inf}
