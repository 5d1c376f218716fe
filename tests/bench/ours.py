"""recordmill's own compiler behind the interface of the benchmarks."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from tests.bench.interface import Compiled, CompileRefusedError, Matcher, Schema, mask_words
from tests.bench.vocabularies import BenchVocabulary

__all__ = ["Ours"]


class _OursCompiled:
    def __init__(self, grammar: Any, guide: Any) -> None:
        enforced = all(field.verdict == "enforced" for field in grammar.verdicts)
        self.verdict = "enforced" if enforced else "widened"
        self.guide = guide
        self.size_bytes: int | None = guide.size_bytes

    def matcher(self, budget_tokens: int | None = None) -> Matcher:
        return _OursMatcher(self.guide, budget_tokens)


class _OursMatcher:
    def __init__(self, guide: Any, budget_tokens: int | None) -> None:
        self._cursor = guide.cursor(budget_tokens)
        self._mask = mask_words(guide.vocab_size)
        self._address = self._mask.ctypes.data
        self.advance = self._cursor.advance

    def write_mask(self) -> None:
        self._cursor.write_mask(self._address)

    def is_accepting(self) -> bool:
        return bool(self._cursor.is_accepting)


class Ours:
    """recordmill's own compiler."""

    name = "ours"

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        from pipeline.decoding import Vocabulary

        self.version = importlib.metadata.version("recordmill") if _is_installed("recordmill") else "checkout"
        self._vocabulary = Vocabulary(vocabulary.tokens, {vocabulary.eos_id})

    def compile(self, schema: Schema) -> Compiled:
        from pipeline.core.errors import SchemaRefusedError
        from pipeline.decoding import compile_grammar, compile_guide

        try:
            grammar = compile_grammar(schema)
            guide = compile_guide(grammar, self._vocabulary)
            guide.warm()  # as an engine does when it opens one
            return _OursCompiled(grammar, guide)
        except SchemaRefusedError as error:
            raise CompileRefusedError(str(error)) from error


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
