"""From a document's text to what its extractive fields may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from pipeline.core.span import DateOrder, Within
from pipeline.decoding.guide import Guide
from pipeline.decoding.span_document import SpanDocument, SpanView, view_of_values
from pipeline.spans.amounts import Numeral, integers_of, numbers_of, numerals_in
from pipeline.spans.candidates import Candidate
from pipeline.spans.choices import choices_in
from pipeline.spans.classes import ascii_digits
from pipeline.spans.dates import dates_in
from pipeline.spans.folding import Folded, fold
from pipeline.spans.kinds import BoundsKind, CandidateKind
from pipeline.spans.listing import compiled, listed
from pipeline.spans.times import datetimes_in, times_in
from pipeline.spans.views import Bounds, bounds_of, view_of_text

__all__ = ["Accepts", "SpanFinder"]

Accepts = Callable[[bytes], bool]
"""Whether a field can hold a value, given as its whole JSON: strings, dates and times in quotes."""

_BARE = frozenset({"decimal", "integer", "number"})


class SpanFinder:
    """Finds the candidates of a guide's extractive fields, document after document.

    The same text gives the same candidates, in the order of the text.

    Args:
        kinds: a guide's `span_kinds`; see `CandidateKind.of`.
        date_order: how `03/02/2018` is read where a kind does not say: `dmy`, `mdy`, `ymd`, or `any` for every reading.
        accepts: for each kind, which values of a list the field can hold; None for all.

    Raises:
        SchemaRefusedError: a kind with a type, scope, date order or pattern that there is not.
    """

    def __init__(
        self,
        kinds: Sequence[Mapping[str, Any]],
        *,
        date_order: str = "any",
        accepts: Sequence[Accepts | None] = (),
    ) -> None:
        self._kinds = tuple(CandidateKind.of(kind, date_order) for kind in kinds)
        self._accepts = (*accepts, *[None] * (len(kinds) - len(accepts)))
        for kind in self._kinds:
            if kind.pattern is not None:
                compiled(kind.pattern)

    @classmethod
    def of_guide(cls, guide: Guide, date_order: str) -> Self:
        """The finder for a guide's extractive fields; listed values that a field's own constraints refuse are none."""
        spellings = [guide.plain_spelling(kind) for kind in range(len(guide.span_kinds))]
        accepts = [None if spelling is None else spelling.accepts for spelling in spellings]
        return cls(guide.span_kinds, date_order=date_order, accepts=accepts)

    def document(self, text: str) -> SpanDocument:
        """One view for each kind, in their order; equal kinds share one."""
        reader = _Reader(text)
        known: dict[tuple[CandidateKind, Accepts | None], SpanView] = {}
        for key in zip(self._kinds, self._accepts, strict=True):
            if key not in known:
                known[key] = reader.view(*key)
        return SpanDocument(tuple(known[key] for key in zip(self._kinds, self._accepts, strict=True)))


class _Reader:
    """One document; what several kinds need is made once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded: dict[Within, Folded] = {}
        self._bounds: dict[tuple[Within, BoundsKind], Bounds] = {}
        self._digits: dict[Within, str] = {}
        self._found: dict[tuple[str, Within, DateOrder], list[Candidate]] = {}
        self._numerals: dict[Within, list[Numeral]] = {}

    def view(self, kind: CandidateKind, accepts: Accepts | None) -> SpanView:
        # A date or a number is one thing: `3. Februar` is no end of a sentence.
        within: Within = "paragraph" if kind.within == "sentence" and kind.type != "string" else kind.within
        whole = self._whole(within)
        if kind.type == "string" and not kind.is_listed:
            return view_of_text(whole, self._bounds_of(within, kind.bounds), kind.max_words, kind.max_length)
        candidates = self._candidates(kind, within)
        if kind.pattern is not None and kind.type != "string":
            written = compiled(kind.pattern)
            candidates = [item for item in candidates if written.fullmatch(whole.text, item.start, item.end)]
        if accepts is not None:
            candidates = _accepted(candidates, kind, accepts)
        starts, ends = whole.source_start.tolist(), whole.source_end.tolist()
        return view_of_values([(value.encode(), starts[start], ends[end - 1]) for start, end, value in candidates])

    def _candidates(self, kind: CandidateKind, within: Within) -> list[Candidate]:
        match kind.type:
            case "string":
                return listed(self._whole(within), self._bounds_of(within, kind.bounds), kind)
            case "enum":
                return choices_in(self._whole(within), self._bounds_of(within, "words"), kind.values)
            case "date":
                return self._dates(within, kind.date_order)
            case "time":
                return self._times(within)
            case "datetime":
                dates, times = self._dates(within, kind.date_order), self._times(within)
                return datetimes_in(self._digits_of(within), dates, times)
            case "integer":
                return integers_of(self._numbers(within))
            case "decimal" | "number":
                return numbers_of(self._numbers(within))

    def _dates(self, within: Within, order: DateOrder) -> list[Candidate]:
        key = ("date", within, order)
        if key not in self._found:
            self._found[key] = dates_in(self._digits_of(within), order)
        return self._found[key]

    def _times(self, within: Within) -> list[Candidate]:
        key: tuple[str, Within, DateOrder] = ("time", within, "any")
        if key not in self._found:
            self._found[key] = times_in(self._digits_of(within))
        return self._found[key]

    def _numbers(self, within: Within) -> list[Numeral]:
        if within not in self._numerals:
            self._numerals[within] = numerals_in(self._digits_of(within))
        return self._numerals[within]

    def _digits_of(self, within: Within) -> str:
        if within not in self._digits:
            self._digits[within] = ascii_digits(self._whole(within).points)
        return self._digits[within]

    def _whole(self, within: Within) -> Folded:
        if within not in self._folded:
            self._folded[within] = fold(self._text, within)
        return self._folded[within]

    def _bounds_of(self, within: Within, kind: BoundsKind) -> Bounds:
        key = (within, kind)
        if key not in self._bounds:
            self._bounds[key] = bounds_of(self._whole(within), kind)
        return self._bounds[key]


def _accepted(candidates: Sequence[Candidate], kind: CandidateKind, accepts: Accepts) -> list[Candidate]:
    """The candidates whose JSON the field can hold; each value is asked about once."""
    known: dict[str, bool] = {}
    for candidate in candidates:
        if candidate.value not in known:
            known[candidate.value] = accepts(_json(candidate.value, kind).encode())
    return [candidate for candidate in candidates if known[candidate.value]]


def _json(value: str, kind: CandidateKind) -> str:
    quoted = f'"{value}"'
    is_bare = kind.type in _BARE or (kind.type == "enum" and value in kind.values and quoted not in kind.values)
    return value if is_bare else quoted
