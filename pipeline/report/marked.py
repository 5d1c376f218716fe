"""A document's text cut into stretches, so that a page can mark those that extractive fields copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Segment", "segments"]


class _Span(Protocol):
    @property
    def field(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def is_ambiguous(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a document's text; `field` names the extractive field that copied it, if one did."""

    text: str
    field: str | None = None
    is_ambiguous: bool = False


def segments(body: str, spans: Sequence[_Span]) -> Iterator[Segment]:
    """The text in order, cut where spans begin and end; of spans that overlap, the first one is marked."""
    at = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        start, end = max(at, span.start), min(len(body), span.end)
        if start >= end:
            continue
        if start > at:
            yield Segment(body[at:start])
        yield Segment(body[start:end], span.field, span.is_ambiguous)
        at = end
    if at < len(body):
        yield Segment(body[at:])
