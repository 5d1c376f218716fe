"""What is found to say of the fields while they are spelt, by path: their verdicts are drawn from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from pipeline.decoding.field_tags import path_text
from pipeline.decoding.shapes import Shape

__all__ = ["FieldFindings", "Findings"]

_Kind = Literal["met", "note", "refusal", "unrolled"]


@dataclass(slots=True)
class FieldFindings:
    """What was found of one field."""

    refusal: str | None = None
    """Why it cannot be compiled; the first reason stands."""
    notes: list[str] = field(default_factory=list)
    """What is checked afterwards."""
    is_unrolled: bool = False
    """Whether its recursion is cut at a depth."""


class Findings:
    """What was met on the way, in order."""

    def __init__(self) -> None:
        self._log: list[tuple[_Kind, tuple[str, ...], str]] = []

    @property
    def count(self) -> int:
        """How much was found so far."""
        return len(self._log)

    @property
    def refused(self) -> str | None:
        """The field that was refused first, if any was."""
        return next((path_text(path) for kind, path, _ in self._log if kind == "refusal"), None)

    def note(self, path: tuple[str, ...], shapes: Iterable[Shape]) -> None:
        """The field was met, and its shapes bring their notes."""
        self._log.append(("met", path, ""))
        for shape in shapes:
            for note in shape.notes:
                self.remark(path, note)

    def remark(self, path: tuple[str, ...], note: str) -> None:
        """One thing that is checked afterwards."""
        self._log.append(("note", path, note))

    def refuse(self, path: tuple[str, ...], reason: str) -> None:
        """The field cannot be compiled."""
        self._log.append(("refusal", path, reason))

    def unroll(self, path: tuple[str, ...]) -> None:
        """The recursion of the field ends here."""
        self._log.append(("unrolled", path, ""))

    def repeat(self, start: int, stop: int, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """What was found from `start` to `stop` (counts) at `old` and below holds at `new` too."""
        self._log += [
            (kind, new + path[len(old) :], text)
            for kind, path, text in self._log[start:stop]
            if path[: len(old)] == old
        ]

    def by_field(self) -> dict[str, FieldFindings]:
        """Every field that was met or refused, in that order, with what was found of it."""
        found = {path_text(path): FieldFindings() for kind, path, _ in self._log if kind in ("met", "refusal")}
        for kind, path, text in self._log:
            of = found.get(path_text(path))
            if of is None:
                continue
            if kind == "refusal" and of.refusal is None:
                of.refusal = text
            elif kind == "note" and text not in of.notes:
                of.notes.append(text)
            of.is_unrolled |= kind == "unrolled"
        return found
