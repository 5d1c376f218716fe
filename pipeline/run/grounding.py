"""Owns the check that extractive values stand in their documents where their spans say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.spans.folding import folded

__all__ = ["misplaced"]

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def misplaced(row: Mapping[str, Any], text: str) -> list[str]:
    """What does not hold of one outcome's spans, a phrase each.

    Args:
        row: an outcome as `read_part` gives it: the record's fields, and `_spans`.
        text: the document.

    A string must be the folded text of its span (an enum in any case of letters); a date or an amount is written
    otherwise than it stands there, so of those only the place is checked.
    """
    problems = []
    for span in row["_spans"] or ():
        start, end, field = span["start"], span["end"], span["field"]
        if not 0 <= start < end <= len(text):
            problems.append(f"{field} at [{start}, {end}) of {len(text)} characters")
            continue
        value = _value_at(row, field)
        if not isinstance(value, str) or _is_number(value):
            continue
        if folded(text[start:end]).casefold() != value.casefold():
            problems.append(f"{field} is not what stands at [{start}, {end})")
    return problems


def _value_at(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for name, index in _STEP.findall(path):
        try:
            value = value[name] if name else value[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _is_number(value: str) -> bool:
    """Whether a string is a decimal kept as text."""
    try:
        Decimal(value)
    except InvalidOperation:
        return False
    return True
