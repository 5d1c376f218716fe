"""A candidate of a list: what may be written, and where it stands."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Candidate"]


class Candidate(NamedTuple):
    """One value at one place; sorts by place.

    Attributes:
        start: its first character, as a position in a `Folded`.
        end: the position after its last character.
        value: canonical, as the field's JSON spells it, without the quotes of a string.
    """

    start: int
    end: int
    value: str
