"""From shapes to one automaton over bytes: objects in declared order, arrays, unions, bounded recursion.

The only spelling is compact JSON.  An object's declared properties come in their order, undeclared ones after them;
each value's states are tagged with the path of its field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pipeline.decoding.assembly import Assembly, labelled
from pipeline.decoding.automata import EMPTY, NO_TAG, Dfa, StateLimitError, intersect, union
from pipeline.decoding.jsontext import json_literal, json_string
from pipeline.decoding.normalize import Normalizer, RefusedError, node_key, words
from pipeline.decoding.numbers import NumberTooFineError
from pipeline.decoding.regex import TOP, any_string
from pipeline.decoding.shapes import Arr, Bool, Node, Null, Num, Obj, Shape, Str
from pipeline.decoding.spelling import booleans, json_in_string, number_language, quoted, string_language

__all__ = ["SPAN_SYMBOL", "Emitter", "SpanKind"]

_MAX_KEPT_LENGTH = 8192
"""Characters of a string up to which its greatest length is held; beyond, it is checked afterwards."""
_MAX_COPIES_STATES = 60_000
_ITEM = "[]"
_OTHERS = "*"


SPAN_SYMBOL = 256
"""Symbols from here on are no bytes: they stand for the content of an extractive field, by its kind."""


@dataclass(frozen=True, slots=True, eq=False)
class SpanKind:
    """One kind of extractive field.

    Attributes:
        settings: what the finder of candidates needs to know; `type` is `string`, `date`, `datetime`, `time`, `enum`,
            `integer` or `decimal`, and `listed` whether each candidate must be among the plain spellings.
        plain: the field's spellings if it were not extractive; a listed value outside of them is no candidate.
    """

    settings: Mapping[str, Any]
    plain: Dfa

    def is_same(self, other: SpanKind) -> bool:
        """Whether every document gives both the same candidates."""
        return (
            self.settings == other.settings
            and self.plain.edges == other.plain.edges
            and self.plain.accepting == other.plain.accepting
        )


@dataclass(slots=True)
class _Findings:
    """What was met on the way, by path."""

    notes: dict[str, list[str]] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)
    unrolled: dict[str, None] = field(default_factory=dict)


class Emitter:
    """Spells the nodes of one document.

    Args:
        normalizer: of the document.
        recursion_depth: how often a node may stand inside itself.
        any_depth: how deep values that the schema leaves open may nest; at 0, objects gain no undeclared properties.
        state_limit: states of one automaton, at most.
        is_lenient: note refusals and go on with null in their place (for lint), instead of raising.
        is_extractive: whether marked fields are filled from the document.
    """

    def __init__(
        self,
        normalizer: Normalizer,
        *,
        recursion_depth: int,
        any_depth: int,
        state_limit: int,
        is_lenient: bool = False,
        is_extractive: bool = True,
    ) -> None:
        self._normalizer = normalizer
        self._recursion_depth = recursion_depth
        self._any_depth = any_depth
        self._limit = state_limit
        self._is_lenient = is_lenient
        self._depths: dict[tuple[tuple[int, bool], ...], int] = {}
        self._recursive: set[tuple[tuple[int, bool], ...]] = set()
        self._is_extractive = is_extractive
        self.spans: list[SpanKind] = []
        self._memo: dict[object, Dfa] = {}
        self._tags: dict[tuple[str, ...], int] = {}
        self._paths: list[tuple[str, ...]] = []
        self.found = _Findings()
        self.is_cut_short = False
        """Whether anything would be different at a greater depth."""

    def tag(self, path: tuple[str, ...]) -> int:
        if path not in self._tags:
            self._tags[path] = len(self._paths)
            self._paths.append(path)
        return self._tags[path]

    @property
    def fields(self) -> tuple[str, ...]:
        """Path of each tag."""
        return tuple(_joined(path) for path in self._paths)

    def node(self, node: Node, path: tuple[str, ...]) -> Dfa:
        """The spellings of a node; `path` is only for what is said of it.

        Raises:
            RefusedError: a construct inside cannot be compiled.
            StateLimitError: the automaton is too large.
        """
        key = node_key(node)
        depth = self._depths.get(key, 0)
        if depth:
            self._recursive.add(key)
            if depth >= (self._recursion_depth if key else max(1, self._any_depth)):
                self.is_cut_short = True
                if key:
                    self.found.unrolled[_joined(path)] = None
                return EMPTY
        memo_key = (key, self._context())
        if memo_key in self._memo:
            self._note_again(node, path)
            return self._memo[memo_key]
        self._depths[key] = depth + 1
        try:
            made = self._shapes(node, path)
        finally:
            self._depths[key] = depth
        self._memo[(key, self._context())] = made
        return made

    def _context(self) -> frozenset[tuple[object, int]]:
        return frozenset((key, self._depths[key]) for key in self._recursive if self._depths.get(key, 0))

    def _shapes(self, node: Node, path: tuple[str, ...]) -> Dfa:
        try:
            shapes = self._normalizer.shapes(node)
            self._note(shapes, path)
            made = [self._shape(shape, path) for shape in shapes]
        except RefusedError as error:
            self.found.paths.setdefault(_joined(path), None)
            self.found.refusals.setdefault(_joined(path), str(error))
            if not self._is_lenient:
                raise
            return json_literal(b"null")
        kinds: dict[type, list[Dfa]] = {}
        for shape, dfa in zip(shapes, made, strict=True):
            if not dfa.is_empty:
                kinds.setdefault(type(shape), []).append(dfa)
        return union([union(alike) for alike in kinds.values()]) if kinds else EMPTY

    def _note(self, shapes: list[Shape], path: tuple[str, ...]) -> None:
        name = _joined(path)
        self.found.paths[name] = None
        for shape in shapes:
            for note in shape.notes:
                self._remark(name, note)

    def _note_again(self, node: Node, path: tuple[str, ...]) -> None:
        self._note(self._normalizer.shapes(node), path)

    def _remark(self, name: str, note: str) -> None:
        notes = self.found.notes.setdefault(name, [])
        if note not in notes:
            notes.append(note)

    def _shape(self, shape: Shape, path: tuple[str, ...]) -> Dfa:
        match shape:
            case Null():
                return json_literal(b"null")
            case Bool():
                return booleans(shape)
            case Num():
                return self._number(shape, path)
            case Str():
                return self._string(shape, path)
            case Arr():
                return self._array(shape, path)
            case Obj():
                return self._object(shape, path)

    def _span(self, span: SpanKind, *, is_quoted: bool) -> Dfa:
        """A place that the document fills: one symbol beyond the bytes, which stands for the content."""
        index = next((index for index, other in enumerate(self.spans) if other.is_same(span)), len(self.spans))
        if index == len(self.spans):
            self.spans.append(span)
        symbol = SPAN_SYMBOL + index
        hole = Dfa((((symbol, symbol, 1),), ()), (False, True), (NO_TAG, NO_TAG))
        return quoted(hole) if is_quoted else hole

    def _number(self, shape: Num, path: tuple[str, ...]) -> Dfa:
        if shape.span is not None and self._is_extractive:
            plain = self._number(replace(shape, span=None), path)
            kind = "integer" if shape.is_integer else "decimal"
            return self._span(SpanKind({**shape.span, "type": kind, "listed": True}, plain), is_quoted=False)
        try:
            return number_language(shape)
        except NumberTooFineError as error:
            self._remark(_joined(path), f"range and multiple: {error}")
            return number_language(Num(shape.is_integer))

    def _string(self, shape: Str, path: tuple[str, ...]) -> Dfa:
        if shape.span is not None and self._is_extractive:
            if shape.kind == "decimal":
                return EMPTY
            # The finder keeps to the length; the plain spellings say the rest.
            plain = self._string(replace(shape, span=None, least=0, most=None), path)
            settings = {
                **shape.span,
                "type": shape.kind,
                "min_length": shape.least,
                "max_length": shape.most,
                "values": list(shape.values),
                "listed": shape.language is not None,
            }
            return self._span(SpanKind(settings, plain), is_quoted=True)
        if shape.inner is not None:
            return json_in_string(self.node(shape.inner, path))
        if shape.least > _MAX_KEPT_LENGTH:
            raise RefusedError(f"at least {shape.least} characters are more than an automaton holds")
        most = shape.most
        if most is not None and most > _MAX_KEPT_LENGTH:
            self._remark(_joined(path), f"at most {most} characters")
            most = None
        try:
            return string_language(Str(shape.language, shape.least, most))
        except StateLimitError:
            self._remark(_joined(path), f"{shape.least} to {shape.most} characters together with the pattern")
            return string_language(Str(shape.language))

    # Arrays.

    def _array(self, shape: Arr, path: tuple[str, ...]) -> Dfa:
        items = [self.node(node, (*path, f"[{index}]")) for index, node in enumerate(shape.prefix)]
        may_go_on = shape.most is None or shape.most > len(items)
        rest = self.node(shape.rest, (*path, _ITEM)) if may_go_on else EMPTY
        least, most = self._item_bounds(shape, items, rest, path)
        if most is not None and least > most:
            return EMPTY
        # Items from `loop` on are alike and uncounted.
        loop = max(least, len(items), 1) if most is None else most
        assembly = Assembly(self._limit)
        after = [assembly.state() for _ in range(loop + 1)]
        end = assembly.state()
        first = assembly.literal(0, b"[")
        assembly.follow(first, after[0])
        for index in range(loop + 1):
            if index >= least:
                assembly.byte(after[index], 0x5D, end)
        for index in range(loop + (most is None)):
            item = items[index] if index < len(items) else rest
            if item.is_empty:
                break
            start = first if index == 0 else assembly.literal(after[index], b",")
            name = f"[{index}]" if index < len(items) else _ITEM
            for state, _ in assembly.graft([start], item, self.retag(name)):
                assembly.follow(state, after[min(index + 1, loop)])
        return assembly.finish([end])

    def _item_bounds(self, shape: Arr, items: list[Dfa], rest: Dfa, path: tuple[str, ...]) -> tuple[int, int | None]:
        least, most = shape.least, shape.most
        if rest.is_empty:
            most = len(items) if most is None else min(most, len(items))
        for index, item in enumerate(items):
            if item.is_empty:
                most = index if most is None else min(most, index)
                break
        size = max(rest.state_count, 1)
        if least * size > _MAX_COPIES_STATES:
            raise RefusedError(f"at least {least} items of this size are more than an automaton holds")
        if most is not None and (most - len(items)) * size > _MAX_COPIES_STATES:
            self._remark(_joined(path), f"at most {most} items")
            most = None
        return least, most

    def retag(self, name: str) -> Callable[[int], int]:
        """How the tags of a value are renamed when it becomes the property or item `name`."""
        mapped: dict[int, int] = {}

        def retag(tag: int) -> int:
            if tag not in mapped:
                mapped[tag] = self.tag((name,) if tag == NO_TAG else (name, *self._paths[tag]))
            return mapped[tag]

        return retag

    # Objects.

    def _object(self, shape: Obj, path: tuple[str, ...]) -> Dfa:
        declared = shape.declared
        values = {name: self.node(shape.node_for(name), (*path, name)) for name in declared}
        if any(values[name].is_empty for name in shape.required):
            return EMPTY
        names = [name for name in declared if not values[name].is_empty and self._may_be_key(shape, name)]
        if any(name not in names for name in shape.required):
            return EMPTY
        others = self._others(shape, declared, path)
        if others and shape.least > max(1, len(shape.required)):
            self._remark(_joined(path), f"at least {shape.least} different keys")
        return _ObjectSpelling(self, shape, names, values, others, self._limit).build()

    def _may_be_key(self, shape: Obj, name: str) -> bool:
        encoded = json_string(words([name]))
        return all(not intersect(encoded, self._keys(node, ())).is_empty for node in shape.names)

    def _keys(self, node: Node, path: tuple[str, ...]) -> Dfa:
        """Keys that a node of names allows, as JSON strings; those that are numbers stand between quotes."""
        parts = []
        for shape in self._normalizer.shapes(node):
            match shape:
                case Str():
                    parts.append(self._string(shape, path))
                case Num():
                    parts.append(quoted(number_language(shape)))
                case Bool():
                    parts.append(quoted(booleans(shape)))
            if path:
                self._note([shape], path)
        return union(parts) if parts else EMPTY

    def _others(self, shape: Obj, declared: tuple[str, ...], path: tuple[str, ...]) -> list[tuple[Dfa, Dfa]]:
        """Regions of undeclared keys, each with the values it allows."""
        patterns = [pattern for layer in shape.layers for pattern, _ in layer.patterns]
        if len(patterns) > 6:
            raise RefusedError(f"{len(patterns)} patterns of property names; at most 6 can be told apart")
        undeclared = words(list(declared)).complement(TOP) if declared else any_string()
        named = [self._keys(node, (*path, _OTHERS)) for node in shape.names]
        regions = []
        for choice in product((True, False), repeat=len(patterns)):
            keys = undeclared
            for pattern, is_matched in zip(patterns, choice, strict=True):
                keys = intersect(keys, pattern if is_matched else pattern.complement(TOP))
            if keys.is_empty:
                continue
            node = self._other_node(shape, choice)
            if any(term.schema is False and term.is_positive for term in node):
                continue
            if not node and not patterns and not named and declared and self._any_depth == 0:
                self.is_cut_short = True
                continue
            value = self.node(node, (*path, _OTHERS))
            if value.is_empty:
                continue
            encoded = json_string(keys.minimized())
            for name in named:
                encoded = intersect(encoded, name)
            if not encoded.is_empty:
                regions.append((encoded, value))
        return regions

    @staticmethod
    def _other_node(shape: Obj, choice: tuple[bool, ...]) -> Node:
        terms: list[Node] = []
        position = 0
        for layer in shape.layers:
            matched = [node for offset, (_, node) in enumerate(layer.patterns) if choice[position + offset]]
            position += len(layer.patterns)
            terms += matched or [layer.additional]
        return tuple(term for node in terms for term in node)


class _ObjectSpelling:
    """One object: slots between properties, counted only as far as the bounds need it."""

    def __init__(
        self, emitter: Emitter, shape: Obj, names: list[str], values: Mapping[str, Dfa],
        others: list[tuple[Dfa, Dfa]], state_limit: int,
    ) -> None:  # fmt: skip
        self._emitter = emitter
        self._names = names
        self._values = values
        self._required = frozenset(shape.required)
        self._others = others
        least = shape.least if shape.least > len(self._required) else 0
        self._least, self._most = least, shape.most
        self._cap = least if shape.most is None else shape.most
        self._assembly = Assembly(state_limit)
        self._end = self._assembly.state()
        self._slots: dict[tuple[int, int, bool], int] = {}
        self._entries: dict[tuple[int, int], int] = {}
        self._queue: list[tuple[int, int, bool]] = []

    def build(self) -> Dfa:
        self._assembly.follow(self._assembly.literal(0, b"{"), self._slot(0, 0, is_first=True))
        for index, count, is_first in self._queue:
            self._fill(index, count, is_first=is_first)
        return self._assembly.finish([self._end])

    def _slot(self, index: int, count: int, *, is_first: bool) -> int:
        """The state before property `index`, with `count` properties written."""
        key = (index, count, is_first)
        if key not in self._slots:
            self._slots[key] = self._assembly.state()
            self._queue.append(key)
        return self._slots[key]

    def _fill(self, index: int, count: int, *, is_first: bool) -> None:
        slot = self._slots[index, count, is_first]
        choices: list[tuple[Dfa, int]] = []
        is_open = True
        if self._most is None or count < self._most:
            for position in range(index, len(self._names)):
                choices.append((json_string(words([self._names[position]])), position))
                if self._names[position] in self._required:
                    is_open = False
                    break
            if is_open:
                choices += [(keys, len(self._names) + region) for region, (keys, _) in enumerate(self._others)]
        else:
            is_open = not any(name in self._required for name in self._names[index:])
        if is_open and count >= self._least:
            self._assembly.byte(slot, 0x7D, self._end)
        if not choices:
            return
        keys = labelled(choices)
        start = slot if is_first else self._assembly.literal(slot, b",")
        for state, inner in self._assembly.graft([start], keys, lambda _: NO_TAG):
            self._assembly.byte(state, 0x3A, self._entry(keys.tags[inner], min(count + 1, self._cap)))

    def _entry(self, label: int, count: int) -> int:
        """Where the value of a property begins; one copy for each count."""
        key = (label, count)
        if key in self._entries:
            return self._entries[key]
        is_declared = label < len(self._names)
        name = self._names[label] if is_declared else _OTHERS
        value = self._values[name] if is_declared else self._others[label - len(self._names)][1]
        entry = self._entries[key] = self._assembly.state()
        after = self._slot(label + 1 if is_declared else len(self._names), count, is_first=False)
        for state, _ in self._assembly.graft([entry], value, self._emitter.retag(name)):
            self._assembly.follow(state, after)
        return entry


def _joined(path: tuple[str, ...]) -> str:
    text = ""
    for part in path:
        text += part if part.startswith("[") or not text else f".{part}"
    return text or "(record)"
