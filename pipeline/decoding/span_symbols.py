"""What stands for the content of an extractive field in an automaton: one symbol beyond the bytes for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.decoding.automata import Dfa

__all__ = ["SPAN_SYMBOL", "SpanKind"]

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
