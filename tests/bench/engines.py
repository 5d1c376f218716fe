"""The engines that are compared: ours, and each peer used as its own documentation, or vLLM, shows."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from typing import Any

from tests.bench.interface import BenchEngine, Compiled, CompileRefusedError, Matcher, Schema, mask_words, schema_of
from tests.bench.ours import Ours
from tests.bench.vocabularies import BenchVocabulary

__all__ = ["ENGINES", "make_engine"]


class _OutlinesCompiled:
    verdict = "-"
    size_bytes: int | None = None

    def __init__(self, index: Any, size: int) -> None:
        self.index, self._size = index, size

    def matcher(self, budget_tokens: int | None = None) -> Matcher:
        return _OutlinesMatcher(self.index, self._size)


class _OutlinesMatcher:
    def __init__(self, index: Any, size: int) -> None:
        from outlines_core import Guide

        self._guide = Guide(index)
        self._mask = mask_words(size)
        self._address = self._mask.ctypes.data

    def write_mask(self) -> None:
        self._guide.write_mask_into(self._address, self._mask.size, 4)

    def advance(self, token_id: int) -> bool:
        try:
            self._guide.advance(token_id, return_tokens=False)
        except ValueError:
            return False
        return True

    def is_accepting(self) -> bool:
        return bool(self._guide.is_finished())


class Outlines:
    """outlines_core, as vLLM's outlines backend uses it."""

    name = "outlines"

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        from outlines_core import Vocabulary

        self.version = importlib.metadata.version("outlines_core")
        self._size = vocabulary.size
        ids: dict[bytes, list[int]] = {}
        for index, token in enumerate(vocabulary.tokens):
            if token is not None:
                ids.setdefault(token, []).append(index)
        self._vocabulary = Vocabulary(vocabulary.eos_id, ids)

    def compile(self, schema: Schema) -> Compiled:
        from outlines_core import Index
        from outlines_core.json_schema import build_regex_from_schema

        regex = build_regex_from_schema(json.dumps(schema_of(schema)))
        return _OutlinesCompiled(Index(regex, self._vocabulary), self._size)


class _XGrammarCompiled:
    verdict = "-"

    def __init__(self, grammar: Any, size: int) -> None:
        self.grammar, self._size = grammar, size
        self.size_bytes: int | None = grammar.memory_size_bytes

    def matcher(self, budget_tokens: int | None = None) -> Matcher:
        return _XGrammarMatcher(self.grammar, self._size)


class _XGrammarMatcher:
    def __init__(self, grammar: Any, size: int) -> None:
        import xgrammar

        self._matcher = xgrammar.GrammarMatcher(grammar)
        self._mask = xgrammar.allocate_token_bitmask(1, size)
        self.advance = self._matcher.accept_token

    def write_mask(self) -> None:
        self._matcher.fill_next_token_bitmask(self._mask)

    def is_accepting(self) -> bool:
        return bool(self._matcher.is_completed())


class XGrammar:
    """xgrammar, `strict_mode` on or off: off, objects and arrays may hold what the schema does not name."""

    def __init__(self, vocabulary: BenchVocabulary, *, is_strict: bool) -> None:
        import xgrammar

        self.name = "xgrammar-strict" if is_strict else "xgrammar"
        self.version = importlib.metadata.version("xgrammar")
        self._is_strict = is_strict
        self._size = vocabulary.size
        info = xgrammar.TokenizerInfo(
            [token or b"" for token in vocabulary.tokens],
            xgrammar.VocabType.RAW,
            vocab_size=vocabulary.size,
            stop_token_ids=[vocabulary.eos_id],
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, schema: Schema) -> Compiled:
        text = json.dumps(schema_of(schema))
        return _XGrammarCompiled(self._compiler.compile_json_schema(text, strict_mode=self._is_strict), self._size)


class _ByteTokenizer:
    """What `llguidance.TokenizerWrapper` asks of a tokenizer."""

    bos_token_id = None

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        self._encode = vocabulary.encode
        self.eos_token_id = vocabulary.eos_id
        # A leading 0xFF marks an id that spells no text.
        spelt = [token or b"\xff<none%d>" % index for index, token in enumerate(vocabulary.tokens)]
        self.tokens = spelt
        self.special_token_ids = [index for index, token in enumerate(vocabulary.tokens) if token is None]

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode())


class _GuidanceCompiled:
    verdict = "-"
    size_bytes: int | None = None

    def __init__(self, matcher: Any, tokenizer: Any, size: int) -> None:
        self.first, self.tokenizer, self._size = matcher, tokenizer, size

    def matcher(self, budget_tokens: int | None = None) -> Matcher:
        return _GuidanceMatcher(self.first.deep_copy(), self._size)


class _GuidanceMatcher:
    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher = matcher
        self._mask = mask_words(size)
        self._address, self._bytes = self._mask.ctypes.data, self._mask.nbytes

    def write_mask(self) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._address, self._bytes)

    def advance(self, token_id: int) -> bool:
        return bool(self._matcher.consume_token(token_id))

    def is_accepting(self) -> bool:
        return bool(self._matcher.is_accepting())


class Guidance:
    """llguidance."""

    name = "llguidance"

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        from llguidance import LLTokenizer, TokenizerWrapper

        self.version = importlib.metadata.version("llguidance")
        self._size = vocabulary.size
        self._tokenizer = LLTokenizer(TokenizerWrapper(_ByteTokenizer(vocabulary)))

    def compile(self, schema: Schema) -> Compiled:
        from llguidance import LLMatcher

        grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema_of(schema)))
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise CompileRefusedError(matcher.get_error())
        return _GuidanceCompiled(matcher, self._tokenizer, self._size)


ENGINES: dict[str, Callable[[BenchVocabulary], BenchEngine]] = {
    "ours": Ours,
    "outlines": Outlines,
    "xgrammar-strict": lambda vocabulary: XGrammar(vocabulary, is_strict=True),
    "xgrammar": lambda vocabulary: XGrammar(vocabulary, is_strict=False),
    "llguidance": Guidance,
}


def make_engine(name: str, vocabulary: BenchVocabulary) -> BenchEngine:
    """The engine of that name.

    Raises:
        KeyError: there is none.
    """
    return ENGINES[name](vocabulary)
