"""Owns what can be said of a record type before anything runs: verdicts, tokens by field, advice.  Reads no documents.

What needs the model's tokenizer is left out, and the reason given, where there is none at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from pipeline.core.errors import RecordmillError
from pipeline.core.spec import JobSpec
from pipeline.decoding import Guide, Verdict, Vocabulary, compile_grammar, compile_guide, lint_fields
from pipeline.decoding.field_tags import RECORD
from pipeline.decoding.lint import Advice, advise, advise_budget
from pipeline.decoding.pydantic_schema import schema_of_type
from pipeline.decoding.schema_fields import SchemaField, fields_of
from pipeline.decoding.typical import example_pieces, typical_pieces
from pipeline.engine.prompts import load_tokenizer
from pipeline.engine.vllm_args import is_folder
from pipeline.run.record import load_record
from pipeline.storage.arrow import record_schema

__all__ = ["FieldTokens", "Lint", "Sizes", "least_record", "likely_tokens", "lint"]


@dataclass(frozen=True, slots=True)
class FieldTokens:
    """One field: what the guide promises of it, and what it takes of a record, names and punctuation included."""

    path: str
    verdict: Verdict
    reason: str
    least_tokens: int | None = None
    """Its share of the least record; 0 for one that the least record leaves out."""
    likely_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of a whole record."""

    least: int | None
    """None where no guide can be made."""
    least_text: str
    """A least record; empty where `least` is None."""
    likely: int
    likely_from: str
    """`examples` of the prompt, or `typical values`."""


@dataclass(frozen=True, slots=True)
class Lint:
    """All that lint found."""

    record: str
    fields: tuple[FieldTokens, ...]
    advice: tuple[Advice, ...]
    max_tokens: int
    sizes: Sizes | None
    """None where there is no tokenizer at hand."""
    no_sizes: str | None
    """Why `sizes` is None."""
    is_model_wrong: bool = False
    """Whether `model.name` is a path at which there is no model that can be used."""

    @property
    def is_refused(self) -> bool:
        """Whether a run would be refused: a field or the model is, or the budget cannot hold any record."""
        is_short = any(item.rule == "budget_below_least" for item in self.advice)
        return is_short or self.is_model_wrong or any(field.verdict is Verdict.REFUSED for field in self.fields)


def lint(spec: JobSpec, base: Path) -> Lint:
    """Looks at a job's record type.

    Args:
        spec: the job.
        base: its folder.

    Raises:
        RecordImportError, SchemaRefusedError: there is no type to look at.
        SpecError: it is no object with fields, or a field is named as an audit column is.
    """
    record = load_record(spec.record, base)
    verdicts = lint_fields(record, recursion_depth=spec.decoding.recursion_depth)
    if not any(item.verdict is Verdict.REFUSED for item in verdicts):
        record_schema(record)  # raises where its values are no rows
    advice = advise(schema_of_type(record), verdicts)
    fields = tuple(FieldTokens(item.path, item.verdict, item.reason) for item in verdicts)
    linted = Lint(spec.record, fields, advice, spec.decoding.max_tokens, None, None)
    try:
        tokenizer = load_tokenizer(spec.model)
        vocabulary = Vocabulary.from_tokenizer(tokenizer)
    except RecordmillError as error:
        # An absolute path may be one of the cluster's machines.
        is_ours = is_folder(spec.model) and not spec.model.name.startswith(("/", "~"))
        return replace(linted, no_sizes=error.message, is_model_wrong=is_ours)
    if any(item.verdict is Verdict.REFUSED for item in verdicts):
        return _measured(linted, spec, record, tokenizer, None, None)

    def compiled(*, extractive: bool) -> Guide:
        depth = spec.decoding.recursion_depth
        return compile_guide(compile_grammar(record, recursion_depth=depth, extractive=extractive), vocabulary)

    # A least record can be shown with extractive fields as plain ones alone: what those take depends on the document.
    plain = compiled(extractive=False)
    own = compiled(extractive=True) if spec.decoding.extractive else plain
    return _measured(linted, spec, record, tokenizer, plain, own.least_tokens)


def _measured(
    linted: Lint, spec: JobSpec, record: type[BaseModel], tokenizer: Any, guide: Guide | None, own_least: int | None
) -> Lint:
    """With tokens: of the plain guide by field, and as a whole the least that a run asks for."""
    likely, likely_from = likely_tokens(spec, record, tokenizer)
    least: Counter[str] = Counter()
    text = ""
    if guide is not None:
        least, text = least_record(guide)
    total = round(sum(likely.values()))
    sizes = Sizes(own_least, text, total, likely_from)
    said = advise_budget(spec.decoding.max_tokens, sizes.least, total)
    fields = tuple(
        replace(
            field,
            least_tokens=None if guide is None else least[field.path],
            likely_tokens=round(likely[field.path]),
        )
        for field in linted.fields
    )
    return replace(linted, fields=fields, sizes=sizes, advice=linted.advice if said is None else (said, *linted.advice))


def least_record(guide: Guide) -> tuple[Counter[str], str]:
    """One of the least records, and how many of its tokens belong to each field by path, names with their values.

    Under the least budget a cursor allows nothing else.
    """
    cursor = guide.cursor(guide.least_tokens)
    found: Counter[str] = Counter()
    token_ids: list[int] = []
    unnamed = 0
    while len(token_ids) < guide.least_tokens:
        token_id = _legible(guide, cursor.row().words)
        cursor.advance(token_id)
        token_ids.append(token_id)
        unnamed += 1
        if cursor.path is not None:
            found[cursor.path] += unnamed
            unnamed = 0
    found[RECORD] += unnamed
    return found, guide.decode(token_ids).decode("utf-8", "replace")


def _legible(guide: Guide, words: NDArray[np.uint32]) -> int:
    """A legal id, one that people can read if there is any."""
    legal = [token_id for token_id in _ids(words) if token_id not in guide.eos_ids]
    return next((token_id for token_id in legal if _is_plain(guide.decode((token_id,)))), legal[0])


def _ids(words: NDArray[np.uint32]) -> list[int]:
    found: list[int] = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()
    return found


def _is_plain(token: bytes) -> bool:
    return token.isascii() and token.decode().isprintable() and not token.isspace() and b"\\" not in token


def likely_tokens(spec: JobSpec, record: type[BaseModel], tokenizer: Any) -> tuple[Counter[str], str]:
    """Tokens that each field is likely to take, by path, and what that rests on."""
    tree: SchemaField = fields_of(schema_of_type(record))
    examples = [example.record for example in spec.prompt.examples]
    pieces = example_pieces(tree, examples) if examples else typical_pieces(tree)
    encode: Callable[..., list[int]] = tokenizer.encode
    found: Counter[str] = Counter()
    for path, text, times in pieces:
        found[path] += times * len(encode(text, add_special_tokens=False))  # type: ignore[assignment]
    return found, "examples" if examples else "typical values"
