"""What the months, the halves of a day and currencies are called, from Unicode's CLDR as Babel carries it.

The only module that talks to Babel.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable, Mapping

from babel import Locale
from babel.numbers import list_currencies

__all__ = ["currency_marks", "halves_of_day", "months_named", "plain_name"]

_LANGUAGES = (
    "en", "de", "fr", "es", "pt", "it", "nl", "af", "lb", "ca", "gl", "eu", "ro", "sq", "mt", "ga", "cy", "sv", "da",
    "nb", "nn", "is", "fo", "fi", "et", "lv", "lt", "pl", "cs", "sk", "sl", "hr", "sr", "sr_Latn", "bs", "mk", "bg",
    "hu", "ru", "uk", "be", "kk", "uz", "az", "tr", "el", "hy", "ka", "he", "ar", "fa", "ur", "hi", "mr", "ne", "bn",
    "pa", "gu", "ta", "te", "kn", "ml", "si", "th", "lo", "km", "my", "id", "ms", "fil", "sw", "am", "mn", "vi",
    "ar_MA", "ar_IQ", "de_AT",
)  # fmt: skip
_MARKS_BESIDE_CODES = ("RM", "Rs", "Rs.", "kr", "kr.", "zł", "Kč", "Ft", "lei", "Fr", "Fr.", "SFr", "SFr.", "Rp", "TL")
_MIN_NAME = 3
_MAX_PREPOSITION = 2
_MAX_MONTHS = 2
"""Of one name; more, and the name means `month`."""


def plain_name(name: str) -> str:
    """The name without case, accents, stops and spaces: how OCR and people in a hurry write it."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in letters if not "\u0300" <= c <= "\u036f" and c not in ". "))


def _one_word(name: str) -> str:
    """Without the preposition of `de maig` and `d’agost`; nothing where the name has several words."""
    *before, last = name.replace("’", " ").replace("'", " ").split() or [""]
    return last if all(len(word) <= _MAX_PREPOSITION for word in before) else ""


def _is_name(name: str, plain: str) -> bool:
    """Whether it is long enough to be no other word, or has stops inside as in Thai; some months are numbers."""
    return (len(plain) >= _MIN_NAME or name.count(".") > 1) and not any(c.isdigit() for c in plain)


@functools.cache
def months_named() -> Mapping[str, tuple[int, ...]]:
    """By `plain_name`: the months that some language calls so, in order (`listopad` is October or November)."""
    found: dict[str, set[int]] = {"sept": {9}}
    for language in _LANGUAGES:
        months = Locale.parse(language).months
        for context in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for number, name in months[context][width].items():
                    plain = plain_name(_one_word(name))
                    if _is_name(name, plain):
                        found.setdefault(plain, set()).add(number)
    return {name: tuple(sorted(numbers)) for name, numbers in found.items() if len(numbers) <= _MAX_MONTHS}


def _day_periods() -> Iterable[tuple[str, str]]:
    for language in (*_LANGUAGES, "zh", "ja", "ko"):
        for widths in Locale.parse(language).day_periods.values():
            for names in widths.values():
                yield from ((half, names[half]) for half in ("am", "pm") if half in names)


@functools.cache
def halves_of_day() -> Mapping[str, bool]:
    """By `plain_name`: whether it is the second half of the day; names that may be other words are left out."""
    found: dict[str, set[bool]] = {"am": {False}, "pm": {True}}
    for half, name in _day_periods():
        plain = plain_name(name)
        if len(plain) >= _MIN_NAME or not plain.isascii():
            found.setdefault(plain, set()).add(half == "pm")
    return {name: next(iter(is_pm)) for name, is_pm in found.items() if len(is_pm) == 1}


@functools.cache
def currency_marks() -> frozenset[str]:
    """Codes (ISO 4217) and marks of letters that stand before or after an amount."""
    return frozenset(list_currencies()) | frozenset(_MARKS_BESIDE_CODES)
