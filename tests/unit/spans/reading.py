"""What the tests of spans share: candidates written out one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.decoding.span_document import BARRIER, SpanView
from pipeline.spans import SpanFinder

__all__ = ["Found", "candidates", "found_in", "values_in"]

Found = tuple[str, int, int]
"""What JSON would hold, and the characters `[start, end)` of the text that it stands at."""


def candidates(view: SpanView) -> Iterator[Found]:
    """Every candidate of a view, read as its docstring says."""
    buffer = view.buffer.tobytes()
    assert len(view.is_end) == len(view.source_end) == len(buffer) + 1
    assert len(view.starts) == len(view.lasts) == len(view.source_start)
    for start, last, source in zip(view.starts.tolist(), view.lasts.tolist(), view.source_start.tolist(), strict=True):
        assert view.is_end[last]
        for end in range(start + 1, last + 1):
            if view.is_end[end]:
                assert BARRIER not in buffer[start:end]
                yield buffer[start:end].decode(), source, int(view.source_end[end])


def found_in(text: str, kind: Mapping[str, Any], **settings: Any) -> list[Found]:
    """The candidates of one kind."""
    return list(candidates(SpanFinder([kind], **settings).document(text).views[0]))


def values_in(text: str, kind: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What may be written, and the characters that it stands at."""
    return [(value, text[start:end]) for value, start, end in found_in(text, kind)]
