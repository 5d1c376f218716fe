"""The characters that `\\d`, `\\w`, `\\s` and `\\p{...}` stand for, in each reading of a pattern.

`\\d` is ASCII in both readings, since that is sound in either; in negated classes the Rust reading leaves out whatever
Unicode might count as a member.
"""

from __future__ import annotations

import functools
import unicodedata
from typing import Literal

from pipeline.decoding.code_points import TOP, Ranges, invert, normalized

__all__ = ["Dialect", "alike", "category", "negated_shorthand", "shorthand", "widened"]

Dialect = Literal["rust", "ecma"]
"""Whose reading of a pattern: that of Rust's `regex`, which Pydantic uses, or that of ECMA 262, as in JSON Schema."""

_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))


def shorthand(name: str, dialect: Dialect) -> Ranges | None:
    """What `\\d`, `\\w` or `\\s` stands for, by its letter; None for another letter."""
    return {"d": _DIGIT, "w": _WORD, "s": _space(dialect)}.get(name)


def _space(dialect: Dialect) -> Ranges:
    if dialect == "rust":
        return _SPACE
    wide = ((0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F))
    return normalized((*_SPACE, *wide, (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)))


def negated_shorthand(base: Ranges, name: str, dialect: Dialect) -> Ranges:
    """What is in no reading of the class `name`, whose members here are `base`."""
    if dialect == "ecma":
        return invert(base)
    if name == "s":
        base = (*base, (0x1C, 0x1F))  # white space to Python alone
    unicode = {"d": ("Nd",), "w": ("L", "M", "N", "Pc", "Cf", "So"), "s": ("Z", "Cc")}[name]
    return invert(widened(normalized((*base, *(r for prefix in unicode for r in category(prefix) if r[1] > 0x7F)))))


def widened(ranges: Ranges) -> Ranges:
    """The members of a Unicode property, and whatever may be one in another version of Unicode: what has no category
    here."""
    return normalized((*ranges, *category("Cn"), *category("Co")))


@functools.cache
def alike(char: str) -> frozenset[str]:
    """Every character that some reading takes for this one where case is ignored, itself among them."""
    return _by_fold().get(_fold(char), frozenset()) | {char}


def _fold(char: str) -> str:
    """Python takes the dotted and the dotless letter I for one."""
    return "i" if char in "\u0130\u0131" else char.casefold()


@functools.cache
def _by_fold() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for point in range(TOP + 1):
        if not 0xD800 <= point <= 0xDFFF:
            found.setdefault(_fold(chr(point)), set()).add(chr(point))
    return {fold: frozenset(chars) for fold, chars in found.items() if len(chars) > 1}


@functools.cache
def category(prefix: str) -> Ranges:
    """Code points whose Unicode general category starts with `prefix`; empty where there is none."""
    ranges: list[list[int]] = []
    for point in range(TOP + 1):
        if unicodedata.category(chr(point)).startswith(prefix) and not 0xD800 <= point <= 0xDFFF:
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return tuple((low, high) for low, high in ranges)
