"""Owns the step from what a replay saw of extractive values to where each field stands in its document."""

from __future__ import annotations

import functools
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from pipeline.core.outcome import FoundSpan
from pipeline.decoding import SpanMark
from pipeline.decoding.containers import ITEM, OTHERS

__all__ = ["located", "value_at"]

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_BOUND = re.compile(r"(?<=.)(?=[.\[])|$")


def located(
    marks: Sequence[SpanMark],
    record: str,
    *,
    fields: tuple[str, ...],
    offset: int = 0,
    kept: Mapping[str, Any] | None = None,
) -> tuple[FoundSpan, ...]:
    """The spans with the indices of their lists, as `items[2].amount`.

    Args:
        marks: in the order of the record, by path without indices.
        record: the record as JSON, in the order in which it was written.
        fields: the guide's, which marks are named by.
        offset: characters of the document before the part that was read.
        kept: what the record class made of the record; a copied string that became another one is noted.
    """
    waiting: dict[str, deque[SpanMark]] = {}
    for mark in marks:
        waiting.setdefault(mark.path, deque()).append(mark)
    found = []
    for generic, path, value in _leaves(json.loads(record), "", "", _prefixes(fields)):
        if queue := waiting.get(generic):
            places = queue.popleft().places
            start, end = places[0]
            copied = value if _is_changed(value, value_at(kept, path)) else None
            found.append(FoundSpan(path, start + offset, end + offset, len(places) > 1, copied))
    return tuple(found)


def value_at(record: Any, path: str) -> Any:
    """What stands at a span's path, as `items[2].amount`; None where nothing does."""
    value = record
    for name, index in _STEP.findall(path):
        try:
            value = value[name] if name else value[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _is_changed(written: Any, kept: Any) -> bool:
    """Whether a string became another one; dates and amounts become values of their types, which is no change."""
    plain = kept.value if isinstance(kept, Enum) else kept
    return isinstance(written, str) and isinstance(plain, str) and plain != written


@functools.lru_cache(maxsize=64)
def _prefixes(fields: tuple[str, ...]) -> frozenset[str]:
    """The paths of fields, and of what they stand in."""
    return frozenset(field[: found.start()] for field in fields for found in _BOUND.finditer(field))


def _leaves(value: Any, generic: str, path: str, known: frozenset[str]) -> Iterator[tuple[str, str, Any]]:
    """Every value that is no container and not null: its field, its path with indices, and itself.

    A field names a key where the schema does, else `*`; an item of a tuple by its index, of a list by none.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            start = f"{generic}." if generic else ""
            name = next((start + name for name in (key, OTHERS) if start + name in known), None)
            if name is not None:
                yield from _leaves(item, name, f"{path}.{key}" if path else key, known)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            name = next((generic + name for name in (f"[{index}]", ITEM) if generic + name in known), None)
            if name is not None:
                yield from _leaves(item, name, f"{path}[{index}]", known)
    elif value is not None:
        yield generic, path, value
