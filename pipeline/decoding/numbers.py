"""Numbers as automata over their JSON spelling: ranges, multiples, digits.

A number is spelt without a leading zero, plus sign or `-0`.  With a range or a multiple it has no exponent, and at most
15 significant digits, so that reading it as a double cannot move it across a bound (IEEE 754 keeps 15 decimal digits).
"""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import NamedTuple

from pipeline.decoding.automata import EMPTY, Dfa, Edge, StateLimitError, intersect, trimmed
from pipeline.decoding.nfa import Nfa, union
from pipeline.decoding.regex import full_match

__all__ = ["FREE", "Bounds", "NumberTooFineError", "free_number", "integers", "numbers", "open_number"]

MAX_INTEGER_DIGITS = 19
MAX_SIGNIFICANT_DIGITS = 15
_MOST_REMAINDERS = 2_000
"""Remainders that multiples may be told apart by; each is counted again at every digit."""
_MOST_STATES = 60_000
"""States of the multiples within digits and bounds."""
_ZERO, _NINE, _POINT, _MINUS = 0x30, 0x39, 0x2E, 0x2D


class NumberTooFineError(Exception):
    """No automaton of reasonable size holds this constraint."""


class Bounds(NamedTuple):
    """A closed or open interval; None where there is no bound."""

    low: Decimal | None = None
    high: Decimal | None = None
    is_low_open: bool = False
    is_high_open: bool = False

    @property
    def is_free(self) -> bool:
        return self.low is None and self.high is None

    def mirrored(self) -> Bounds:
        """The interval of the negated numbers."""
        low = None if self.high is None else -self.high
        high = None if self.low is None else -self.low
        return Bounds(low, high, self.is_high_open, self.is_low_open)

    def intersection(self, other: Bounds) -> Bounds:
        lows = [(b.low, b.is_low_open) for b in (self, other) if b.low is not None]
        highs = [(-b.high, b.is_high_open) for b in (self, other) if b.high is not None]
        low, low_open = max(lows, default=(None, False))
        high, high_open = max(highs, default=(None, False))
        return Bounds(low, None if high is None else -high, low_open, high_open)


FREE = Bounds()
"""No bound at all."""


@functools.lru_cache(maxsize=8)
def open_number() -> Dfa:
    """Any JSON number, its digits not counted: for values that the schema leaves open."""
    return full_match(r"(0|-?[1-9][0-9]*|-?(0|[1-9][0-9]*)\.[0-9]+)([eE][+-]?[0-9]{1,2})?").minimized()


@functools.lru_cache(maxsize=8)
def free_number() -> Dfa:
    """Any JSON number that a double can hold: 19 digits, 25 decimals, and an exponent only in scientific form."""
    plain = r"(0|[1-9][0-9]{0,18})(\.[0-9]{1,25})?"
    exponent = r"(0?[1-9]|[1-9][0-9]|[12][0-9][0-9]|30[0-7])"
    scientific = rf"[1-9](\.[0-9]{{1,17}})?[eE][+-]?{exponent}"
    return full_match(f"-?({plain}|{scientific})").difference(full_match(r"-0(\.0+)?"), 0x10FFFF).minimized()


def integers(bounds: Bounds, multiple: int = 1, digits: int = MAX_INTEGER_DIGITS) -> Dfa:
    """Integers within the bounds that `multiple` divides.

    Raises:
        NumberTooFineError: the multiple is too great.
    """
    digits = max(digits, *(len(str(abs(int(bound)))) for bound in (bounds.low, bounds.high) if bound is not None), 0)
    return _signed(bounds, digits, 0, multiple, digits)


def numbers(
    bounds: Bounds,
    *,
    whole_digits: int = MAX_SIGNIFICANT_DIGITS,
    places: int = MAX_SIGNIFICANT_DIGITS,
    significant: int = MAX_SIGNIFICANT_DIGITS,
    multiple: Decimal | None = None,
) -> Dfa:
    """Numbers within the bounds, in plain notation.

    Args:
        whole_digits: digits before the point, at most.
        places: digits after it, at most.
        significant: digits in all, at most.
        multiple: what must divide the number exactly.

    Raises:
        NumberTooFineError: the multiple is too fine.
    """
    if any(bound is not None and abs(bound) >= 10**whole_digits for bound in (bounds.low, bounds.high)):
        raise NumberTooFineError(f"bounds beyond {whole_digits} digits")
    step = 1
    if multiple is not None:
        finest = max(1, _places(multiple))
        if finest > places:
            raise NumberTooFineError(f"multiples of {multiple} do not fit {places} decimal places")
        places = finest
        step = int(multiple.scaleb(places))
    return _signed(bounds, whole_digits, places, step, significant)


def _places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _signed(bounds: Bounds, digits: int, places: int, step: int, significant: int) -> Dfa:
    parts = []
    positive = _magnitudes(bounds, digits, places, step, significant)
    if not positive.is_empty:
        parts.append(positive)
    negative = _magnitudes(bounds.mirrored(), digits, places, step, significant)
    without_zero = negative.difference(_zeros(places), 0x7F) if not negative.is_empty else EMPTY
    if not without_zero.is_empty:
        nfa = Nfa()
        start = nfa.state()
        parts.append(nfa.determinized(start, nfa.splice(nfa.literal(start, (_MINUS,)), without_zero)))
    return union(parts).minimized() if parts else EMPTY


def _zeros(places: int) -> Dfa:
    row: list[tuple[Edge, ...]] = [((_ZERO, _ZERO, 1),)]
    row.append(((_POINT, _POINT, 2),) if places else ())
    if places:
        row += [((_ZERO, _ZERO, 3),), ((_ZERO, _ZERO, 3),)]
    return Dfa(tuple(row), (False, True, False, True)[: len(row)], (-1,) * len(row))


def _magnitudes(bounds: Bounds, digits: int, places: int, step: int, significant: int) -> Dfa:
    """Spellings of the non-negative numbers within the bounds whose value is a multiple of `step` units."""
    shape = _shape(digits, places, significant)
    if bounds.low is not None and (bounds.low > 0 or (bounds.low == 0 and bounds.is_low_open)):
        shape = intersect(shape, _compared(bounds.low, digits, places, above=True, is_open=bounds.is_low_open))
    if bounds.high is not None:
        if bounds.high < 0 or (bounds.high == 0 and bounds.is_high_open):
            return EMPTY
        shape = intersect(shape, _compared(bounds.high, digits, places, above=False, is_open=bounds.is_high_open))
    if step > 1:
        try:
            shape = intersect(shape, _multiples(step, places), state_limit=_MOST_STATES)
        except StateLimitError as error:
            raise NumberTooFineError(f"a multiple of {step} units in the last place needs {error}") from error
    return shape


@functools.lru_cache(maxsize=256)
def _shape(digits: int, places: int, significant: int) -> Dfa:
    """Up to `digits` digits without a leading zero, then up to `places` decimals, `significant` digits in all."""
    edges: list[list[Edge]] = [[]]
    accepting = [False]

    def state(*, accepts: bool) -> int:
        edges.append([])
        accepting.append(accepts)
        return len(edges) - 1

    decimals = [state(accepts=True) for _ in range(min(places, significant))]
    for earlier, later in zip(decimals[1:], decimals, strict=False):
        edges[earlier].append((_ZERO, _NINE, later))
    points: dict[int, int] = {}
    zero = state(accepts=digits > 0)
    edges[0].append((_ZERO, _ZERO, zero))
    wholes = [(0, zero)]
    source = 0
    for count in range(1, min(digits, significant) + 1):
        target = state(accepts=True)
        edges[source].append((_ZERO + (count == 1), _NINE, target))
        wholes.append((count, target))
        source = target
    for count, member in wholes:
        room = min(len(decimals), significant - count)
        if room > 0:
            if room not in points:
                points[room] = state(accepts=False)
                edges[points[room]].append((_ZERO, _NINE, decimals[room - 1]))
            edges[member].insert(0, (_POINT, _POINT, points[room]))
    return trimmed([sorted(row) for row in edges], accepting, [-1] * len(edges))


def _compared(bound: Decimal, digits: int, places: int, *, above: bool, is_open: bool) -> Dfa:
    """Spellings (of the shape above) whose value is above or below the non-negative bound, digit by digit."""
    text = f"{bound:f}"
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0")
    fraction = fraction.rstrip("0")
    # States are (kind, position): whole digits are compared once their number is known, so count and first difference
    # go together.
    names: dict[tuple[str, int], int] = {("whole-equal", 0): 0}
    queue = [("whole-equal", 0)]
    edges: list[list[Edge]] = []
    accepting: list[bool] = []

    def name(key: tuple[str, int]) -> int:
        if key not in names:
            names[key] = len(queue)
            queue.append(key)
        return names[key]

    for kind, position in queue:
        row: list[Edge] = []
        verdict = _verdict(kind, position, whole, fraction)
        accepting.append(verdict > 0 if above else verdict < 0)
        if verdict == 0:
            accepting[-1] = not is_open
        for digit in range(10):
            following = _follow(kind, position, digit, whole, fraction, digits)
            if following is not None:
                row.append((_ZERO + digit, _ZERO + digit, name(following)))
        if kind.startswith("whole") and places:
            row.insert(0, (_POINT, _POINT, name(_at_point(kind, position, whole))))
        edges.append(row)
    return trimmed(edges, accepting, [-1] * len(edges))


def _follow(kind: str, position: int, digit: int, whole: str, fraction: str, digits: int) -> tuple[str, int] | None:
    if kind.startswith("whole"):
        if position == 0 and digit == 0 and kind == "whole-equal":
            return ("whole-zero", 1)
        if kind == "whole-zero" or position >= digits:
            return None
        relation = kind.removeprefix("whole-")
        if relation == "equal":
            expected = int(whole[position]) if position < len(whole) else -1
            relation = "equal" if digit == expected else ("less" if digit < expected else "more")
        return (f"whole-{relation}", min(position + 1, len(whole) + 1))
    if kind == "part-equal":
        expected = int(fraction[position]) if position < len(fraction) else 0
        if digit == expected:
            return ("part-equal", min(position + 1, len(fraction)))
        return ("part-less" if digit < expected else "part-more", 0)
    return (kind, 0)


def _relation(kind: str, position: int, whole: str) -> str:
    """How the whole part, as far as it is written, stands to the bound's."""
    if kind == "whole-zero":
        return "less" if whole else "equal"
    if position != len(whole):
        return "less" if position < len(whole) else "more"
    return kind.removeprefix("whole-")


def _at_point(kind: str, position: int, whole: str) -> tuple[str, int]:
    return (f"part-{_relation(kind, position, whole)}", 0)


def _verdict(kind: str, position: int, whole: str, fraction: str) -> int:
    """-1, 0 or 1: what is written so far is less than, equal to, or more than the bound."""
    if kind.startswith("whole"):
        relation, rest = _relation(kind, position, whole), fraction
    else:
        relation, rest = kind.removeprefix("part-"), fraction[position:]
    if relation == "equal" and rest:
        return -1
    return {"less": -1, "equal": 0, "more": 1}[relation]


@functools.lru_cache(maxsize=64)
def _multiples(step: int, places: int) -> Dfa:
    """Spellings whose value times 10^places is a multiple of `step`.

    What is written matters only by the digits that may still make a multiple of it; so remainders that lack the same
    digits are one state.

    Raises:
        StateLimitError: there are too many remainders.
    """
    most = max(places, len(str(step - 1)))
    names: dict[tuple[int, tuple[int | None, ...]], int] = {}
    queue: list[tuple[int, int]] = []
    edges: list[list[Edge]] = []
    accepting: list[bool] = []

    def name(rest: int, decimals: int) -> int | None:
        left = places - max(decimals, 0)
        lacking = tuple(_lacking(rest, count, step) for count in (range(left, most + 1) if decimals < 0 else (left,)))
        if decimals >= 0 and lacking == (None,):
            return None
        if (decimals, lacking) not in names:
            if len(queue) >= _MOST_REMAINDERS:
                raise StateLimitError(f"more than {_MOST_REMAINDERS} states")
            names[decimals, lacking] = len(queue)
            queue.append((rest, decimals))
        return names[decimals, lacking]

    name(0, -1)
    for rest, decimals in queue:
        row: list[Edge] = []
        accepting.append(_lacking(rest, places - max(decimals, 0), step) == 0)
        if decimals < 0 and places and (target := name(rest, 0)) is not None:
            row.append((_POINT, _POINT, target))
        row += [
            (_ZERO + digit, _ZERO + digit, target)
            for digit in (range(10) if decimals < places else ())
            if (target := name((rest * 10 + digit) % step, decimals + (decimals >= 0))) is not None
        ]
        edges.append(row)
    return trimmed(edges, accepting, [-1] * len(edges))


def _lacking(rest: int, count: int, step: int) -> int | None:
    """The least number of `count` digits that makes a multiple of what leaves `rest`; None where there is none."""
    lacking = -rest * 10**count % step
    return lacking if lacking < 10**count else None
