"""What is found to say of the fields while they are spelt, by path: their verdicts are drawn from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, assert_never

from pipeline.decoding.field_tags import path_text
from pipeline.decoding.shapes import Shape

__all__ = ["Findings"]

_Kind = Literal["path", "note", "refusal", "unrolled"]


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
    _log: list[tuple[_Kind, tuple[str, ...], str]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How much was found so far."""
        return len(self._log)

    def note(self, path: tuple[str, ...], shapes: Iterable[Shape]) -> None:
        """The field was met, and its shapes bring their notes."""
        self._add("path", path)
        for shape in shapes:
            for note in shape.notes:
                self.remark(path, note)

    def remark(self, path: tuple[str, ...], note: str) -> None:
        """One thing that is checked afterwards."""
        self._add("note", path, note)

    def refuse(self, path: tuple[str, ...], reason: str) -> None:
        """The field cannot be compiled."""
        self._add("refusal", path, reason)

    def unroll(self, path: tuple[str, ...]) -> None:
        """The recursion of the field ends here."""
        self._add("unrolled", path)

    def repeat(self, start: int, stop: int, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """What was found from `start` to `stop` (counts) at `old` and below holds at `new` too."""
        for kind, path, text in self._log[start:stop]:
            if path[: len(old)] == old:
                self._add(kind, new + path[len(old) :], text)

    def _add(self, kind: _Kind, path: tuple[str, ...], text: str = "") -> None:
        self._log.append((kind, path, text))
        name = path_text(path)
        match kind:
            case "path":
                self.paths[name] = None
            case "note":
                notes = self.notes.setdefault(name, [])
                if text not in notes:
                    notes.append(text)
            case "refusal":
                self.paths.setdefault(name, None)
                self.refusals.setdefault(name, text)
            case "unrolled":
                self.unrolled[name] = None
            case _:
                assert_never(kind)
