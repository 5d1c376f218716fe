"""Owns the step from what a replay saw of extractive values to where each field stands in its document."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from pipeline.core.outcome import FoundSpan
from pipeline.decoding import SpanMark
from pipeline.decoding.containers import ITEM, OTHERS

__all__ = ["located"]


def located(marks: Sequence[SpanMark], record: str, *, offset: int = 0) -> tuple[FoundSpan, ...]:
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
    for generics, path in _leaves(json.loads(record), ("",), ""):
        queue = next((waiting[generic] for generic in generics if waiting.get(generic)), None)
        if queue:
            places = queue.popleft().places
            start, end = places[0]
            found.append(FoundSpan(path, start + offset, end + offset, is_ambiguous=len(places) > 1))
    return tuple(found)


def _leaves(value: Any, generics: tuple[str, ...], path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every value that is no container and not null: what its marks may be called, and its path with indices.

    A mark names a key where the schema does, else `*`; an item of a tuple by its index, of a list by none.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            names = tuple(f"{generic}.{name}" if generic else name for generic in generics for name in (key, OTHERS))
            yield from _leaves(item, names, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            names = tuple(f"{generic}{name}" for generic in generics for name in (f"[{index}]", ITEM))
            yield from _leaves(item, names, f"{path}[{index}]")
    elif value is not None:
        yield generics, path
