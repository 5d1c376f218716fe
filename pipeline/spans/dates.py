"""Dates as documents write them: what each stretch that looks like one can mean.

A date that can be read in several ways has one candidate a reading, all at the same place.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator

import regex

from pipeline.core.span import DateOrder
from pipeline.spans.candidates import Candidate
from pipeline.spans.names import months_named, plain_name

__all__ = ["dates_in"]

_MARK = r"[-/.\\_:]"
_GAP = r"[ .,/\-_']"
_NAME = r"(?P<name>\p{Thai}{1,2}\.\p{Thai}{1,2}\b|[\p{L}\p{M}\u0970\u200d]{3,20}+)"
_DAY = r"(?P<day>\d{1,2})(?!\d)(?: ?(?i:st|nd|rd|th|er|ère|ème|º|ª|°))?"
_OF = r"(?:(?i:of|de|del|di|do|d'|den|dena) ?)?"
_TWO_DIGITS = r"\d\d(?![\d%]| ?:|[.,]\d)"
_YEAR = rf"(?P<year>\d{{4}}(?!\d)|\d{{4}}(?=\d\d:\d\d)|{_TWO_DIGITS})"

_NUMERIC = re.compile(
    rf"(?<!\d)(?<!\d[./\\])(\d{{1,4}}) ?({_MARK}) ?(\d{{1,2}}) ?\2 ?"
    r"(\d{4}(?!\d)|\d{4}(?=\d\d:\d\d)|\d{1,2}(?!\d))(?!\2\d)"
)
_SPACED = re.compile(r"(?<![\d.,:])(\d{1,2})( )(\d{1,2}) ((?:19|20)\d\d)(?![.,]?\d)")
_SPACED_ISO = re.compile(r"(?<![\d.,:])((?:19|20)\d\d)( )(\d\d) (\d\d)(?![.,:]?\d)")
_COMPACT = re.compile(r"(?<!\d)\d{8}(?:(?!\d)|(?=(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?(?!\d)))")
_NAMED = (
    regex.compile(rf"(?<!\d)(?<!\d[.,]){_DAY}{_GAP}{{0,3}}{_OF}{_NAME}{_GAP}{{0,3}}{_OF}{_YEAR}"),
    regex.compile(rf"(?<![\p{{L}}\p{{M}}]){_NAME}{_GAP}{{0,3}}{_DAY}{_GAP}{{1,3}}{_OF}{_YEAR}"),
    regex.compile(rf"(?<!\d)(?P<year>\d{{4}}){_GAP}{{0,3}}{_OF}{_NAME}{_GAP}{{0,3}}{_DAY}"),
)
_NUMBERED = (
    regex.compile(
        r"(?<!\d)(?P<year>\d{4}) ?[年년] ?(?P<month>\d{1,2}) ?[月월] ?(?P<day>\d{1,2})(?: ?[日日號号일])?(?!\d)"
    ),
    regex.compile(r"(?<!\d)(?P<day>\d{1,2}) (?i:tháng) ?(?P<month>\d{1,2})(?i:,? năm|,|/)? ?(?P<year>\d{4})(?!\d)"),
)
_PIVOT = 69
"""Two-digit years from here on are of the 20th century (POSIX `strptime`)."""
_HEBREW_IN = "ב"
"""Glued to the name of a month, as in `3 בפברואר`."""
_BUDDHIST = 543
_BUDDHIST_YEARS = range(2450, 2650)


def _date(year: str, month: str | int, day: str) -> list[str]:
    """The date in ISO 8601, or nothing where there is no such day; years of the Buddhist era have two readings."""
    number = int(year)
    if len(year) == 2:
        number += 1900 if number >= _PIVOT else 2000
    elif number < 1000:
        return []
    numbers = [number, number - _BUDDHIST] if number in _BUDDHIST_YEARS else [number]
    found = []
    for each in numbers:
        try:
            found.append(datetime.date(each, int(month), int(day)).isoformat())
        except ValueError:
            # No such month or day: the digits mean something else.
            continue
    return found


def _orders(a: str, b: str, c: str) -> Iterator[tuple[DateOrder, list[str]]]:
    """What three numbers can mean, by the order of day, month and year."""
    if len(a) == 4:
        if len(c) <= 2:
            yield "ymd", _date(a, b, c)
    elif len(a) <= 2 and len(c) in (2, 4):
        yield "dmy", _date(c, b, a)
        yield "mdy", _date(c, a, b)
        if len(a) == len(c) == 2:
            yield "ymd", _date(a, b, c)


def _ordered(a: str, b: str, c: str, order: DateOrder) -> list[str]:
    """The reading in this order; every other one where there is none, or any order will do."""
    readings = {name: dates for name, dates in _orders(a, b, c) if dates}
    if order in readings:
        return readings[order]
    return list(dict.fromkeys(date for dates in readings.values() for date in dates))


def _numeric(text: str, order: DateOrder) -> Iterator[Candidate]:
    for form in (_NUMERIC, _SPACED, _SPACED_ISO):
        for found in form.finditer(text):
            a, mark, b, c = found.groups()
            if (mark == ":" and len(a) != 4) or (len(a) == 3):
                continue
            yield from _at(found.span(), _ordered(a, b, c, order))
    for found in _COMPACT.finditer(text):
        digits = found.group()
        if digits[:2] in ("19", "20") and (dates := _date(digits[:4], digits[4:6], digits[6:])):
            yield from _at(found.span(), dates)
        elif digits[4:6] in ("19", "20"):
            yield from _at(found.span(), _ordered(digits[:2], digits[2:4], digits[4:], order))


def _named(text: str) -> Iterator[Candidate]:
    months = months_named()
    for form in _NAMED:
        for found in form.finditer(text, overlapped=True):
            name = plain_name(found["name"])
            for month in months.get(name) or months.get(name.removeprefix(_HEBREW_IN), ()):
                yield from _at(found.span(), _date(found["year"], month, found["day"]))
    for form in _NUMBERED:
        for found in form.finditer(text):
            yield from _at(found.span(), _date(found["year"], found["month"], found["day"]))


def _at(place: tuple[int, int], dates: Iterable[str]) -> Iterator[Candidate]:
    return (Candidate(*place, date) for date in dates)


def dates_in(text: str, order: DateOrder) -> list[Candidate]:
    """Every date of the text, as `YYYY-MM-DD`, by place.

    Args:
        text: with white space folded and digits in ASCII.
        order: how dates of three numbers are read where the year does not come first with four digits.
    """
    return sorted({*_numeric(text, order), *_named(text)})
