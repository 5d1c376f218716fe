"""A JSON Schema validator that checks formats, as the judge of what is drawn from schemas."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
from jsonschema.validators import validator_for

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
    return (validator_for(schema, default=draft) if isinstance(schema, dict) else draft)(
        schema, format_checker=_FORMATS
    )


def schema_complaint(validator: Any, value: Any) -> str | None:
    """The first way in which a value breaks its schema; None where it does not."""
    for error in validator.iter_errors(value):
        place = "/".join(str(part) for part in error.absolute_path)
        return f"{error.validator} at {place or 'the root'}: {error.message[:160]}"
    return None
