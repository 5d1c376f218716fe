"""The annotation that makes a field extractive: its value is copied from the document, and cannot be invented."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

__all__ = ["Span"]

Within = Literal["line", "sentence", "paragraph", "document"]
DateOrder = Literal["dmy", "mdy", "ymd", "any"]


@dataclass(frozen=True, slots=True)
class Span:
    """Marks a field of a record type as extractive: `company: Annotated[str, Span()]`.

    A string becomes a stretch of the document's text, white space folded.  A date, datetime, time, decimal, int, float
    or enum becomes one of the values of that type that stand in the document, in canonical form.  The model can be used
    elsewhere as if the mark were not there.  In a JSON Schema the keyword is `x-span` with the same keys.

    Attributes:
        within: what a stretch may not leave.
        pattern: a regular expression that the whole stretch must match, as it stands in the document: for an amount
            perhaps `.*[.,]\\d\\d`, so that a number of pieces is none.
        max_words: the most words of a stretch (strings only).
        words: whether a stretch begins and ends at the bounds of words (strings only).
        lines: whether a stretch is made of whole lines, with `within="document"` of several (strings only).  The
            closest bound of all, so the best where it fits: a name or an address that has lines of its own.
        date_order: how `03/02/2018` is read; None leaves it to the job.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    within: Within = "line"
    pattern: str | None = None
    max_words: int | None = None
    words: bool = True
    lines: bool = False
    date_order: DateOrder | None = None

    def __post_init__(self) -> None:
        if self.max_words is not None and self.max_words < 1:
            raise ValueError(f"Span(max_words={self.max_words}): at least 1")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"Span(pattern={self.pattern!r}): {error}") from error

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Pydantic calls this for a schema; validation is left as it is."""
        schema = dict(handler(core_schema))
        if "$ref" in schema:
            return {"allOf": [schema], "x-span": self.settings}
        return {**schema, "x-span": self.settings}

    @property
    def settings(self) -> dict[str, Any]:
        """What stands under `x-span`: every setting that has a value."""
        return {key: value for key, value in asdict(self).items() if value is not None}
