"""What stands for the content of an extractive field in an automaton: one symbol beyond the bytes for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.decoding.automata import Dfa
from pipeline.decoding.refusals import RefusedError
from pipeline.decoding.shapes import Num, Shape, Str

__all__ = ["SPAN_SYMBOL", "SpanKind", "check_spans"]

SPAN_SYMBOL = 256
"""Symbols from here on are no bytes: they stand for the content of an extractive field, by its kind."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanKind:
    """One kind of extractive field.

    Attributes:
        settings: what the finder of candidates needs to know; `type` is `string`, `date`, `datetime`, `time`, `enum`,
            `integer` or `decimal`, and `listed` whether each candidate must be among the plain spellings.
        plain: the field's spellings if it were not extractive; a listed value outside of them is no candidate.
    """

    settings: Mapping[str, Any]
    plain: Dfa

    def is_same(self, other: SpanKind) -> bool:
        """Whether every document gives both the same candidates."""
        return (
            self.settings == other.settings
            and self.plain.edges == other.plain.edges
            and self.plain.accepting == other.plain.accepting
        )


def check_spans(shapes: Sequence[Shape], made: Sequence[Dfa]) -> None:
    """Refuses alternatives that a cursor could not tell apart: it follows one kind of copied values, or none.

    Args:
        shapes: the alternatives of one value.
        made: their automata.

    Raises:
        RefusedError: a copied value stands beside others that begin as it does.
    """
    for kind, what in ((Str, "strings"), (Num, "numbers")):
        alike = [item for item in zip(shapes, made, strict=True) if isinstance(item[0], kind) and not item[1].is_empty]
        is_copied = any(shape.span is not None for shape, _ in alike if isinstance(shape, Str | Num))
        if is_copied and len({dfa.edges for _, dfa in alike}) > 1:
            raise RefusedError(
                f"a copied value beside other {what}, which begin alike; give each its own field, or leave Span off"
            )
