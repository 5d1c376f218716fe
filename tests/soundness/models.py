"""The catalogue of types that the compiler is proved on: one flat, named list."""

from __future__ import annotations

from tests.soundness.catalogue import (
    configured,
    containers,
    formats,
    keys,
    numbers,
    objects,
    overridden,
    text,
    traps,
    unions,
)
from tests.soundness.entry import Entry

__all__ = ["CATALOGUE", "find_entry"]

CATALOGUE: tuple[Entry, ...] = (
    *numbers.ENTRIES,
    *text.ENTRIES,
    *formats.ENTRIES,
    *containers.ENTRIES,
    *keys.ENTRIES,
    *objects.ENTRIES,
    *configured.ENTRIES,
    *traps.ENTRIES,
    *overridden.ENTRIES,
    *unions.ENTRIES,
)


def find_entry(name: str) -> Entry:
    """The entry of that name.

    Raises:
        KeyError: there is none.
    """
    for candidate in CATALOGUE:
        if candidate.name == name:
            return candidate
    raise KeyError(name)
