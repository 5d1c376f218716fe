"""How single values are spelt: numbers, strings and constants as automata over bytes."""

from __future__ import annotations

from decimal import Decimal
from math import lcm

from pipeline.decoding.automata import EMPTY, Dfa
from pipeline.decoding.jsontext import json_literal, json_string, string_of
from pipeline.decoding.nfa import Nfa, union
from pipeline.decoding.numbers import (
    MAX_INTEGER_DIGITS,
    MAX_SIGNIFICANT_DIGITS,
    free_number,
    integers,
    numbers,
    open_number,
)
from pipeline.decoding.shapes import Bool, Num, Str

__all__ = ["booleans", "json_in_string", "number_language", "quoted", "string_language"]

_ASCII = 0x7F


def booleans(shape: Bool) -> Dfa:
    return union([json_literal(b"true" if value else b"false") for value in sorted(shape.values, reverse=True)])


def number_language(shape: Num) -> Dfa:
    """The spellings of a number.

    Raises:
        NumberTooFineError: its multiple needs too many states.
    """
    if shape.only is not None:
        return union([_value(value, is_integer=shape.is_integer) for value in sorted(shape.only)]).minimized()
    if shape.is_free and not shape.is_integer:
        return open_number() if shape.is_open else free_number()
    multiple = _common_multiple((*shape.multiples, Decimal(1)) if shape.is_integer else shape.multiples)
    if shape.is_integer:
        digits = shape.whole_digits if shape.whole_digits < MAX_SIGNIFICANT_DIGITS else MAX_INTEGER_DIGITS
        language = integers(shape.bounds, int(multiple or 1), digits)
    else:
        language = numbers(
            shape.bounds, whole_digits=shape.whole_digits, places=shape.places, significant=shape.significant,
            multiple=multiple,
        )  # fmt: skip
    # Zero has a digit before its point, however it is written.
    for value in shape.excluded | ({Decimal(0)} if shape.whole_digits <= 0 else set()):
        language = language.difference(_value(value, is_integer=False), _ASCII)
    return language


def _common_multiple(multiples: tuple[Decimal, ...]) -> Decimal | None:
    """The least common multiple, exactly."""
    if not multiples:
        return None
    places = max(max(0, -int(value.normalize().as_tuple().exponent)) for value in multiples)
    return Decimal(lcm(*(int(value.scaleb(places)) for value in multiples))).scaleb(-places)


def _value(value: Decimal, *, is_integer: bool) -> Dfa:
    """One number: its plain spelling, with any zeros after its decimals where it need not be an integer."""
    text = f"{value.normalize():f}"
    if text == "-0":
        text = "0"
    if is_integer:
        return json_literal(text.encode())
    nfa = Nfa()
    start, end = nfa.state(), nfa.state()
    written = nfa.literal(start, text.encode())
    nfa.link(written, end)
    zeros = nfa.literal(written, b"0" if "." in text else b".0")
    nfa.edge(zeros, 0x30, 0x30, zeros)
    nfa.link(zeros, end)
    return nfa.determinized(start, end)


def string_language(shape: Str) -> Dfa:
    """The JSON strings, with their quotes.

    Raises:
        StateLimitError: language and length together need too many states.
    """
    if shape.language is None:
        return string_of(shape.least, shape.most)
    language = shape.whole_language
    return EMPTY if language.is_empty else json_string(language)


def quoted(dfa: Dfa) -> Dfa:
    """The same bytes between quotes; for keys that are numbers."""
    nfa = Nfa()
    start = nfa.state()
    return nfa.determinized(start, nfa.literal(nfa.splice(nfa.literal(start, b'"'), dfa), b'"'))


def json_in_string(dfa: Dfa) -> Dfa:
    """A JSON string that holds JSON: its quotes and backslashes escaped once more."""
    nfa = Nfa()
    start = nfa.state()
    first = nfa.literal(start, b'"')
    states = [nfa.state() for _ in range(dfa.state_count)]
    end = nfa.state()
    nfa.link(first, states[0])
    for state, row in enumerate(dfa.edges):
        for low, high, target in row:
            for piece in _escaped(low, high):
                if piece[0]:
                    nfa.edge(nfa.literal(states[state], b"\\"), piece[1], piece[1], states[target])
                else:
                    nfa.edge(states[state], piece[1], piece[2], states[target])
        if dfa.accepting[state]:
            nfa.edge(states[state], 0x22, 0x22, end)
    return nfa.determinized(start, end)


def _escaped(low: int, high: int) -> list[tuple[bool, int, int]]:
    """The bytes low..high in pieces: whether they are escaped, first, last."""
    pieces = [(True, point, point) for point in (0x22, 0x5C) if low <= point <= high]
    for start, stop in ((0, 0x21), (0x23, 0x5B), (0x5D, 0xFF)):
        if max(low, start) <= min(high, stop):
            pieces.append((False, max(low, start), min(high, stop)))
    return pieces
