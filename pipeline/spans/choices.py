"""Values of an enumeration where they stand in a text, in whatever case, with accents composed or not."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence

from pipeline.spans.candidates import Candidate
from pipeline.spans.folding import Folded, folded
from pipeline.spans.views import Bounds

__all__ = ["choices_in", "is_alike"]

_LETTERS_WITH_LONGER_SMALL_ONES = "İ"


def is_alike(text: str, other: str) -> bool:
    """Whether two texts are the same but for case and for how their accents are written."""
    return unicodedata.normalize("NFC", _lowered(text)) == unicodedata.normalize("NFC", _lowered(other))


def _lowered(text: str) -> str:
    """In lower case, one character for one."""
    for letter in _LETTERS_WITH_LONGER_SMALL_ONES:
        text = text.replace(letter, "i")
    return text.lower().replace("ς", "σ")


def _wanted(values: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """By first character: how each value looks in a text in lower case, and how its JSON spells it inside quotes."""
    found: dict[str, list[tuple[str, str]]] = {}
    for value in values:
        if value == "null":
            continue
        spelling = value[1:-1] if value.startswith('"') else value
        plain = _lowered(folded(json.loads(value) if value.startswith('"') else value))
        for looks in {unicodedata.normalize("NFC", plain), unicodedata.normalize("NFD", plain)} - {""}:
            found.setdefault(looks[0], []).append((looks, spelling))
    return found


def choices_in(whole: Folded, bounds: Bounds, values: Sequence[str]) -> list[Candidate]:
    """Each place between bounds of words that spells a value (given as JSON), by place."""
    text = _lowered(whole.text)
    wanted = _wanted(values)
    ends = frozenset(bounds.ends.tolist())
    found = []
    for start in bounds.starts.tolist():
        for looks, spelling in wanted.get(text[start], ()):
            end = start + len(looks)
            if end in ends and text.startswith(looks, start):
                found.append(Candidate(start, end, spelling))
    return sorted(set(found))
