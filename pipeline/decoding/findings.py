"""What is found to say of the fields while they are spelt, by path: their verdicts are drawn from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.decoding.field_tags import path_text
from pipeline.decoding.shapes import Shape

__all__ = ["Findings"]


@dataclass(slots=True)
class Findings:
    """What was met on the way.

    Attributes:
        paths: every field, in the order in which they were met.
        notes: what of a field is checked afterwards.
        refusals: why a field cannot be compiled; the first reason stands.
        unrolled: fields whose recursion is cut at a depth.
    """

    paths: dict[str, None] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    unrolled: dict[str, None] = field(default_factory=dict)

    def note(self, path: tuple[str, ...], shapes: Iterable[Shape]) -> None:
        """The field was met, and its shapes bring their notes."""
        self.paths[path_text(path)] = None
        for shape in shapes:
            for note in shape.notes:
                self.remark(path, note)

    def remark(self, path: tuple[str, ...], note: str) -> None:
        """One thing that is checked afterwards."""
        notes = self.notes.setdefault(path_text(path), [])
        if note not in notes:
            notes.append(note)

    def refuse(self, path: tuple[str, ...], reason: str) -> None:
        """The field cannot be compiled."""
        self.paths.setdefault(path_text(path), None)
        self.refusals.setdefault(path_text(path), reason)

    def unroll(self, path: tuple[str, ...]) -> None:
        """The recursion of the field ends here."""
        self.unrolled[path_text(path)] = None
