"""Regular expressions to automata over code points.

A pattern searches, as JSON Schema and Pydantic both define it: it is unanchored unless it says otherwise.  Look-ahead
outside of groups is an intersection; inside them it is refused.
"""

from __future__ import annotations

import functools

from pipeline.decoding.automata import EMPTY, Dfa, intersect
from pipeline.decoding.char_classes import Dialect
from pipeline.decoding.code_points import ANY_CHAR, TOP
from pipeline.decoding.nfa import Nfa, union
from pipeline.decoding.regex_parser import PatternError, parse_pattern
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

__all__ = ["compile_pattern", "full_match"]


def _attach(nfa: Nfa, state: int, node: Expression) -> int:
    """Appends the node; the state after it."""
    match node:
        case CharSet(ranges):
            end = nfa.state()
            for low, high in ranges:
                nfa.edge(state, low, high, end)
            return end
        case Mark(symbol):
            return nfa.literal(state, (symbol,))
        case Concatenation(parts):
            for part in parts:
                state = _attach(nfa, state, part)
            return state
        case Alternation(parts):
            end = nfa.state()
            for part in parts:
                branch = nfa.state()
                nfa.link(state, branch)
                nfa.link(_attach(nfa, branch, part), end)
            return end
        case Repetition(part, least, most):
            return _attach_repeat(nfa, state, part, least, most)
        case LookAhead():
            raise PatternError("a look-ahead inside a group is not supported")


def _attach_repeat(nfa: Nfa, state: int, part: Expression, least: int, most: int | None) -> int:
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


def _dfa_of(node: Expression) -> Dfa:
    nfa = Nfa(state_limit=200_000)
    start = nfa.state()
    end = _attach(nfa, start, node)
    return nfa.determinized(start, end)


_STAR = Repetition(CharSet(ANY_CHAR), 0, None)
_PREFIX = Alternation((Concatenation(()), Concatenation((Repetition(Mark(BEGIN), 1, None), _STAR))))
_SUFFIX = Alternation((Concatenation(()), Concatenation((_STAR, Repetition(Mark(END), 1, None)))))


def _language(node: Expression) -> Dfa:
    """Words of `begin text end` that hold a match."""
    if isinstance(node, Alternation):
        return union([_language(part) for part in node.parts])
    parts = node.parts if isinstance(node, Concatenation) else (node,)
    tail: tuple[Expression, ...] = (_SUFFIX,)
    rest: Dfa | None = None
    for part in reversed((_PREFIX, *parts)):
        if isinstance(part, LookAhead):
            rest = _joined(tail, rest)
            ahead = _dfa_of(Concatenation((part.part, _SUFFIX)))
            rest = intersect(rest, ahead if part.is_positive else ahead.complement(END))
            tail = ()
        else:
            tail = (part, *tail)
    return _joined(tail, rest)


def _joined(nodes: tuple[Expression, ...], rest: Dfa | None) -> Dfa:
    nfa = Nfa(state_limit=200_000)
    start = nfa.state()
    end = _attach(nfa, start, Concatenation(nodes))
    if rest is not None:
        end = nfa.splice(end, rest)
    return nfa.determinized(start, end)


@functools.lru_cache(maxsize=512)
def compile_pattern(pattern: str, dialect: Dialect = "rust") -> Dfa:
    """The strings in which `pattern` is found, as a minimal automaton over code points.

    Raises:
        PatternError: the pattern cannot be held exactly, or is no regular expression.
    """
    node = parse_pattern(pattern, dialect)
    # Without a look-ahead a mark may stand at a place several times over; with one, exactly one is read.
    marks = (
        [Mark(BEGIN), Mark(END)] if _holds_look(node) else [Repetition(Mark(mark), 1, None) for mark in (BEGIN, END)]
    )
    wrapped = _dfa_of(Concatenation((marks[0], _STAR, marks[1])))
    return _without_marks(intersect(_language(node), wrapped)).minimized()


def _holds_look(node: Expression) -> bool:
    match node:
        case LookAhead(part, _):
            if _holds_begin(part):
                raise PatternError("a look-ahead that asserts the beginning is not supported")
            return True
        case Concatenation(parts) | Alternation(parts):
            found = [_holds_look(part) for part in parts]  # all of them, for each may be refused
            if isinstance(node, Concatenation) and True in found:
                later = parts[found.index(True) + 1 :]
                if any(map(_holds_begin, later)):
                    raise PatternError("a look-ahead before the beginning is not supported; write `^` first")
            return any(found)
    return False


def _holds_begin(node: Expression) -> bool:
    match node:
        case Mark(symbol):
            return symbol == BEGIN
        case Concatenation(parts) | Alternation(parts):
            return any(_holds_begin(part) for part in parts)
        case Repetition(part, _, _):
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
    return _dfa_of(parse_pattern(pattern, "rust")).minimized()
