"""How a value is compared with a known answer: dates as dates, instants as instants, numbers as `Decimal`, text folded.

Text is folded as in the SQuAD measure (Rajpurkar et al. 2016), without its dropping of articles.  Pure.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import Literal

import regex

from pipeline.core.span import DateOrder

__all__ = ["Kind", "fold_text", "is_match", "read_dates", "read_number", "written"]

Kind = Literal["text", "number", "date"]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(r"\s*(\d{1,4}|[^\W\d_]{3,9})[\s,./-]+(\d{1,2}|[^\W\d_]{3,9})[\s,./-]+(\d{4}|\d{1,2})(?!\d)")
_COMPACT_DATE = re.compile(r"\s*(\d{4})(\d\d)(\d\d)(?!\d)")
_NUMBER = re.compile(r"\d(?:[\d., '’\u00a0\u202f]*\d)?")


def read_number(text: str) -> Decimal | None:
    """The one number that a text such as `RM 1,007.50`, `(1.73)` or `1.007,50 €` writes; None when there is not one.

    The last of `.` and `,` is the decimal sign when both stand; one kind that stands once and is not followed by
    exactly three digits is the decimal sign too, and a `.` always is when it stands once.
    """
    found = _NUMBER.findall(text)
    if len(found) != 1:
        return None
    digits = re.sub(r"[ '’\u00a0\u202f]", "", found[0])
    last = max(digits.rfind("."), digits.rfind(","))
    if last >= 0:
        sign, whole, fraction = digits[last], digits[:last], digits[last + 1 :]
        is_mixed = "." in digits and "," in digits
        is_decimal = sign not in whole and (is_mixed or sign == "." or len(fraction) != 3)
        digits = re.sub(r"[.,]", "", whole) + ("." if is_decimal else "") + fraction
    try:
        number = Decimal(digits)
    except InvalidOperation:
        return None
    before = text[: text.index(found[0])]
    is_negative = bool(re.search(r"[-−]\s*[^\w\s]?\s*$|^\s*[-−]", before)) or bool(re.fullmatch(r"\s*\(.*\)\s*", text))
    return -number if is_negative else number


def _year(text: str) -> int:
    year = int(text)
    if len(text) > 2:
        return year
    return year + (2000 if year < 69 else 1900)  # POSIX's reading of %y


def _month(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    name = text.casefold()[:3]
    return _MONTHS.index(name) + 1 if name in _MONTHS else None


def read_dates(text: str, order: DateOrder = "any") -> frozenset[dt.date]:
    """Every date that a text beginning with one may mean; what follows it, such as a time, is not looked at.

    Args:
        text: as `25/12/2018 8:13 PM`, `28 MAR 18`, `MAR 5, 2018`, `2018-03-05` or `20180305`.
        order: how digits alone are read; a name of a month or a year of four digits in front settles it instead.
    """
    if match := _COMPACT_DATE.match(text):
        candidates = [(match[1], match[2], match[3])]
    elif match := _DATE.match(text):
        first, second, third = match.groups()
        orders: dict[str, tuple[str, str, str]] = {
            "dmy": (third, second, first),
            "mdy": (third, first, second),
            "ymd": (first, second, third),
        }
        if len(first) == 4 and first.isdigit():
            candidates = [orders["ymd"]]
        elif not first.isdigit():
            candidates = [orders["mdy"]]
        elif not second.isdigit():
            candidates = [orders["ymd" if order == "ymd" and len(third) < 4 else "dmy"]]
        elif len(third) == 4:
            candidates = [orders["mdy"] if order == "mdy" else orders["dmy"]]
            candidates += [orders["mdy"]] if order == "any" else []
        else:
            candidates = list(orders.values()) if order == "any" else [orders[order]]
    else:
        return frozenset()
    return frozenset(date for parts in candidates if (date := _date(*parts)) is not None)


def _date(year: str, month: str, day: str) -> dt.date | None:
    number = _month(month)
    if number is None or not (year.isdigit() and day.isdigit()):
        return None
    try:
        return dt.date(_year(year), number, int(day))
    except ValueError:
        return None


def fold_text(text: str) -> str:
    """Case folded, compatibility forms unified, punctuation stripped, white space folded.

    Punctuation between two digits becomes a space instead of nothing, so `9.00` and `900` stay two things; a text that
    is nothing else keeps it.  Symbols and vowel signs are no punctuation.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    bare = regex.sub(r"\p{P}", "", regex.sub(r"(?<=\d)\p{P}+\s*(?=\d)", " ", folded))
    return " ".join((bare if bare.strip() else folded).split())


def is_match(value: object, gold: object, kind: Kind, *, date_order: DateOrder = "any") -> bool:
    """Whether a value equals a known answer after both are normalised."""
    match kind:
        case "number":
            left, right = _as_number(value), _as_number(gold)
            return left is not None and left == right
        case "date":
            moments = _moment(value), _moment(gold)
            if None not in moments and any(isinstance(side, dt.datetime) for side in (value, gold)):
                return moments[0] == moments[1]
            return bool(_as_dates(value, date_order) & _as_dates(gold, date_order))
        case "text":
            return fold_text(written(value)) == fold_text(written(gold))


def _as_number(value: object) -> Decimal | None:
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, int | float):
        number = Decimal(str(int(value) if isinstance(value, bool) else value))
        return number if number.is_finite() else None
    return read_number(written(value))


def _moment(value: object) -> dt.datetime | None:
    """The instant that a value is, or writes in ISO 8601; UTC where it has no offset, None where it has no time."""
    if isinstance(value, str) and len(value.strip()) > len("2018-12-25"):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, dt.datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)


def _as_dates(value: object, order: DateOrder) -> frozenset[dt.date]:
    if isinstance(value, dt.datetime):
        return frozenset({value.date()})
    if isinstance(value, dt.date):
        return frozenset({value})
    return read_dates(written(value), order)


def written(value: object) -> str:
    """A value as an answer would write it: text as it is, dates and times in ISO 8601, UTC as `Z` as in JSON."""
    if isinstance(value, dt.datetime) and value.utcoffset() == dt.timedelta():
        return f"{value.replace(tzinfo=None).isoformat()}Z"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value if isinstance(value, str) else str(value)
