"""Owns what can be kept of a JSON text that was cut off: complete values only, never a guess at the rest.

A value is complete when its end was seen: a number only with the character after it, an object or list only with its
bracket.  Nothing of an incomplete list item is kept.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

__all__ = ["Remainder", "complete_prefixes"]

_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null', re.DOTALL)
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left of a cut-off text: a whole JSON text, and the container that lost its end."""

    text: str
    cut_at: tuple[str, ...]
    """The keys that lead to it; none for the root."""


@dataclass(slots=True)
class _Open:
    """A container whose closing bracket was not seen."""

    closer: str
    keep_to: int
    """Where its last complete member ends."""
    members: int = 0
    key: str = ""
    """The key read last."""


def complete_prefixes(text: str) -> tuple[Remainder, ...]:
    """Whole JSON texts made from a cut-off one, the one that keeps most first; empty when nothing can be kept.

    Each is the text up to the last complete member of one open container, with the open containers closed.  The first
    goes as deep as it may: into nested objects, and into a list only for its whole items.  Later ones drop the
    innermost incomplete container as a whole, and so on outwards.
    """
    opened = _open_containers(text)
    deepest = next((index for index, item in enumerate(opened) if item.closer == "]"), len(opened) - 1)
    found = []
    for index in range(deepest, -1, -1):
        if opened[index].members:
            closers = "".join(item.closer for item in reversed(opened[: index + 1]))
            path = tuple(item.key for item in opened[:index])
            found.append(Remainder(text[: opened[index].keep_to] + closers, path))
    return tuple(found)


def _open_containers(text: str) -> list[_Open]:
    """The containers still open where the text ends, outermost first; stops where the text is no JSON."""
    stack: list[_Open] = []
    position = 0
    expects_key = False
    while position < len(text):
        character = text[position]
        if character in "{[":
            stack.append(_Open("}" if character == "{" else "]", position + 1))
            expects_key = character == "{"
        elif character in "}]":
            if not stack or stack.pop().closer != character:
                return []
            _count_member(stack, position + 1)
        elif character == ",":
            expects_key = bool(stack) and stack[-1].closer == "}"
        elif character not in _SPACE and character != ":":
            scalar = _SCALAR.match(text, position)
            if scalar is None or (scalar.end() == len(text) and scalar[0][0] in "-0123456789"):
                return stack
            position = scalar.end()
            if expects_key:
                stack[-1].key = _key(scalar[0])
                expects_key = False
            else:
                _count_member(stack, position)
            continue
        position += 1
    return stack


def _key(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # an escape that is none: nothing of this text can be kept
        return text


def _count_member(stack: list[_Open], end: int) -> None:
    if stack:
        stack[-1].keep_to = end
        stack[-1].members += 1
