"""Numbers and amounts of money as documents write them.

Decimals stay as written (`12.50`); a number that can be read in several ways (`1.234`) has a candidate for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import regex

from pipeline.spans.candidates import Candidate
from pipeline.spans.names import currency_marks

__all__ = ["NUMBER_TYPES", "Numeral", "candidates_of", "numerals_in"]

_SOLID = regex.compile(r"\d++(?:[.,']\d++)*+|(?<![\p{L}\d])[.,]\d++(?![.,']\d)")
_EXPONENT = regex.compile(r"[eE][+-]?\d{1,2}(?![\p{L}\d.,])")
_MARK_BEFORE = regex.compile(r"(?:(?<mark>\p{L}{1,3}\$?\.?|\p{Sc}|\p{L}{0,3}\p{Sc}) ?)$")
_MARK_AFTER = regex.compile(r" ?(?<mark>\p{L}{1,3}\.?|\p{Sc}|%)(?![\p{L}\d])")
_WINDOW = 8
"""Characters before a number in which its sign and its currency stand."""
_MAX_GROUPS = 6
"""Groups of three digits with spaces between them, at most."""
_SEPARATORS = regex.compile(r"[.,']")


class Numeral(NamedTuple):
    """One reading of a stretch of text as a number.

    Attributes:
        start, end: its place, as positions in a `Folded`.
        whole: digits without leading zeros, at least one.
        fraction: digits as written; empty where there are none.
        is_negative: whether its sign says so.
        has_exponent: whether it was written with one.
    """

    start: int
    end: int
    whole: str
    fraction: str = ""
    is_negative: bool = False
    has_exponent: bool = False
