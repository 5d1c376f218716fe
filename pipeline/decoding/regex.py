"""Regular expressions to automata over code points.

Reads what JSON Schema (ECMA 262) and Pydantic (Rust's `regex`) share, and says by name what it cannot hold: back
references, word boundaries, look-behind, and look-ahead inside groups.  A pattern searches, as both define it: it is
unanchored unless it says otherwise.  `\\d` is ASCII in both readings, since that is sound in either; in negated classes
the Rust reading leaves out whatever Unicode might count as a member.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pipeline.decoding.automata import EMPTY, Dfa, Nfa, intersect, union

__all__ = ["ANY_CHAR", "TOP", "PatternError", "Ranges", "any_string", "compile_pattern", "full_match", "invert"]

Ranges = tuple[tuple[int, int], ...]
"""Sorted, disjoint intervals of code points."""
Dialect = Literal["rust", "ecma"]

TOP = sys.maxunicode
_BEGIN, _END = TOP + 1, TOP + 2
ANY_CHAR: Ranges = ((0, 0xD7FF), (0xE000, TOP))
_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
_MAX_REPEAT = 5000


class PatternError(Exception):
    """The pattern is not one that an automaton can hold exactly; the message says which part."""


def normalized(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted, disjoint, and without surrogates."""
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return tuple((low, high) for low, high in merged)


def invert(ranges: Ranges) -> Ranges:
    """Every other character."""
    inverted = []
    position = 0
    for low, high in (*normalized((*ranges, (0xD800, 0xDFFF))), (TOP + 1, TOP + 1)):
        if position < low:
            inverted.append((position, low - 1))
        position = high + 1
    return tuple(inverted)


@dataclass(frozen=True, slots=True)
class _Set:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Cat:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Alt:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Rep:
    part: _Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class _Mark:
    symbol: int


@dataclass(frozen=True, slots=True)
class _Look:
    part: _Node
    is_positive: bool


_Node = _Set | _Cat | _Alt | _Rep | _Mark | _Look


class _Parser:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.at = 0
        self.dialect = dialect
        self.ignore_case = False

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, expected: str = "") -> str:
        char = self.peek()
        if not char or (expected and char != expected):
            raise PatternError(f"{self.text!r} is not a regular expression (at character {self.at})")
        self.at += 1
        return char

    def parse(self) -> _Node:
        if self.peek(4) == "(?i)":
            self.at += 4
            self.ignore_case = True
        node = self.alternation()
        if self.at < len(self.text):
            raise PatternError(f"{self.text!r} has an unopened ')' at character {self.at}")
        return node

    def alternation(self) -> _Node:
        parts = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else _Alt(tuple(parts))

    def sequence(self) -> _Node:
        parts: list[_Node] = []
        while self.peek() and self.peek() not in "|)":
            parts.append(self.quantified())
        return parts[0] if len(parts) == 1 else _Cat(tuple(parts))

    def quantified(self) -> _Node:
        node = self.atom()
        while True:
            bounds = self.bounds()
            if bounds is None:
                return node
            if isinstance(node, _Look | _Mark):
                raise PatternError(f"{self.text!r} repeats an assertion")
            least, most = bounds
            if (most is not None and most < least) or max(least, most or 0) > _MAX_REPEAT:
                raise PatternError(f"{self.text!r} repeats {least} to {most} times")
            node = _Rep(node, least, most)
            if self.peek() == "?":
                self.at += 1
            elif self.peek() == "+":
                raise PatternError(f"{self.text!r} has a possessive quantifier")

    def bounds(self) -> tuple[int, int | None] | None:
        char = self.peek()
        if char and char in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        if char != "{":
            return None
        close = self.text.find("}", self.at)
        body = self.text[self.at + 1 : close] if close > 0 else ""
        low, comma, high = body.partition(",")
        if not low.isdecimal() or not (high.isdecimal() or not high):
            if self.dialect == "rust":
                raise PatternError(f"{self.text!r} has a bare '{{'")
            return None
        self.at = close + 1
        return int(low), (int(high) if high else None) if comma else int(low)

    def atom(self) -> _Node:
        char = self.take()
        match char:
            case "(":
                return self.group()
            case "[":
                return _Set(self.char_class())
            case ".":
                return _Set(invert(((10, 10),) if self.dialect == "rust" else ((10, 10), (13, 13), (0x2028, 0x2029))))
            case "^":
                return _Mark(_BEGIN)
            case "$":
                return _Mark(_END)
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                raise PatternError(f"{self.text!r} repeats nothing at character {self.at - 1}")
        return self.char(ord(char))

    def char(self, point: int) -> _Node:
        return _Set(self.folded(((point, point),)))

    def folded(self, ranges: Ranges) -> Ranges:
        if not self.ignore_case:
            return ranges
        if sum(high - low for low, high in ranges) > 4096:
            raise PatternError(f"{self.text!r} ignores case over a large class")
        points = {ord(c) for low, high in ranges for p in range(low, high + 1) for c in _cases(chr(p))}
        return normalized((point, point) for point in points)

    def group(self) -> _Node:
        if self.peek() != "?":
            node = self.alternation()
        elif self.peek(2) in ("?=", "?!"):
            is_positive = self.peek(2) == "?="
            self.at += 2
            node = _Look(self.alternation(), is_positive)
        elif self.peek(2) == "?:":
            self.at += 2
            node = self.alternation()
        elif (self.peek(2) == "?<" and self.peek(3)[2:] not in ("=", "!")) or self.peek(3) == "?P<":
            self.at = self.text.find(">", self.at) + 1
            node = self.alternation()
        else:
            raise PatternError(f"{self.text!r} has a group (?{self.peek(2)[1:]}...) that is not supported")
        self.take(")")
        return node

    def escape(self) -> _Node:
        char = self.take()
        if char in "bB" or (char.isdecimal() and char != "0") or char in "kG":
            raise PatternError(f"{self.text!r} uses \\{char}, which no finite automaton holds exactly")
        if char in "AzZ" and self.dialect == "rust":
            return _Mark(_BEGIN if char == "A" else _END)
        ranges = self.class_escape(char)
        return _Set(ranges) if ranges is not None else self.char(self.char_escape(char))

    def class_escape(self, char: str) -> Ranges | None:
        base = {"d": _DIGIT, "w": _WORD, "s": self.space()}.get(char.lower())
        if char in "pP" and self.peek():
            return self.property_class(negated=char == "P")
        if base is None:
            return None
        if char.islower():
            return base
        return self.negated_class(char.lower(), base)

    def space(self) -> Ranges:
        if self.dialect == "rust":
            return _SPACE
        wide = ((0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F))
        return normalized((*_SPACE, *wide, (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)))

    def negated_class(self, name: str, base: Ranges) -> Ranges:
        if self.dialect == "ecma":
            return invert(base)
        # What is unassigned here may be a member in another version of Unicode.
        unicode = {"d": ("Nd",), "w": ("L", "M", "N", "Pc", "Cf", "So"), "s": ("Z", "Cc")}[name] + ("Cn", "Co")
        return invert(normalized((*base, *(r for category in unicode for r in _category(category) if r[1] > 0x7F))))

    def property_class(self, *, negated: bool) -> Ranges:
        if self.peek() == "{":
            close = self.text.find("}", self.at)
            name = self.text[self.at + 1 : close]
            self.at = close + 1
        else:
            name = self.take()
        name = name.removeprefix("gc=").removeprefix("General_Category=").removeprefix("^")
        name = {"Letter": "L", "Number": "N", "Punctuation": "P", "Uppercase_Letter": "Lu"}.get(name, name)
        ranges = _category(name)
        if not ranges:
            raise PatternError(f"{self.text!r} uses the property \\p{{{name}}}, which is not supported")
        return invert(ranges) if negated else ranges

    def char_escape(self, char: str) -> int:
        simple = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0, "a": 7, "e": 27}
        if char in simple:
            return simple[char]
        if char in "xu":
            if self.peek() == "{":
                close = self.text.find("}", self.at)
                digits, self.at = self.text[self.at + 1 : close], close + 1
            else:
                length = 2 if char == "x" else 4
                digits, self.at = self.peek(length), self.at + length
            try:
                return int(digits, 16)
            except ValueError:
                raise PatternError(f"{self.text!r} has a bad \\{char} escape") from None
        if char == "c":
            return ord(self.take()) % 32
        if char.isalpha():
            raise PatternError(f"{self.text!r} uses \\{char}, which is not supported")
        return ord(char)

    def char_class(self) -> Ranges:
        negated = self.peek() == "^"
        if negated:
            self.at += 1
        ranges: list[tuple[int, int]] = []
        is_first = True
        while self.peek() != "]" or (is_first and self.dialect == "rust"):
            if (
                self.peek(2) in ("&&", "--", "~~")
                or self.peek(2) == "[:"
                or (self.peek() == "[" and self.dialect == "rust")
            ):
                raise PatternError(f"{self.text!r} nests or combines character classes")
            ranges.extend(self.class_item(negated=negated))
            is_first = False
        self.at += 1
        found = self.folded(normalized(ranges))
        return invert(found) if negated else found

    def class_item(self, *, negated: bool) -> Ranges:
        low = self.class_char(negated=negated)
        if isinstance(low, tuple):
            return low
        if self.peek() == "-" and self.peek(2)[1:] not in ("", "]"):
            self.at += 1
            high = self.class_char(negated=negated)
            if isinstance(high, tuple):
                return normalized((*high, (low, low), (0x2D, 0x2D)))
            if high < low:
                raise PatternError(f"{self.text!r} has a range that falls")
            return ((low, high),)
        return ((low, low),)

    def class_char(self, *, negated: bool) -> Ranges | int:
        char = self.take()
        if char != "\\":
            return ord(char)
        char = self.take()
        if char == "b":
            return 8
        if char == "-":
            return 0x2D
        ranges = self.class_escape(char)
        if ranges is None:
            return self.char_escape(char)
        if negated and self.dialect == "rust" and char in "dws":
            return invert(self.negated_class(char, ranges))
        return ranges


def _cases(char: str) -> set[str]:
    return {c for c in (char, char.lower(), char.upper()) if len(c) == 1}


@functools.cache
def _category(prefix: str) -> Ranges:
    """Code points whose Unicode general category starts with `prefix`; empty where there is none."""
    ranges: list[list[int]] = []
    for point in range(TOP + 1):
        if unicodedata.category(chr(point)).startswith(prefix) and not 0xD800 <= point <= 0xDFFF:
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return tuple((low, high) for low, high in ranges)


def _attach(nfa: Nfa, state: int, node: _Node) -> int:
    """Appends the node; the state after it."""
    match node:
        case _Set(ranges):
            end = nfa.state()
            for low, high in ranges:
                nfa.edge(state, low, high, end)
            return end
        case _Mark(symbol):
            return nfa.literal(state, (symbol,))
        case _Cat(parts):
            for part in parts:
                state = _attach(nfa, state, part)
            return state
        case _Alt(parts):
            end = nfa.state()
            for part in parts:
                branch = nfa.state()
                nfa.link(state, branch)
                nfa.link(_attach(nfa, branch, part), end)
            return end
        case _Rep(part, least, most):
            return _attach_repeat(nfa, state, part, least, most)
        case _Look():
            raise PatternError("a look-ahead inside a group is not supported")


def _attach_repeat(nfa: Nfa, state: int, part: _Node, least: int, most: int | None) -> int:
    for _ in range(least):
        state = _attach(nfa, state, part)
    end = nfa.state()
    nfa.link(state, end)
    if most is None:
        loop = nfa.state()
        nfa.link(state, loop)
        after = _attach(nfa, loop, part)
        nfa.link(after, loop)
        nfa.link(after, end)
    else:
        for _ in range(most - least):
            state = _attach(nfa, state, part)
            nfa.link(state, end)
    return end


def _dfa_of(node: _Node) -> Dfa:
    nfa = Nfa(state_limit=200_000)
    start = nfa.state()
    end = _attach(nfa, start, node)
    return nfa.determinized(start, end)


_STAR = _Rep(_Set(ANY_CHAR), 0, None)
_PREFIX = _Alt((_Cat(()), _Cat((_Rep(_Mark(_BEGIN), 1, None), _STAR))))
_SUFFIX = _Alt((_Cat(()), _Cat((_STAR, _Rep(_Mark(_END), 1, None)))))


def _language(node: _Node) -> Dfa:
    """Words of `begin text end` that hold a match."""
    if isinstance(node, _Alt):
        return union([_language(part) for part in node.parts])
    parts = node.parts if isinstance(node, _Cat) else (node,)
    tail: tuple[_Node, ...] = (_SUFFIX,)
    rest: Dfa | None = None
    for part in reversed((_PREFIX, *parts)):
        if isinstance(part, _Look):
            rest = _joined(tail, rest)
            ahead = _dfa_of(_Cat((part.part, _SUFFIX)))
            rest = intersect(rest, ahead if part.is_positive else ahead.complement(_END))
            tail = ()
        else:
            tail = (part, *tail)
    return _joined(tail, rest)


def _joined(nodes: tuple[_Node, ...], rest: Dfa | None) -> Dfa:
    nfa = Nfa(state_limit=200_000)
    start = nfa.state()
    end = _attach(nfa, start, _Cat(nodes))
    if rest is not None:
        end = nfa.splice(end, rest)
    return nfa.determinized(start, end)


def _unwrapped(node: _Node) -> _Node:
    while isinstance(node, _Cat) and len(node.parts) == 1:
        node = node.parts[0]
    return node


@functools.lru_cache(maxsize=512)
def compile_pattern(pattern: str, dialect: Dialect = "rust") -> Dfa:
    """The strings in which `pattern` is found, as a minimal automaton over code points.

    Raises:
        PatternError: the pattern cannot be held exactly, or is no regular expression.
    """
    node = _unwrapped(_Parser(pattern, dialect).parse())
    # Without a look-ahead a mark may stand at a place several times over; with one, exactly one is read.
    marks = (
        [_Mark(_BEGIN), _Mark(_END)] if _holds_look(node) else [_Rep(_Mark(mark), 1, None) for mark in (_BEGIN, _END)]
    )
    wrapped = _dfa_of(_Cat((marks[0], _STAR, marks[1])))
    return _without_marks(intersect(_language(node), wrapped)).minimized()


def _holds_look(node: _Node) -> bool:
    match node:
        case _Look(part, _):
            if _holds_begin(part):
                raise PatternError("a look-ahead that asserts the beginning is not supported")
            return True
        case _Cat(parts) | _Alt(parts):
            found = [_holds_look(part) for part in parts]  # all of them, for each may be refused
            return any(found)
    return False


def _holds_begin(node: _Node) -> bool:
    match node:
        case _Mark(symbol):
            return symbol == _BEGIN
        case _Cat(parts) | _Alt(parts):
            return any(_holds_begin(part) for part in parts)
        case _Rep(part, _, _):
            return _holds_begin(part)
    return False


def _without_marks(dfa: Dfa) -> Dfa:
    """The same language with the begin and end marks taken off."""
    if dfa.is_empty:
        return EMPTY
    nfa = Nfa()
    states = [nfa.state() for _ in range(dfa.state_count)]
    end = nfa.state()
    for state, row in enumerate(dfa.edges):
        for low, high, target in row:
            if high <= TOP:
                nfa.edge(states[state], low, high, states[target])
            else:
                nfa.link(states[state], states[target])
        if dfa.accepting[state]:
            nfa.link(states[state], end)
    return nfa.determinized(states[0], end)


@functools.lru_cache(maxsize=512)
def full_match(pattern: str) -> Dfa:
    """The strings that `pattern` matches whole; for the formats of this package, which are written in it."""
    return _dfa_of(_Parser(pattern, "rust").parse()).minimized()


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
