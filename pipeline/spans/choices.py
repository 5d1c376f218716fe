"""Values of an enumeration where they stand in a text, in whatever case."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pipeline.spans.candidates import Candidate
from pipeline.spans.folding import Folded, folded
from pipeline.spans.views import Bounds

__all__ = ["choices_in", "lowered"]

_LETTERS_WITH_LONGER_SMALL_ONES = "İ"


def lowered(text: str) -> str:
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
        looks = lowered(folded(json.loads(value) if value.startswith('"') else value))
        if looks:
            found.setdefault(looks[0], []).append((looks, spelling))
    return found


def choices_in(whole: Folded, bounds: Bounds, values: Sequence[str]) -> list[Candidate]:
    """Each place between bounds of words that spells a value (given as JSON), by place."""
    text = lowered(whole.text)
    wanted = _wanted(values)
    ends = frozenset(bounds.ends.tolist())
    found = []
    for start in bounds.starts.tolist():
        for looks, spelling in wanted.get(text[start], ()):
            end = start + len(looks)
            if end in ends and text.startswith(looks, start):
                found.append(Candidate(start, end, spelling))
    return sorted(set(found))
