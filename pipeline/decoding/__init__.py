"""Guided decoding: a record type becomes a grammar, a grammar and a vocabulary become a guide, a cursor walks it.

    model ─ pydantic_schema ─► JSON Schema ─ normalize ─► shapes ─ emit ─► automaton ─ tables ─► guide ─► cursor

No engine is known here.  `kernels` and the modules named after it alone import numba, and are themselves imported only
when machine code is needed.
"""

from pipeline.decoding.cursor import Cursor
from pipeline.decoding.grammar import Automaton, FieldVerdict, Grammar, Verdict, compile_grammar, lint_fields
from pipeline.decoding.guide import Guide
from pipeline.decoding.review import Marks, SpanMark, review
from pipeline.decoding.span_cursor import NoSpanError
from pipeline.decoding.span_document import SpanDocument, SpanView
from pipeline.decoding.tables import compile_guide
from pipeline.decoding.vocabulary import Vocabulary

__all__ = [
    "Automaton",
    "Cursor",
    "FieldVerdict",
    "Grammar",
    "Guide",
    "Marks",
    "NoSpanError",
    "SpanDocument",
    "SpanMark",
    "SpanView",
    "Verdict",
    "Vocabulary",
    "compile_grammar",
    "compile_guide",
    "lint_fields",
    "review",
]
