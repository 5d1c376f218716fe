"""Owns the step from what a replay saw of extractive values to where each field stands in its document."""

from __future__ import annotations

import functools
import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.core.outcome import FoundSpan
from pipeline.decoding import SpanMark
from pipeline.decoding.containers import ITEM, OTHERS

__all__ = ["located"]

_BOUND = re.compile(r"(?<=.)(?=[.\[])|$")


def located(
    marks: Sequence[SpanMark], record: str, *, fields: tuple[str, ...], offset: int = 0
) -> tuple[FoundSpan, ...]:
    """The spans with the indices of their lists, as `items[2].amount`.

    Args:
        marks: in the order of the record, by path without indices.
        record: the record as JSON, in the order in which it was written.
        fields: the guide's, which marks are named by.
        offset: characters of the document before the part that was read.
    """
    waiting: dict[str, deque[SpanMark]] = {}
    for mark in marks:
        waiting.setdefault(mark.path, deque()).append(mark)
    found = []
    for generic, path in _leaves(json.loads(record), "", "", _prefixes(fields)):
        if queue := waiting.get(generic):
            places = queue.popleft().places
            start, end = places[0]
            found.append(FoundSpan(path, start + offset, end + offset, is_ambiguous=len(places) > 1))
    return tuple(found)


@functools.lru_cache(maxsize=64)
def _prefixes(fields: tuple[str, ...]) -> frozenset[str]:
    """The paths of fields, and of what they stand in."""
    return frozenset(field[: found.start()] for field in fields for found in _BOUND.finditer(field))


def _leaves(value: Any, generic: str, path: str, known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Every value that is no container and not null: its field, and its path with indices.

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
        yield generic, path
