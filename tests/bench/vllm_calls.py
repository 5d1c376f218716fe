"""The calls that vLLM's engine core makes on a guided request, on each engine's own grammar class."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from tests.bench.vocabularies import BenchVocabulary

__all__ = ["bitmask", "vllm_grammar"]


def vllm_grammar(engine: str, compiled: Any, vocabulary: BenchVocabulary, budget_tokens: int | None = None) -> Any:
    """A `StructuredOutputGrammar` at the start of a record, with `fill_bitmask` and `accept_tokens`."""
    size = vocabulary.size
    if engine.startswith("ours"):
        backend = importlib.import_module("pipeline.engine.backend")
        return backend.CursorGrammar(compiled.guide.cursor(budget_tokens), (), backend.MaskRows(), (0, 0))
    stock = importlib.import_module(f"vllm.v1.structured_output.backend_{_BACKENDS[engine]}")
    if engine == "outlines":
        guide = importlib.import_module("outlines_core").Guide(compiled.index)
        return stock.OutlinesGrammar(vocab_size=size, eos_token_id=vocabulary.eos_id, guide=guide)
    if engine == "llguidance":
        matcher = compiled.first.deep_copy()
        return stock.GuidanceGrammar(ll_matcher=matcher, ll_tokenizer=compiled.tokenizer, vocab_size=size)
    matcher = importlib.import_module("xgrammar").GrammarMatcher(compiled.grammar)
    return stock.XgrammarGrammar(vocab_size=size, matcher=matcher, ctx=compiled.grammar)


_BACKENDS = {
    "outlines": "outlines",
    "xgrammar": "xgrammar",
    "xgrammar-strict": "xgrammar",
    "llguidance": "guidance",
}


def bitmask(rows: int, vocab_size: int) -> torch.Tensor:
    """int32[rows, ceil(V / 32)], as vLLM's backends allocate it."""
    return torch.full((rows, (vocab_size + 31) // 32), -1, dtype=torch.int32)
