"""Our guides in a vLLM engine of the user's own: what to start it with, what to ask of it, how to read its answers.

Nothing here starts an engine or imports vLLM before it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.core.errors import BudgetError
from pipeline.decoding import Guide, Marks, SpanDocument, Vocabulary, compile_grammar, compile_guide, review
from pipeline.engine.shared_guide import shared_guide_file
from pipeline.engine.vllm_args import cpu_arguments, scheduler_name, stock_backend
from pipeline.engine.vllm_names import check_vllm, is_cpu
from pipeline.engine.wire import Binding, guide_literal
from pipeline.spans.finder import SpanFinder

if TYPE_CHECKING:
    from pydantic import BaseModel
    from vllm import SamplingParams
    from vllm.outputs import CompletionOutput

__all__ = ["VllmGuide", "vllm_arguments"]


_NOT_OURS = frozenset(
    {
        "allowed_token_ids",
        "bad_words",
        "ignore_eos",
        "min_tokens",
        "n",
        "repetition_detection",
        "stop",
        "stop_token_ids",
        "structured_outputs",
    }
)
"""Arguments of `SamplingParams` that end a record early, forbid what it needs, or ask for another guide."""


def vllm_arguments(*, async_scheduling: bool | None = None) -> dict[str, Any]:
    """Keyword arguments for `vllm.LLM` or `AsyncEngineArgs`, beside your own, so that the engine takes our guides.

    Args:
        async_scheduling: prepare a step while the last one runs; None for wherever there is a GPU.  False for an engine
            in which vLLM refuses it, such as one that drafts tokens.

    Raises:
        EngineStartError: vLLM is not installed, or lacks a private name that we rely on.
    """
    check_vllm()
    on_cpu = is_cpu()
    if async_scheduling is None:
        async_scheduling = not on_cpu
    return {
        "structured_outputs_config": {"backend": stock_backend("recordmill")},
        "async_scheduling": async_scheduling,
        "scheduler_cls": scheduler_name(is_async=async_scheduling),
        **(cpu_arguments() if on_cpu else {}),
    }


class VllmGuide:
    """A record type compiled for one tokenizer, for requests to an engine started with `vllm_arguments`.

    One engine serves any number of these at once, and requests without a guide beside them.
    """

    def __init__(
        self,
        record: type[BaseModel],
        tokenizer: Any,
        *,
        extractive: bool = True,
        date_order: str = "any",
        recursion_depth: int = 3,
    ) -> None:
        """Compiles the record type; takes up to seconds for a large one.  The guide goes into shared memory.

        Args:
            record: the class.
            tokenizer: the engine's: a `transformers` fast tokenizer, as `LLM.get_tokenizer()` gives it.
            extractive: whether fields marked with `Span` are copied from the document; if not, they are plain ones.
            date_order: how `03/02/2018` of a document is read: `dmy`, `mdy`, `ymd`, or `any`.
            recursion_depth: to which a recursive model is unrolled.

        Raises:
            SchemaRefusedError: a field cannot be guided; the message names it and says what to write instead.
        """
        grammar = compile_grammar(record, recursion_depth=recursion_depth, extractive=extractive)
        self.guide: Guide = compile_guide(grammar, Vocabulary.from_tokenizer(tokenizer))
        self._path = shared_guide_file(self.guide.fingerprint, self.guide.to_bytes())
        self._finder = SpanFinder.of_guide(self.guide, date_order) if self.guide.span_kinds else None

    def sampling_params(
        self, max_tokens: int, document: str | None = None, *, reserve: bool = True, **others: Any
    ) -> SamplingParams:
        """vLLM's `SamplingParams` for one record, which is whole within `max_tokens`.

        The prompt and `max_tokens` have to fit into the engine's `max_model_len` together; a request for which they do
        not is refused by the engine, and `read` says so.

        Args:
            max_tokens: the record's budget, in tokens.
            document: the text that extractive fields copy from; not needed where the record has none.
            reserve: keep tokens back for the fields that are still to come.
            others: more arguments of `SamplingParams`, such as `temperature`; none that ends or bends a completion.

        Raises:
            BudgetError: no record of this document fits into so few tokens.
            NoSpanError: a required extractive field has no candidate in the document.
            ValueError: the document is missing, or one of `others` would break the record.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        if taken := sorted(_NOT_OURS & others.keys()):
            raise ValueError(f"{', '.join(taken)} cannot be asked for with a guide: the record would not be whole")
        spans = self._spans(document)
        least = self.guide.cursor(document=spans).least_left
        if max_tokens < least:
            raise BudgetError(f"max_tokens is {max_tokens}; the least record takes {least} tokens")
        binding = Binding(
            fingerprint=self.guide.fingerprint,
            path=str(self._path),
            budget_tokens=max_tokens,
            reserve_tokens=self.guide.usual_reserve if reserve else (),
            document=None if spans is None else spans.to_bytes(),
        )
        extra_args = {**(others.pop("extra_args", None) or {}), **binding.extra_args()}
        guided = StructuredOutputsParams(regex=guide_literal(self.guide.fingerprint))
        return SamplingParams(max_tokens=max_tokens, structured_outputs=guided, extra_args=extra_args, **others)

    def _spans(self, document: str | None) -> SpanDocument | None:
        if self._finder is None:
            return None
        if document is None:
            raise ValueError("the record has extractive fields; sampling_params needs the document's text")
        return self._finder.document(document)

    def read(self, output: CompletionOutput, params: SamplingParams) -> tuple[str, Marks]:
        """The record's JSON, exact to the byte, and what the budget did to it.

        Args:
            output: one completion of the request, as in `llm.generate(...)[0].outputs[0]`.
            params: what it was asked with.

        Returns:
            The text, and its marks: `is_complete`; `first_tightened`, None where the budget changed nothing;
            `slack_tokens`; where extractive values stand in the document.

        Raises:
            RequestRefusedError: the engine refused the request; its log says why.
            ValueError: the completion is not one of this guide, so that the engine left it.
        """
        from pipeline.engine.vllm_requests import finish_of, spoken_ids

        binding = Binding.from_extra_args(params.extra_args)
        if binding is None or binding.fingerprint != self.guide.fingerprint:
            raise ValueError(f"the request was not made with guide {self.guide.fingerprint}")
        ids = spoken_ids(output.token_ids, finish_of(output.finish_reason))
        spans = None if binding.document is None else SpanDocument.from_bytes(binding.document)
        marks = review(self.guide, ids, binding.budget_tokens, binding.reserve_tokens, spans)
        return self.guide.decode(ids).decode("utf-8", "replace"), marks
