"""Schedulers that hand vLLM our guides.

vLLM builds the class that `scheduler_cls` names inside its engine core; that is the one public door through which a
structured-output backend of our own can enter without an installed plugin.  Each class installs the backend before
the first request and binds each request of ours to its cursor; all scheduling stays vLLM's.

The few private names relied on are checked when the engine starts: see `check_vllm`.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from functools import partial
from typing import Any

from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import DraftTokenIds
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar

from pipeline.core.errors import EngineStartError, RecordmillError, RequestRefusedError
from pipeline.engine.backend import CursorGrammar, GuideBackend
from pipeline.engine.drafts import DRAFTER, ForcedDrafts
from pipeline.engine.vllm_names import TESTED_VERSIONS, vllm_version
from pipeline.engine.wire import MASK_NS, Binding, without_binding

__all__ = [
    "GuidedAsyncScheduler",
    "GuidedScheduler",
    "MeasuredAsyncScheduler",
    "MeasuredScheduler",
    "bind_request",
    "install_backend",
]

logger = logging.getLogger(__name__)

_BACKEND_NAME = "outlines"


def install_backend(manager: StructuredOutputManager) -> GuideBackend:
    """Makes our backend the manager's, which builds one only where it has none.

    Raises:
        EngineStartError: the manager is not as the vLLM versions that were tested have it.
    """
    if getattr(manager, "backend", manager) is not None or not hasattr(manager, "tokenizer"):
        raise EngineStartError(
            f"vLLM {vllm_version()}: StructuredOutputManager.backend or .tokenizer is not what it was "
            f"in the tested versions ({TESTED_VERSIONS})"
        )
    config = manager.vllm_config
    backend = GuideBackend(config, tokenizer=manager.tokenizer, vocab_size=config.model_config.get_vocab_size())
    manager.backend = backend
    if hasattr(manager, "backend_name"):  # vLLM 0.33 compares it with each request's backend
        manager.backend_name = _BACKEND_NAME
    return backend


def bind_request(backend: GuideBackend, request: Request) -> None:
    """Gives a request of ours its grammar, in place of the one that vLLM is compiling; leaves others alone.

    A future that fails is how vLLM fails one request alone: it ends with finish reason "error".

    The binding, which may hold a whole document, ends here: vLLM sends the engine core's copy of a request's parameters
    to every worker, which have no use for it.
    """
    structured = request.structured_output_request
    params = request.sampling_params
    if structured is None or params is None:
        return
    bound: StructuredOutputGrammar | Future[StructuredOutputGrammar]
    try:
        binding = Binding.from_extra_args(params.extra_args)
        if binding is None:
            return
        prompt_ids = request.prompt_token_ids or ()
        _check_room(backend, len(prompt_ids), params.max_tokens or 0)
        bound = (
            backend.bind(binding, prompt_ids) if binding.document is None else backend.bind_soon(binding, prompt_ids)
        )
    except RecordmillError as error:
        bound = Future()
        bound.set_exception(error)
    if isinstance(bound, Future):
        bound.add_done_callback(partial(_log_refusal, request.request_id))
    structured.grammar = bound
    params.extra_args = without_binding(params.extra_args)


def _check_room(backend: GuideBackend, prompt_tokens: int, max_tokens: int) -> None:
    """vLLM ends a request where the context does, which no budget knows of.

    Raises:
        RequestRefusedError: that would be before the request's own end.
    """
    context = backend.vllm_config.model_config.max_model_len
    if prompt_tokens + max_tokens > context:
        raise RequestRefusedError(
            f"a prompt of {prompt_tokens} tokens and {max_tokens} more do not fit into max_model_len {context}"
        )


def _log_refusal(request_id: str, bound: Future[StructuredOutputGrammar]) -> None:
    if not bound.cancelled() and (error := bound.exception()) is not None:
        logger.error("request %s refused: %s", request_id, error)


def drafts_of(manager: StructuredOutputManager) -> ForcedDrafts | None:
    """What drafts forced text, where the engine was started so."""
    speculative = manager.vllm_config.speculative_config
    if speculative is None or speculative.model != DRAFTER:
        return None
    return ForcedDrafts(manager.tokenizer, speculative.num_speculative_tokens)


class _Guided:
    """What both kinds do before vLLM's own scheduler, which comes after this in the order of methods."""

    structured_output_manager: StructuredOutputManager
    requests: dict[str, Request]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        manager = self.structured_output_manager
        self._guides = install_backend(manager)
        config = manager.vllm_config
        # With drafts a request has several rows; a reasoner puts off the mask.
        self._is_plain = config.speculative_config is None and getattr(manager, "reasoner_cls", manager) is None
        self._most = config.scheduler_config.max_num_seqs

    def get_grammar_bitmask(self, scheduler_output: SchedulerOutput) -> GrammarOutput | None:
        """As vLLM's own, which takes eight calls a request, where all masks of the step are ours."""
        grammars = self._ours(scheduler_output) if self._is_plain else {}
        if not grammars:
            return super().get_grammar_bitmask(scheduler_output)  # type: ignore[misc]
        masks = self._guides.masks(list(grammars.values()), self._most)
        return GrammarOutput(list(grammars), masks, num_acceptable_drafts=[0] * len(grammars))

    def _ours(self, scheduler_output: SchedulerOutput) -> dict[str, CursorGrammar]:
        """The grammar of each request that a mask is needed for; none where one of them is not ours."""
        grammars: dict[str, CursorGrammar] = {}
        for request_id in scheduler_output.num_scheduled_tokens:
            request = self.requests.get(request_id)
            structured = None if request is None or request.is_prefill_chunk else request.structured_output_request
            if structured is not None:
                grammar = structured.grammar
                if not isinstance(grammar, CursorGrammar):
                    return {}
                grammars[request_id] = grammar
        return grammars

    def add_request(self, request: Request) -> None:
        bind_request(self._guides, request)
        super().add_request(request)  # type: ignore[misc]


class GuidedScheduler(_Guided, Scheduler):  # type: ignore[misc]
    """For platforms without asynchronous scheduling, such as the CPU."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._drafts = drafts_of(self.structured_output_manager)

    def update_draft_token_ids(self, draft_token_ids: DraftTokenIds) -> None:
        if self._drafts is not None:
            drafts = [self._draft(self.requests.get(name)) for name in draft_token_ids.req_ids]
            draft_token_ids = DraftTokenIds(draft_token_ids.req_ids, drafts)
        super().update_draft_token_ids(draft_token_ids)

    def _draft(self, request: Request | None) -> list[int]:
        structured = None if request is None else request.structured_output_request
        grammar = None if structured is None else structured.grammar
        if self._drafts is None or not isinstance(grammar, CursorGrammar):
            return []
        return self._drafts.ids(grammar.forced())


class GuidedAsyncScheduler(_Guided, AsyncScheduler):  # type: ignore[misc]
    """For platforms with asynchronous scheduling."""


class _Measured:
    """Adds the time that masks take to the statistics of each step.

    For our own engine only, whose stat logger reads them; vLLM's would log the stage of a fetch.
    """

    _mask_ns = 0

    def get_grammar_bitmask(self, scheduler_output: Any) -> Any:
        started = time.perf_counter_ns()
        filled = super().get_grammar_bitmask(scheduler_output)  # type: ignore[misc]
        if filled is not None:
            self._mask_ns += time.perf_counter_ns() - started
        return filled

    def make_stats(self, *args: Any, **kwargs: Any) -> Any:
        stats = super().make_stats(*args, **kwargs)  # type: ignore[misc]
        # A vLLM without this field only leaves the time unmeasured.
        if (stages := getattr(stats, "num_kv_fetch_reqs_by_stage", None)) is not None:
            stages[MASK_NS] = self._mask_ns
        return stats


class MeasuredScheduler(_Measured, GuidedScheduler):
    """`GuidedScheduler` in our own engine."""


class MeasuredAsyncScheduler(_Measured, GuidedAsyncScheduler):
    """`GuidedAsyncScheduler` in our own engine."""
