"""Numbers and amounts of money as documents write them.

Decimals stay as written (`12.50`); a number that can be read in several ways (`1.234`) has a candidate for each, and a
negative one its amount too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import regex

from pipeline.spans.candidates import Candidate
from pipeline.spans.names import currency_marks

__all__ = ["Numeral", "integers_of", "numbers_of", "numerals_in"]

_MARK = r"(?P<mark>\p{L}{1,3}\.?|\p{L}{0,2}\p{Sc})"
_SOLID = regex.compile(r"\d++(?:[.,']\d++)*+|(?<![\p{L}\d.,])\.\d++(?![.,']\d)")
_EXPONENT = regex.compile(r"[eE][+-]?\d{1,2}(?![\p{L}\d.,])")
_SIGNS = (
    regex.compile(rf"(?<![\p{{L}}\d])(?P<sign>[-(]) ?(?:{_MARK} ?)?$"),
    regex.compile(rf"(?<!\p{{L}}){_MARK} ?(?P<sign>[-(]) ?$"),
)
_CLOSING = regex.compile(rf"(?: ?(?:{_MARK}|%))? ?\)")
_WINDOW = 8
"""Characters before a number in which its sign and its currency stand."""
_MAX_GROUPS = 6
"""Groups of digits with spaces between them, at most."""
_MAX_DIGITS = 60


class Numeral(NamedTuple):
    """One reading of a stretch of text as a number.

    Attributes:
        start: its first character, as a position in a `Folded`.
        end: the position after its last character.
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


class _Solid(NamedTuple):
    """Digits and the separators between them, without spaces."""

    start: int
    end: int
    text: str

    @property
    def is_plain(self) -> bool:
        return self.text.isdecimal()


def _is_grouped(groups: Sequence[str]) -> bool:
    """Whether digits are grouped by three, or as in India by two and at last three."""
    head, *middle, last = groups
    if head[:1] in ("", "0") or len(last) != 3:
        return False
    by_three = len(head) <= 3 and all(len(group) == 3 for group in middle)
    by_two = len(head) <= 2 and len(middle) > 0 and all(len(group) == 2 for group in middle)
    return by_three or by_two


def _readings(text: str) -> list[tuple[str, str]]:
    """The numbers (whole digits, fraction) that digits with `.`, `,` and `'` between them can mean."""
    marks = [char for char in text if not char.isdecimal()]
    groups = text.replace(",", ".").replace("'", ".").split(".")
    found = []
    *earlier, last_mark = marks
    is_decimal = last_mark != "'" and (not earlier or (len(set(earlier)) == 1 and earlier[0] != last_mark))
    if is_decimal and (not earlier or _is_grouped(groups[:-1])):
        found.append(("".join(groups[:-1]), groups[-1]))
    if len(set(marks)) == 1 and _is_grouped(groups):
        found.append(("".join(groups), ""))
    return found


def _numeral(start: int, end: int, whole: str, fraction: str) -> Numeral:
    return Numeral(start, end, whole.lstrip("0") or "0", fraction)


def _of_solid(text: str, solid: _Solid) -> Iterator[Numeral]:
    """Readings of the whole; where there are none, as in `1.2.2018`, its runs of digits."""
    readings = [(solid.text, "")] if solid.is_plain else _readings(solid.text)
    for whole, fraction in readings:
        yield _numeral(solid.start, solid.end, whole, fraction)
    if not readings:
        for digits in regex.finditer(r"\d+", solid.text):
            yield _numeral(solid.start + digits.start(), solid.start + digits.end(), digits.group(), "")
    exponent = _EXPONENT.match(text, solid.end) if text[solid.end : solid.end + 1] in ("e", "E") else None
    if exponent is not None and solid.text.replace(".", "", 1).isdecimal():
        number = f"{Decimal(solid.text + exponent.group()):f}"
        whole, _, fraction = number.partition(".")
        yield _numeral(solid.start, exponent.end(), whole, fraction)._replace(has_exponent=True)


def _of_spaced(text: str, solids: Sequence[_Solid]) -> Iterator[Numeral]:
    """`1 234,56`: from each head as many groups of three as follow after single spaces."""
    for index, head in enumerate(solids):
        if not head.is_plain or len(head.text) > 3 or head.text[0] == "0":
            continue
        groups = [head.text]
        fraction = ""
        end = head.end
        for before, solid in pairwise(solids[index : index + _MAX_GROUPS]):
            whole, mark, rest = solid.text[:3], solid.text[3:4], solid.text[4:]
            is_group = whole.isdecimal() and len(whole) == 3 and (not mark or (mark in ".," and rest.isdecimal()))
            if fraction or not is_group or text[before.end : solid.start] != " ":
                break
            groups.append(whole)
            fraction, end = rest, solid.end
        if len(groups) > 1:
            yield _numeral(head.start, end, "".join(groups), fraction)


def _is_currency(mark: str | None) -> bool:
    return mark is None or not mark[-1].isalpha() or mark in currency_marks()


def _signed(text: str, numeral: Numeral) -> Iterator[Numeral]:
    """The negative reading, where the number has a sign: `-5`, `-$5`, `RM-5`, `(5)`, `(RM 5)`, `5-`."""
    start, end = numeral.start, numeral.end
    if text[end : end + 1] == "-" and not text[end + 1 : end + 2].isalnum() and text[start - 1 : start] != "-":
        yield numeral._replace(end=end + 1, is_negative=True)
        return
    first = max(start - _WINDOW, 0)
    if "-" not in text[first:start] and "(" not in text[first:start]:
        return
    for form in _SIGNS:
        found = form.search(text, first, start)
        if found is None or not _is_currency(found["mark"]):
            continue
        closing = _CLOSING.match(text, end) if found["sign"] == "(" else None
        if closing is not None:
            yield numeral._replace(start=found.start(), end=closing.end(), is_negative=True)
        elif found["sign"] == "-" and not _is_range(text, found):
            yield numeral._replace(start=found.start(), is_negative=True)
        return


def _is_range(text: str, found: regex.Match[str]) -> bool:
    """Whether the sign is the dash of `10 - 12`."""
    return found.group() == "- " and text[: found.start()].rstrip(" ")[-1:].isdecimal()


def numerals_in(text: str) -> list[Numeral]:
    """Every number of the text (white space folded, digits in ASCII) in every reading, by place."""
    matches = _SOLID.finditer(text)
    solids = [_Solid(*found.span(), found.group()) for found in matches]
    solids = [solid for solid in solids if len(solid.text) <= _MAX_DIGITS]
    numerals = {numeral for solid in solids for numeral in _of_solid(text, solid)}
    numerals.update(_of_spaced(text, solids))
    numerals.update([negative for numeral in numerals for negative in _signed(text, numeral)])
    return sorted(numerals)


def _candidates(numerals: Iterable[Numeral], *, is_integer: bool) -> list[Candidate]:
    found = set()
    for start, end, whole, fraction, is_negative, has_exponent in numerals:
        if is_integer and (has_exponent or fraction.strip("0")):
            continue
        value = whole if is_integer or not fraction else f"{whole}.{fraction}"
        if not is_negative:
            found.add(Candidate(start, end, value))
        elif value.strip("0."):
            found.add(Candidate(start, end, f"-{value}"))
    return sorted(found)


def integers_of(numerals: Iterable[Numeral]) -> list[Candidate]:
    """Those that are whole, as JSON spells them."""
    return _candidates(numerals, is_integer=True)


def numbers_of(numerals: Iterable[Numeral]) -> list[Candidate]:
    """All of them as JSON numbers, with the decimals as written."""
    return _candidates(numerals, is_integer=False)
