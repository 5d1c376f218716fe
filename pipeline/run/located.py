"""Owns the step from what a replay saw of extractive values to where each field stands in its document."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.core.outcome import FoundSpan
from pipeline.decoding import SpanMark

__all__ = ["located"]


def located(marks: Sequence[SpanMark], record: bytes, *, offset: int = 0) -> tuple[FoundSpan, ...]:
    """The spans with the indices of their lists, as `items[2].amount`.

    Args:
        marks: in the order of the record, by path without indices.
        record: the record as JSON, in the order in which it was written.
        offset: characters of the document before the part that was read.
    """
    waiting: dict[str, deque[SpanMark]] = {}
    for mark in marks:
        waiting.setdefault(mark.path, deque()).append(mark)
    found = []
    for generic, path in _leaves(json.loads(record), "", ""):
        if queue := waiting.get(generic):
            places = queue.popleft().places
            start, end = places[0]
            found.append(FoundSpan(path, start + offset, end + offset, is_ambiguous=len(places) > 1))
    return tuple(found)


def _leaves(value: Any, generic: str, path: str) -> Iterator[tuple[str, str]]:
    """Every value that is no container and not null: its path without indices, and with them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{generic}.{key}" if generic else key, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{generic}[]", f"{path}[{index}]")
    elif value is not None:
        yield generic, path
