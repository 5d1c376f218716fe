"""Sets of strings as automata over code points: any string of a length, or exactly those of a list."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

from pipeline.decoding.automata import Dfa
from pipeline.decoding.code_points import ANY_CHAR
from pipeline.decoding.nfa import union
from pipeline.decoding.refusals import RefusedError

__all__ = ["any_string", "words"]


@functools.lru_cache(maxsize=256)
def any_string(least: int = 0, most: int | None = None) -> Dfa:
    """Strings of `least` to `most` characters."""
    count = (least if most is None else most) + 1
    edges: list[tuple[tuple[int, int, int], ...]] = []
    for state in range(count):
        target = min(state + 1, count - 1)
        is_last = state == count - 1
        edges.append(() if is_last and most is not None else tuple((low, high, target) for low, high in ANY_CHAR))
    return Dfa(tuple(edges), tuple(state >= least for state in range(count)), (-1,) * count)


def words(texts: Sequence[str]) -> Dfa:
    """Exactly these strings."""
    for word in texts:
        if any(0xD800 <= ord(char) <= 0xDFFF for char in word):
            raise RefusedError(f"{json.dumps(word)} holds a lone surrogate, which UTF-8 cannot spell")
    parts = []
    for word in dict.fromkeys(texts):
        edges = tuple(((ord(char), ord(char), index + 1),) for index, char in enumerate(word))
        parts.append(Dfa((*edges, ()), (False,) * len(word) + (True,), (-1,) * (len(word) + 1)))
    return union(parts) if parts else any_string(1, 0)
