"""What a character is to a span: white space, part of a word, a word of its own, a sign.

Classes are read from tables over code points, so that a document is classified in one numpy operation.
"""

from __future__ import annotations

import enum
import functools
import unicodedata

import numpy as np

from pipeline.decoding.arrays import Array

__all__ = ["CharClass", "ascii_digits", "classes_of", "spelling_lengths"]


class CharClass(enum.IntEnum):
    """Up to `FORMAT` a character cannot be seen, from `SYLLABLE` on it has bounds on both sides."""

    SPACE = 0
    BREAK = 1
    """White space at which `str.splitlines` ends a line."""
    BARRIER = 2
    """NUL and lone surrogates: no JSON string that is stored may hold them."""
    FORMAT = 3
    """Invisible and without width, as a byte order mark or the marks of text direction."""
    MARK = 4
    """Belongs to the character before it: combining marks, joiners, variation selectors, skin tones."""
    LETTER = 5
    DIGIT = 6
    SYLLABLE = 7
    """Hangul: words have spaces, but particles are glued to them."""
    IDEOGRAPH = 8
    """Of a script that has no spaces between words."""
    SIGN = 9
    """Punctuation and symbols."""
    FLAG = 10
    """A regional indicator, two of which are one flag."""


_BMP = 0x10000
_TOP = 0x110000
_JOINERS = frozenset({0x00AD, 0x200C, 0x200D, 0x0E33, 0x0EB3, 0xFF9E, 0xFF9F})
"""Joiners and soft hyphens, and letters that Unicode (UAX 29) counts as extending the one before."""
_SPACELESS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19DF), (0x1A20, 0x1AAF), (0x2E80, 0x2FDF),
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x30FF), (0x3105, 0x312F), (0x31A0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA980, 0xA9DF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9D),
    (0x16FE0, 0x18DFF), (0x1B000, 0x1B2FF), (0x20000, 0x3FFFF),
)  # fmt: skip
"""Thai, Lao, Burmese, Khmer, Tai, Han, kana, bopomofo, Javanese."""
_HANGUL = ((0x1100, 0x115F), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7A3))
_HANGUL_TAILS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FB))


def _is_in(point: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= point <= high for low, high in ranges)


def _invisible(point: int, char: str) -> CharClass | None:
    if point == 0 or 0xD800 <= point <= 0xDFFF:
        return CharClass.BARRIER
    if char.isspace():
        return CharClass.BREAK if len(f".{char}.".splitlines()) == 2 else CharClass.SPACE
    return None


def _class_of(point: int) -> CharClass:
    char = chr(point)
    blank = _invisible(point, char)
    if blank is not None:
        return blank
    category = unicodedata.category(char)
    if category[0] == "M" or point in _JOINERS or _is_in(point, ((0x1F3FB, 0x1F3FF), (0xE0020, 0xE007F))):
        return CharClass.MARK
    if category == "Cf" and not 0x600 <= point <= 0x605:
        return CharClass.FORMAT
    if category in ("Nd", "No"):
        return CharClass.DIGIT
    if category[0] == "L" or category == "Nl":
        if _is_in(point, _HANGUL_TAILS):
            return CharClass.MARK
        if _is_in(point, _HANGUL):
            return CharClass.SYLLABLE
        return CharClass.IDEOGRAPH if _is_in(point, _SPACELESS) else CharClass.LETTER
    return CharClass.FLAG if 0x1F1E6 <= point <= 0x1F1FF else CharClass.SIGN


@functools.cache
def _table(top: int) -> Array:
    """Classes of the code points below `top`; the planes above the first are mostly of one class."""
    if top == _BMP:
        return np.fromiter(map(_class_of, range(_BMP)), np.uint8, _BMP)
    table = np.full(top, CharClass.SIGN, np.uint8)
    table[:_BMP] = _table(_BMP)
    table[0x20000:0x40000] = CharClass.IDEOGRAPH
    for low, high in ((_BMP, 0x20000), (0xE0000, 0xE1000)):
        table[low:high] = np.fromiter(map(_class_of, range(low, high)), np.uint8, high - low)
    return table


def _is_wide(points: Array) -> bool:
    return len(points) > 0 and int(points.max()) >= _BMP


def classes_of(points: Array) -> Array:
    """uint8[N], the `CharClass` of each code point (uint32[N])."""
    classes: Array = _table(_TOP if _is_wide(points) else _BMP)[points]
    return classes


@functools.cache
def _lengths() -> Array:
    table = np.full(_BMP, 3, np.uint8)
    table[:0x800] = 2
    table[:0x80] = 1
    table[1:0x20] = 6
    table[[8, 9, 10, 12, 13, 0x22, 0x5C]] = 2
    return table


def spelling_lengths(points: Array) -> Array:
    """uint8[N], the bytes that each character takes inside a JSON string; one for a barrier (0)."""
    spelt: Array = _lengths()[np.minimum(points, _BMP - 1)]
    if _is_wide(points):
        spelt[points >= _BMP] = 4
    return spelt


_SIMILAR = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "+": "\uff0b",
    "'": "\u2018\u2019\u02bc\u00b4`\uff07",
    ".": "\u066b\uff0e", ",": "\u066c\uff0c\ufe50", ":": "\u2236\uff1a", "/": "\u2044\u2215\uff0f", "(": "\uff08",
    ")": "\uff09", "%": "\uff05\u066a", "$": "\uff04", "\u00a5": "\uffe5",
}  # fmt: skip


@functools.cache
def _digit_table() -> Array:
    """Digits of every script, and signs that stand for those of ASCII in numbers, as ASCII; the rest as it is."""
    table = np.arange(_TOP, dtype=np.uint32)
    for first in _digit_zeros():
        table[first : first + 10] = np.arange(0x30, 0x3A)
    for sign, others in _SIMILAR.items():
        table[[ord(other) for other in others]] = ord(sign)
    return table


def _digit_zeros() -> list[int]:
    found = [point for point in range(0x80, 0x20000) if unicodedata.decimal(chr(point), None) == 0]
    return [point for point in found if unicodedata.decimal(chr(point + 9), None) == 9]


def ascii_digits(points: Array) -> str:
    """The characters with the digits and signs of numbers spelt in ASCII, one character for one."""
    return _digit_table()[points].astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")
