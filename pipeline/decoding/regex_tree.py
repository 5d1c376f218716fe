"""The syntax tree of a regular expression: what is left of a pattern once its dialect is read."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.decoding.code_points import TOP, Ranges

__all__ = [
    "BEGIN",
    "END",
    "Alternation",
    "CharSet",
    "Concatenation",
    "Expression",
    "LookAhead",
    "Mark",
    "Repetition",
]

BEGIN, END = TOP + 1, TOP + 2
"""Symbols beyond the characters, between which a text stands."""


@dataclass(frozen=True, slots=True)
class CharSet:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One part after the other; of no parts, the empty string."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Any one of the parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """`least` to `most` times the part; without end where `most` is None."""

    part: Expression
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """An anchor, as the symbol that it reads: `BEGIN` or `END`."""

    symbol: int


@dataclass(frozen=True, slots=True)
class LookAhead:
    """What must follow, or must not, without being read."""

    part: Expression
    is_positive: bool


Expression = CharSet | Concatenation | Alternation | Repetition | Mark | LookAhead
