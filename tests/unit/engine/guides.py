"""Small guides for engine tests: ASCII patterns, over the bytes or over a vocabulary of a few words."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel

from pipeline.core.span import Span
from pipeline.decoding import compile_grammar, compile_guide
from pipeline.decoding.guide import Guide
from pipeline.decoding.regex import compile_pattern
from pipeline.decoding.span_document import SpanDocument, view_of_values
from pipeline.decoding.tables import build_guide
from pipeline.decoding.vocabulary import Vocabulary
from pipeline.engine.byte_tokenizer import ByteTokenizer

RECORD = r'^\{"name":"[a-z ]{0,12}","total":(0|[1-9][0-9]{0,4})\}$'
OTHER = r'^\{"day":"[0-9]{4}-[0-9]{2}-[0-9]{2}"\}$'
LIST = r'^\{"items":\[("[a-z]{1,4}"(,"[a-z]{1,4}"){0,40})?\]\}$'


def byte_vocabulary() -> Vocabulary:
    return Vocabulary.from_tokenizer(ByteTokenizer())


def word_vocabulary() -> Vocabulary:
    """Single bytes, then longer strings that overlap them in every way; ids 0 and 1 spell nothing."""
    words = [
        '{"',
        '":"',
        '","',
        '":',
        '"}',
        "name",
        "total",
        "na",
        "me",
        "12",
        "345",
        "0",
        "ab",
        "abc",
        "a b",
        '"',
        "day",
    ]
    return Vocabulary([None, None, *(bytes([value]) for value in range(256)), *(w.encode() for w in words)], {1})


def guide_of(pattern: str, vocabulary: Vocabulary | None = None) -> Guide:
    fingerprint = hashlib.sha256(pattern.encode()).hexdigest()[:16]
    return build_guide(
        compile_pattern(pattern), vocabulary or byte_vocabulary(), fields=(), grammar_fingerprint=fingerprint
    )


def saved(guide: Guide, folder: Path) -> str:
    path = folder / f"guide-{guide.fingerprint}.bin"
    guide.save(path)
    return str(path)


class Copied(BaseModel):
    name: Annotated[str, Span()]


def copying_guide(vocabulary: Vocabulary) -> Guide:
    """Of records whose one field can only be copied from the document."""
    return compile_guide(compile_grammar(Copied), vocabulary)


def document_of(*values: str) -> SpanDocument:
    """A document in which these values stand one after the other."""
    place, spans = 0, []
    for value in values:
        spans.append((value.encode(), place, place + len(value)))
        place += len(value) + 1
    return SpanDocument((view_of_values(spans),))
