"""Regular expressions read: from the text of a pattern to its syntax tree.

Reads what JSON Schema (ECMA 262) and Pydantic (Rust's `regex`) share, and says by name what an automaton cannot hold:
back references, word boundaries, look-behind.
"""

from __future__ import annotations

from pipeline.decoding.char_classes import Dialect, alike, category, negated_shorthand, shorthand, widened
from pipeline.decoding.code_points import Ranges, invert, normalized
from pipeline.decoding.regex_tree import (
    BEGIN,
    END,
    Alternation,
    CharSet,
    Concatenation,
    Expression,
    LookAhead,
    Mark,
    Repetition,
)

__all__ = ["PatternError", "parse_pattern"]

_MAX_REPEAT = 5000


class PatternError(Exception):
    """The pattern is not one that an automaton can hold exactly; the message says which part."""


def parse_pattern(pattern: str, dialect: Dialect) -> Expression:
    """The syntax tree of a pattern.

    Raises:
        PatternError: it is no regular expression, or has a part that no automaton holds exactly.
    """
    return _Parser(pattern, dialect).parse()


class _Parser:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.at = 0
        self.dialect = dialect
        self.ignore_case = False
        self.is_ruled_out = False
        """Whether what is read must not follow: then a class holds whatever some reading takes for a member."""
        self.depth = 0
        """Of groups, counted from a look-ahead that rules out."""

    def peek(self, length: int = 1) -> str:
        return self.text[self.at : self.at + length]

    def take(self, expected: str = "") -> str:
        char = self.peek()
        if not char or (expected and char != expected):
            raise PatternError(f"{self.text!r} is not a regular expression (at character {self.at})")
        self.at += 1
        return char

    def until(self, close: str) -> str:
        """What stands from here to `close`, which is passed over."""
        end = self.text.find(close, self.at)
        if end < 0:
            raise PatternError(f"{self.text!r} is not a regular expression: nothing closes character {self.at}")
        found, self.at = self.text[self.at : end], end + 1
        return found

    def parse(self) -> Expression:
        if self.peek(4) == "(?i)":
            self.at += 4
            self.ignore_case = True
        node = self.alternation()
        if self.at < len(self.text):
            raise PatternError(f"{self.text!r} has an unopened ')' at character {self.at}")
        return node

    def alternation(self) -> Expression:
        parts = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def sequence(self) -> Expression:
        parts: list[Expression] = []
        while self.peek() and self.peek() not in "|)":
            parts.append(self.quantified())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def quantified(self) -> Expression:
        node = self.atom()
        while True:
            bounds = self.bounds()
            if bounds is None:
                return node
            if isinstance(node, LookAhead | Mark):
                raise PatternError(f"{self.text!r} repeats an assertion")
            least, most = bounds
            if (most is not None and most < least) or max(least, most or 0) > _MAX_REPEAT:
                raise PatternError(f"{self.text!r} repeats {least} to {most} times")
            node = Repetition(node, least, most)
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

    def atom(self) -> Expression:
        char = self.take()
        match char:
            case "(":
                return self.group()
            case "[":
                return CharSet(self.char_class())
            case ".":
                return CharSet(
                    invert(((10, 10),) if self.dialect == "rust" else ((10, 10), (13, 13), (0x2028, 0x2029)))
                )
            case "^":
                return Mark(BEGIN)
            case "$":
                return self.end()
            case "\\":
                return self.escape()
            case "*" | "+" | "?":
                raise PatternError(f"{self.text!r} repeats nothing at character {self.at - 1}")
        return self.char(ord(char))

    def end(self) -> Expression:
        """Python's `$` stands before a last line feed, too, which matters where it is ruled out."""
        if not self.is_ruled_out or self.dialect == "ecma":
            return Mark(END)
        if self.depth or self.peek() not in "|)":
            raise PatternError(f"{self.text!r} goes on after a `$` that must not follow")
        return Concatenation((Repetition(CharSet(((10, 10),)), 0, 1), Mark(END)))

    def char(self, point: int) -> Expression:
        return CharSet(self.folded(((point, point),), is_ruled_out=self.is_ruled_out))

    def folded(self, ranges: Ranges, *, is_ruled_out: bool) -> Ranges:
        """The ranges in both cases; where they are ruled out, in every reading of what is the other case."""
        if not self.ignore_case:
            return ranges
        if sum(high - low for low, high in ranges) > 4096:
            raise PatternError(f"{self.text!r} ignores case over a large class")
        cases = alike if is_ruled_out else _cases
        points = {ord(c) for low, high in ranges for p in range(low, high + 1) for c in cases(chr(p))}
        return normalized((point, point) for point in points)

    def group(self) -> Expression:
        if self.peek(2) in ("?=", "?!"):
            return self.look_ahead()
        self.depth += 1
        if self.peek() != "?":
            node = self.alternation()
        elif self.peek(2) == "?:":
            self.at += 2
            node = self.alternation()
        elif (self.peek(2) == "?<" and self.peek(3)[2:] not in ("=", "!")) or self.peek(3) == "?P<":
            self.until(">")
            node = self.alternation()
        else:
            raise PatternError(f"{self.text!r} has a group (?{self.peek(2)[1:]}...) that is not supported")
        self.take(")")
        self.depth -= 1
        return node

    def look_ahead(self) -> Expression:
        is_positive = self.peek(2) == "?="
        self.at += 2
        around = self.is_ruled_out, self.depth
        if not is_positive:
            self.is_ruled_out, self.depth = not self.is_ruled_out, 0
        node = LookAhead(self.alternation(), is_positive)
        self.is_ruled_out, self.depth = around
        self.take(")")
        return node

    def escape(self) -> Expression:
        char = self.take()
        if char in "bB" or (char.isdecimal() and char != "0") or char in "kG":
            raise PatternError(f"{self.text!r} uses \\{char}, which no finite automaton holds exactly")
        if char in "<>" and self.dialect == "rust":
            raise PatternError(
                f"{self.text!r} uses \\{char}, a bound of words, which no finite automaton holds exactly"
            )
        if char in "AzZ" and self.dialect == "rust":
            return Mark(BEGIN if char == "A" else END)
        ranges = self.class_escape(char, is_ruled_out=self.is_ruled_out)
        return CharSet(ranges) if ranges is not None else self.char(self.char_escape(char))

    def class_escape(self, char: str, *, is_ruled_out: bool) -> Ranges | None:
        """The members of a class; no more than are sure to be, or no fewer than may be where they are ruled out."""
        base = shorthand(char.lower(), self.dialect)
        if char in "pP" and self.peek():
            return self.property_class(is_negated=char == "P", is_ruled_out=is_ruled_out)
        if base is None:
            return None
        others = negated_shorthand(base, char.lower(), self.dialect)
        if char.islower():
            return invert(others) if is_ruled_out else base
        return invert(base) if is_ruled_out else others

    def property_class(self, *, is_negated: bool, is_ruled_out: bool) -> Ranges:
        name = self.until("}")[1:] if self.peek() == "{" else self.take()
        name = name.removeprefix("gc=").removeprefix("General_Category=")
        name = {"Letter": "L", "Number": "N", "Punctuation": "P", "Uppercase_Letter": "Lu"}.get(name, name)
        ranges = category(name)
        if self.dialect == "rust" and (name in ("C", "Cn") or (self.ignore_case and (is_negated or is_ruled_out))):
            raise PatternError(
                f"{self.text!r} uses \\p{{{name}}}, whose members are not sure to be the same everywhere"
            )
        if not ranges:
            raise PatternError(f"{self.text!r} uses the property \\p{{{name}}}, which is not supported")
        if self.dialect == "rust" and is_negated != is_ruled_out:
            ranges = widened(ranges)
        return invert(ranges) if is_negated else ranges

    def char_escape(self, char: str) -> int:
        simple = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "0": 0, "a": 7, "e": 27}
        if char.isdecimal() and (char != "0" or self.peek().isdecimal()):
            raise PatternError(f"{self.text!r} uses \\{char}, which some read as an octal number")
        if char in simple:
            return simple[char]
        if char in "xu":
            if self.peek() == "{":
                digits = self.until("}")[1:]
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
        is_ruled_out = negated != self.is_ruled_out
        ranges: list[tuple[int, int]] = []
        is_first = True
        while self.peek() != "]" or (is_first and self.dialect == "rust"):
            if (
                self.peek(2) in ("&&", "--", "~~")
                or self.peek(2) == "[:"
                or (self.peek() == "[" and self.dialect == "rust")
            ):
                raise PatternError(f"{self.text!r} nests or combines character classes")
            ranges.extend(self.class_item(is_ruled_out=is_ruled_out))
            is_first = False
        self.at += 1
        found = self.folded(normalized(ranges), is_ruled_out=is_ruled_out)
        return invert(found) if negated else found

    def class_item(self, *, is_ruled_out: bool) -> Ranges:
        low = self.class_char(is_ruled_out=is_ruled_out)
        if isinstance(low, tuple):
            return low
        if self.peek() == "-" and self.peek(2)[1:] not in ("", "]"):
            self.at += 1
            high = self.class_char(is_ruled_out=is_ruled_out)
            if isinstance(high, tuple):
                return normalized((*high, (low, low), (0x2D, 0x2D)))
            if high < low:
                raise PatternError(f"{self.text!r} has a range that falls")
            return ((low, high),)
        return ((low, low),)

    def class_char(self, *, is_ruled_out: bool) -> Ranges | int:
        char = self.take()
        if char != "\\":
            return ord(char)
        char = self.take()
        if char == "b":
            return 8
        if char == "-":
            return 0x2D
        ranges = self.class_escape(char, is_ruled_out=is_ruled_out)
        return self.char_escape(char) if ranges is None else ranges


def _cases(char: str) -> set[str]:
    """The other case in every reading: what only one way leads to is none, as from U+0131 to `I`."""
    return {c for c in (char, char.lower(), char.upper()) if len(c) == 1 and c.casefold() == char.casefold()}
