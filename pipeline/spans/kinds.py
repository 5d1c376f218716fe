"""The settings of one kind of extractive field, read once from what a guide says of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pipeline.core.errors import SchemaRefusedError
from pipeline.core.span import DateOrder, Within

__all__ = ["BoundsKind", "CandidateKind", "KindType"]

KindType = Literal["string", "date", "datetime", "time", "decimal", "integer", "number", "enum"]
BoundsKind = Literal["words", "lines", "characters"]


@dataclass(frozen=True, slots=True)
class CandidateKind:
    """What decides a kind's candidates; equal kinds have equal ones.

    Attributes:
        type: what the field holds.
        within: what a stretch may not leave.
        pattern: a regular expression for the whole stretch, as it stands in the document.
        max_words: words of a stretch, at most (strings).
        words: whether a stretch begins and ends at the bounds of words (strings).
        lines: whether a stretch is made of whole lines (strings).
        date_order: how `03/02/2018` is read.
        min_length: characters of a stretch, at least (strings).
        max_length: characters of a stretch, at most (strings).
        values: of an enumeration, each as JSON.
        listed: whether a field's own constraints decide which stretches are candidates (strings).
    """

    type: KindType
    within: Within = "line"
    pattern: str | None = None
    max_words: int | None = None
    words: bool = True
    lines: bool = False
    date_order: DateOrder = "any"
    min_length: int = 0
    max_length: int | None = None
    values: tuple[str, ...] = ()
    listed: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, Any], date_order: str) -> CandidateKind:
        """Reads a guide's settings; `date_order` serves where they name none, and keys of others are left alone.

        Raises:
            SchemaRefusedError: a type, a scope or a date order that there is not.
        """
        kind = cls(
            type=settings["type"],
            within=_given(settings, "within", "line"),
            pattern=settings.get("pattern"),
            max_words=settings.get("max_words"),
            words=_given(settings, "words", True),
            lines=_given(settings, "lines", False),
            date_order=_given(settings, "date_order", date_order),
            min_length=_given(settings, "min_length", 0),
            max_length=settings.get("max_length"),
            listed=_given(settings, "listed", False),
            values=tuple(json.dumps(value, ensure_ascii=False) for value in _given(settings, "values", ())),
        )
        for name, value, known in (
            ("type", kind.type, get_args(KindType)),
            ("within", kind.within, get_args(Within)),
            ("date_order", kind.date_order, get_args(DateOrder)),
        ):
            if value not in known:
                raise SchemaRefusedError(f"an extractive field with {name} {value!r}: one of {', '.join(known)}")
        return kind

    @property
    def bounds(self) -> BoundsKind:
        """Where a stretch may begin and end."""
        if self.lines:
            return "lines"
        return "words" if self.words else "characters"

    @property
    def is_listed(self) -> bool:
        """Whether a string's stretches must be listed one by one, since the text alone does not tell their ends."""
        return self.listed or self.pattern is not None or self.min_length > 1


def _given(settings: Mapping[str, Any], key: str, default: Any) -> Any:
    """The setting; "not set" is None or absent."""
    value = settings.get(key)
    return default if value is None else value
