"""How the states of an automaton are tagged with the field that is written in them: paths, and a number for each."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.decoding.automata import NO_TAG

__all__ = ["RECORD", "FieldTags", "path_text"]

RECORD = "(record)"
"""Path of the record itself, as it is told."""


class FieldTags:
    """The tags of one document, numbered as their paths are first met; a path counts from the value that is tagged."""

    def __init__(self) -> None:
        self._tags: dict[tuple[str, ...], int] = {}
        self._paths: list[tuple[str, ...]] = []

    @property
    def fields(self) -> tuple[str, ...]:
        """Path of each tag."""
        return tuple(path_text(path) for path in self._paths)

    def retag(self, name: str) -> Callable[[int], int]:
        """How the tags of a value are renamed when it becomes the property or item `name`."""
        mapped: dict[int, int] = {}

        def retag(tag: int) -> int:
            if tag not in mapped:
                mapped[tag] = self._tag((name,) if tag == NO_TAG else (name, *self._paths[tag]))
            return mapped[tag]

        return retag

    def _tag(self, path: tuple[str, ...]) -> int:
        if path not in self._tags:
            self._tags[path] = len(self._paths)
            self._paths.append(path)
        return self._tags[path]


def path_text(path: tuple[str, ...]) -> str:
    """A path as it is told, such as `items[].amount`; `RECORD` for the record itself."""
    text = ""
    for part in path:
        text += part if part.startswith("[") or not text else f".{part}"
    return text or RECORD
