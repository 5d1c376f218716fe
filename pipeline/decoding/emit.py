"""From shapes to one automaton over bytes: objects in declared order, arrays, unions, bounded recursion.

The only spelling is compact JSON.  An object's declared properties come in their order, undeclared ones after them;
each value's states are tagged with the path of its field.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from pipeline.decoding.automata import EMPTY, NO_TAG, Dfa, StateLimitError, intersect
from pipeline.decoding.code_points import TOP
from pipeline.decoding.containers import ITEM, OTHERS, array_language, object_language
from pipeline.decoding.effort import COUNTED_STATES, MOST_CHARACTERS, Effort
from pipeline.decoding.field_tags import FieldTags
from pipeline.decoding.findings import Findings
from pipeline.decoding.jsontext import json_literal, json_string
from pipeline.decoding.nfa import union
from pipeline.decoding.normalize import Normalizer, node_key
from pipeline.decoding.numbers import NumberTooFineError
from pipeline.decoding.open_values import open_value
from pipeline.decoding.refusals import RefusedError
from pipeline.decoding.shapes import Arr, Bool, Node, Null, Num, Obj, Shape, Str
from pipeline.decoding.span_symbols import SPAN_SYMBOL, SpanKind, check_spans
from pipeline.decoding.spelling import booleans, json_in_string, number_language, quoted, string_language
from pipeline.decoding.strings import any_string, words

__all__ = ["Emitter"]


class Emitter:
    """Spells the nodes of one document.

    Args:
        normalizer: of the document.
        effort: how far it goes.
        is_lenient: note refusals and go on with null in their place (for lint), instead of raising.
        is_extractive: whether marked fields are filled from the document.
    """

    def __init__(
        self,
        normalizer: Normalizer,
        effort: Effort,
        *,
        is_lenient: bool = False,
        is_extractive: bool = True,
    ) -> None:
        self._normalizer = normalizer
        self._effort = effort
        self._limit = effort.state_limit
        self._work = 0
        self._is_lenient = is_lenient
        self._depths: dict[tuple[tuple[int, bool], ...], int] = {}
        self._recursive: set[tuple[tuple[int, bool], ...]] = set()
        self._is_extractive = is_extractive
        self.spans: list[SpanKind] = []
        self._memo: dict[object, tuple[Dfa, int, int, tuple[str, ...]]] = {}
        """What a node became, and which findings at which path came of it."""
        self._tags = FieldTags()
        self.found = Findings()
        self.is_open = False
        """Whether the depth of open values was looked at, so that another one would change something."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Path of each tag."""
        return self._tags.fields

    def node(self, node: Node, path: tuple[str, ...]) -> Dfa:
        """The spellings of a node; `path` is only for what is said of it.

        Raises:
            RefusedError: a construct inside cannot be compiled.
            StateLimitError: the automaton is too large.
        """
        key = node_key(node)
        if not key:
            self.is_open = True
            self.found.note(path, ())
            return open_value(max(1, self._effort.any_depth))
        depth = self._depths.get(key, 0)
        if depth:
            self._recursive.add(key)
            if depth >= self._effort.recursion_depth:
                self.found.unroll(path)
                return EMPTY
        memo_key = (key, self._context())
        if memo_key in self._memo:
            made, first, last, known = self._memo[memo_key]
            self.found.repeat(first, last, known, path)
            return made
        start = self.found.count
        self._depths[key] = depth + 1
        try:
            made = self._shapes(node, path)
        finally:
            self._depths[key] = depth
        self._work += made.state_count
        if self._effort.work_limit is not None and self._work > self._effort.work_limit:
            raise StateLimitError(f"more than {self._effort.work_limit} states on the way")
        self._memo[(key, self._context())] = (made, start, self.found.count, path)
        return made

    def _context(self) -> frozenset[tuple[object, int]]:
        return frozenset((key, self._depths[key]) for key in self._recursive if self._depths.get(key, 0))

    def _shapes(self, node: Node, path: tuple[str, ...]) -> Dfa:
        try:
            shapes = self._normalizer.shapes(node)
            self.found.note(path, shapes)
            made = [self._shape(shape, path) for shape in shapes]
            if self._is_extractive:
                check_spans(shapes, made)
        except RefusedError as error:
            self.found.refuse(path, str(error))
            if not self._is_lenient:
                raise
            return json_literal(b"null")
        kinds: dict[type, list[Dfa]] = {}
        for shape, dfa in zip(shapes, made, strict=True):
            if not dfa.is_empty:
                kinds.setdefault(type(shape), []).append(dfa)
        return union([union(alike, state_limit=self._limit) for alike in kinds.values()]) if kinds else EMPTY

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
            self.found.remark(path, f"range and multiple: {error}")
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
        if shape.least > MOST_CHARACTERS:
            raise RefusedError(f"at least {shape.least} characters are more than an automaton holds")
        most = shape.most
        if most is not None and most > max(shape.least, self._effort.most_characters):
            self.found.remark(path, f"at most {most} characters")
            most = None
        try:
            return string_language(Str(shape.language, shape.least, most))
        except StateLimitError:
            self.found.remark(path, f"{shape.least} to {shape.most} characters together with the pattern")
            return string_language(Str(shape.language))

    # Arrays.

    def _array(self, shape: Arr, path: tuple[str, ...]) -> Dfa:
        items = [self.node(node, (*path, f"[{index}]")) for index, node in enumerate(shape.prefix)]
        may_go_on = shape.most is None or shape.most > len(items)
        rest = self.node(shape.rest, (*path, ITEM)) if may_go_on else EMPTY
        least, most = self._item_bounds(shape, items, rest, path)
        if most is not None and least > most:
            return EMPTY
        return array_language(items, rest, least, most, self._tags, self._limit)

    def _item_bounds(self, shape: Arr, items: list[Dfa], rest: Dfa, path: tuple[str, ...]) -> tuple[int, int | None]:
        least, most = shape.least, shape.most
        if rest.is_empty:
            most = len(items) if most is None else min(most, len(items))
        for index, item in enumerate(items):
            if item.is_empty:
                most = index if most is None else min(most, index)
                break
        size = max(rest.state_count, 1)
        effort = self._effort
        if least * size > COUNTED_STATES:
            if not effort.is_last:
                raise StateLimitError(f"at least {least} items of {size} states")
            raise RefusedError(f"at least {least} items of this size are more than an automaton holds")
        if most is not None and (most - len(items)) * size > effort.counted_states:
            if not effort.is_lax:
                raise StateLimitError(f"at most {most} items of {size} states")
            self.found.remark(path, f"at most {most} items")
            most = None
        return least, most

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
            self.found.remark(path, f"at least {shape.least} different keys")
        return object_language(shape, names, values, others, self._tags, self._limit)

    def _may_be_key(self, shape: Obj, name: str) -> bool:
        encoded = json_string(words([name]))
        return all(not intersect(encoded, self._keys(node, ())).is_empty for node in shape.names)

    def _keys(self, node: Node, path: tuple[str, ...]) -> Dfa:
        """Keys that a node of names allows, as JSON strings; those that are numbers stand between quotes."""
        parts = []
        for shape in self._normalizer.shapes(node):
            match shape:
                case Str() | Num() if shape.span is not None and self._is_extractive:
                    raise RefusedError("a key cannot be copied from the document; take Span off the type of the keys")
                case Str():
                    parts.append(self._string(replace(shape, span=None), path))
                case Num():
                    parts.append(quoted(self._number(replace(shape, span=None), path)))
                case Bool():
                    parts.append(quoted(booleans(shape)))
            if path:
                self.found.note(path, [shape])
        return union(parts) if parts else EMPTY

    def _others(self, shape: Obj, declared: tuple[str, ...], path: tuple[str, ...]) -> list[tuple[Dfa, Dfa]]:
        """Regions of undeclared keys, each with the values it allows."""
        patterns = [pattern for layer in shape.layers for pattern, _ in layer.patterns]
        if len(patterns) > 6:
            raise RefusedError(f"{len(patterns)} patterns of property names; at most 6 can be told apart")
        undeclared = words(list(declared)).complement(TOP) if declared else any_string()
        named = [self._keys(node, (*path, OTHERS)) for node in shape.names]
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
            if not node and not patterns and not named and declared and self._effort.any_depth == 0:
                self.is_open = True
                continue
            value = self.node(node, (*path, OTHERS))
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
