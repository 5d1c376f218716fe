"""A JSON Schema validator that checks formats, as the judge of what is drawn from schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any

import jsonschema
from jsonschema.validators import extend, validator_for

__all__ = ["schema_complaint", "schema_validator"]

_TIME = r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)"
_DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_URI_CHARACTERS = r"[^\s<>\"{}|\\^`\x00-\x20\x7f-\uffff]*"
_PATTERNS = {
    "date-time": rf"{_DATE}[Tt]{_TIME}",
    "time": _TIME,
    "hostname": rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*",
    "uri": rf"[A-Za-z][A-Za-z0-9+.-]*:{_URI_CHARACTERS}",
    "uri-reference": _URI_CHARACTERS,
    "uuid": r"[0-9A-Fa-f]{8}-([0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
    "duration": r"P(?!\Z)(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?",
}
"""RFC 3339, 1123, 3986, 9562 and ISO 8601, in ASCII."""
_ECMA_SPACE = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ECMA_CLASSES = {"s": (_ECMA_SPACE, ""), "S": ("", _ECMA_SPACE), "d": ("0-9", ""), "w": ("A-Za-z0-9_", "")}


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """The pattern with ECMA 262's `\\s`, `\\d`, `\\w` and `$`, which Python reads otherwise."""
    parts, is_class, at = [], False, 0
    while at < len(pattern):
        char, following = pattern[at], pattern[at + 1 : at + 2]
        if char == "\\" and following in _ECMA_CLASSES and (following != "S" or not is_class):
            inside, outside = _ECMA_CLASSES[following]
            parts.append(inside if is_class else f"[{inside}]" if inside else f"[^{outside}]")
        elif char == "\\":
            parts.append("/" if following == "/" else char + following)
        else:
            parts.append(r"\Z" if char == "$" and not is_class else char)
            is_class = char == "[" or (is_class and char != "]")
        at += 2 if char == "\\" else 1
    return re.compile("".join(parts))


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, str) and _expression(pattern).search(value) is None:
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _multiple(validator: Any, step: float, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """By the decimals as written: in doubles 0.47 is no multiple of 0.01."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and Decimal(str(value)) % Decimal(str(step)) != 0:
        yield jsonschema.ValidationError(f"{value!r} is not a multiple of {step!r}")


def _formats() -> jsonschema.FormatChecker:
    checker = jsonschema.FormatChecker()
    for name, pattern in _PATTERNS.items():
        expression = re.compile(pattern, re.ASCII)

        def check(value: object, expression: re.Pattern[str] = expression) -> bool:
            return not isinstance(value, str) or expression.fullmatch(value) is not None

        checker.checks(name)(check)
    return checker


_FORMATS = _formats()


def schema_validator(schema: Any) -> Any:
    """The validator of the draft that `$schema` names, 2020-12 without one, with formats checked."""
    draft = jsonschema.Draft202012Validator
    named = validator_for(schema, default=draft) if isinstance(schema, dict) else draft
    return extend(named, {"pattern": _pattern, "multipleOf": _multiple})(schema, format_checker=_FORMATS)


def schema_complaint(validator: Any, value: Any) -> str | None:
    """The first way in which a value breaks its schema; None where it does not."""
    for error in validator.iter_errors(value):
        place = "/".join(str(part) for part in error.absolute_path)
        return f"{error.validator} at {place or 'the root'}: {error.message[:160]}"
    return None
