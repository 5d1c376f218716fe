"""Compiles catalogue entries, once each, and draws texts from their automata."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Grammar, compile_grammar
from tests.soundness.checks import complaint
from tests.soundness.entry import Entry
from tests.soundness.models import find_entry

__all__ = ["Subject", "compiled", "draws", "mutants"]

_FREE_KEYS = frozenset({"dict", "extra", "any", "json"})
_EDITS = b'0123456789-+.eE",:[]{}\\/ abcxyzTZ_\t\n\x00\x7f\xc3\xa9\xff'


@dataclass(frozen=True, slots=True)
class Subject:
    """A compiled entry.  `grammar` is None where the compiler refused the type, and `refusal` then says why."""

    entry: Entry
    grammar: Grammar | None
    refusal: str
    compile_s: float

    @property
    def verdict(self) -> str:
        """`enforced`, `widened` or `refused`."""
        if self.grammar is None:
            return "refused"
        enforced = all(field.verdict == "enforced" for field in self.grammar.verdicts)
        return "enforced" if enforced else "widened"

    @property
    def reasons(self) -> str:
        """Why the verdict is not `enforced`."""
        if self.grammar is None:
            return self.refusal
        return "; ".join(
            f"{field.path}: {field.reason}" for field in self.grammar.verdicts if field.verdict != "enforced"
        )

    def complaint(self, text: bytes) -> str | None:
        """Why a text that the automaton accepts breaks the proof; None where it does not."""
        return complaint(
            self.entry.adapter,
            text,
            validates=self.verdict == "enforced",
            allow_duplicate_keys=bool(_FREE_KEYS & self.entry.tags),
        )

    def type_refuses(self, text: bytes) -> bool:
        """Whether Pydantic refuses the text; it may where the verdict is `widened`."""
        try:
            self.entry.adapter.validate_json(text)
        except ValueError:
            return True
        return False


@cache
def compiled(name: str) -> Subject:
    """The entry of that name, compiled in this process at most once."""
    entry = find_entry(name)
    start = perf_counter()
    try:
        grammar = compile_grammar(entry.type)
    except SchemaRefusedError as error:
        return Subject(entry, None, str(error), perf_counter() - start)
    return Subject(entry, grammar, "", perf_counter() - start)


def draws(grammar: Any, count: int, seed: object) -> Iterator[bytes]:
    """Random texts that the automaton accepts; the same seed gives the same ones."""
    rng = random.Random(f"{seed}")
    for _ in range(count):
        yield grammar.automaton.sample(rng)


def mutants(texts: list[bytes], count: int, seed: object) -> Iterator[bytes]:
    """Texts made from `texts` by one to three random edits of bytes; most are not JSON."""
    rng = random.Random(f"{seed}")
    for _ in range(count):
        text = bytearray(rng.choice(texts))
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            _edit(text, rng, texts)
        yield bytes(text)


def _edit(text: bytearray, rng: random.Random, texts: list[bytes]) -> None:
    place = rng.randrange(len(text) + 1)
    kind = rng.randrange(6)
    if kind <= 1 and place < len(text):
        old = text[place]
        text[place] = rng.choice(b"0123456789") if 48 <= old <= 57 and rng.random() < 0.7 else rng.choice(_EDITS)
    elif kind == 2:
        text[place:place] = bytes([rng.choice(_EDITS)])
    elif kind == 3:
        del text[place : place + rng.choice((1, 1, 2, 5))]
    elif kind == 4:
        end = min(len(text), place + rng.randrange(1, 12))
        text[end:end] = text[place:end]
    else:
        other = rng.choice(texts)
        text[place:] = other[min(place, len(other)) :]
