"""What a JSON value may be, type by type: the values that a schema is normalised to before anything is spelt.

A shape is one JSON type with its constraints; a schema denotes the union of a list of shapes.  Shapes intersect; parts
of arrays and objects stay unexpanded (`Node`), so that recursive schemas stay finite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from pipeline.decoding.automata import Dfa, intersect
from pipeline.decoding.numbers import FREE, MAX_SIGNIFICANT_DIGITS, Bounds
from pipeline.decoding.refusals import UnheldError
from pipeline.decoding.strings import any_string

__all__ = [
    "ANY",
    "Arr",
    "Bool",
    "Layer",
    "Node",
    "Null",
    "Num",
    "Obj",
    "Shape",
    "Str",
    "Term",
    "in_order",
    "meet",
    "meet_all",
]


_MOST_MET = 256
"""Alternatives that may come of combining others; each is spelt by itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One schema that a value must satisfy (or must not, where `is_positive` is False)."""

    schema: Any
    is_positive: bool = True

    @property
    def key(self) -> tuple[int, bool]:
        """Schemas are told apart by identity; the compiler keeps them alive."""
        return (int(self.schema) if isinstance(self.schema, bool) else id(self.schema), self.is_positive)


StrKind = Literal["string", "date", "datetime", "time", "enum", "decimal"]
"""What a string spells, as far as extractive fields care; `decimal` is the twin of a number in quotes."""
Node = tuple[Term, ...]
"""A conjunction of terms, not yet expanded; `()` is any value."""

NEVER = Term(False)


@dataclass(frozen=True, slots=True)
class Null:
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bool:
    values: frozenset[bool] = frozenset({True, False})
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Num:
    """Numbers: an interval, multiples, single values in or out, and digits of a decimal."""

    is_integer: bool = False
    bounds: Bounds = FREE
    multiples: tuple[Decimal, ...] = ()
    only: frozenset[Decimal] | None = None
    excluded: frozenset[Decimal] = frozenset()
    whole_digits: int = MAX_SIGNIFICANT_DIGITS
    places: int = MAX_SIGNIFICANT_DIGITS
    significant: int = MAX_SIGNIFICANT_DIGITS
    is_open: bool = False
    """Whether the schema leaves even the type open."""
    is_free: bool = True
    """Whether an exponent may be written: no constraint says anything of the value."""
    notes: tuple[str, ...] = ()
    span: Mapping[str, Any] | None = None
    """Settings of the mark that makes the field extractive."""

    def holds(self, value: Decimal) -> bool:
        """Whether the value satisfies bounds, multiples and exclusions."""
        low, high = self.bounds.low, self.bounds.high
        if low is not None and (value < low or (value == low and self.bounds.is_low_open)):
            return False
        if high is not None and (value > high or (value == high and self.bounds.is_high_open)):
            return False
        if self.is_integer and value != value.to_integral_value():
            return False
        return value not in self.excluded and all(value % multiple == 0 for multiple in self.multiples)

    def meet(self, other: Num) -> Num | None:
        only = self.only if other.only is None else other.only if self.only is None else self.only & other.only
        merged = Num(
            self.is_integer or other.is_integer,
            self.bounds.intersection(other.bounds),
            tuple(dict.fromkeys(self.multiples + other.multiples)),
            only,
            self.excluded | other.excluded,
            min(self.whole_digits, other.whole_digits),
            min(self.places, other.places),
            min(self.significant, other.significant),
            self.is_open and other.is_open,
            self.is_free and other.is_free,
            self.notes + other.notes,
            self.span or other.span,
        )
        if only is not None:
            merged = replace(merged, only=frozenset(value for value in only if merged.holds(value)))
            return merged if merged.only else None
        return None if merged.is_void else merged

    @property
    def is_void(self) -> bool:
        """Whether the interval alone leaves nothing."""
        low, high = self.bounds.low, self.bounds.high
        if low is None or high is None:
            return False
        return low > high or (low == high and (self.bounds.is_low_open or self.bounds.is_high_open))


@dataclass(frozen=True, slots=True)
class Str:
    """Strings: a language over characters (None for any), a length, or the JSON they hold."""

    language: Dfa | None = None
    least: int = 0
    most: int | None = None
    inner: Node | None = None
    notes: tuple[str, ...] = ()
    kind: StrKind = "string"
    values: tuple[str, ...] = ()
    """Of an enumeration."""
    span: Mapping[str, Any] | None = None
    """Settings of the mark that makes the field extractive."""

    @property
    def whole_language(self) -> Dfa:
        """The language with its length.

        Raises:
            StateLimitError: the product has too many states.
        """
        if self.language is None:
            return any_string(self.least, self.most)
        if self.least == 0 and self.most is None:
            return self.language
        return intersect(self.language, any_string(self.least, self.most), state_limit=60_000)

    def meet(self, other: Str) -> Str | None:
        language = self.language or other.language
        if self.language is not None and other.language is not None:
            language = intersect(self.language, other.language, state_limit=60_000).minimized()
        mosts = [most for most in (self.most, other.most) if most is not None]
        notes = self.notes + other.notes
        if self.inner is not None and other.inner is not None:
            notes = (*notes, "the JSON inside the string twice over")
        most = min(mosts, default=None)
        named = other if self.kind == "string" else self
        merged = Str(
            language, max(self.least, other.least), most, self.inner or other.inner, notes,
            named.kind, named.values, self.span or other.span,
        )  # fmt: skip
        if (language is not None and language.is_empty) or (merged.most is not None and merged.least > merged.most):
            return None
        return merged


@dataclass(frozen=True, slots=True)
class Arr:
    """Arrays: `prefix` by position, `rest` after it."""

    prefix: tuple[Node, ...] = ()
    rest: Node = ()
    least: int = 0
    most: int | None = None
    notes: tuple[str, ...] = ()

    def item(self, index: int) -> Node:
        return self.prefix[index] if index < len(self.prefix) else self.rest

    def meet(self, other: Arr) -> Arr | None:
        count = max(len(self.prefix), len(other.prefix))
        prefix = tuple(self.item(index) + other.item(index) for index in range(count))
        mosts = [most for most in (self.most, other.most) if most is not None]
        most = min(mosts, default=None)
        merged = Arr(prefix, self.rest + other.rest, max(self.least, other.least), most, self.notes + other.notes)
        return None if most is not None and merged.least > most else merged


@dataclass(frozen=True, slots=True)
class Layer:
    """One schema's say over an object's properties."""

    properties: Mapping[str, Node] = field(default_factory=dict)
    patterns: tuple[tuple[Dfa, Node], ...] = ()
    additional: Node = ()

    def is_outside(self, name: str) -> bool:
        """Whether the property is neither declared nor matched by a pattern."""
        return name not in self.properties and not any(pattern.accepts(map(ord, name)) for pattern, _ in self.patterns)

    def node_for(self, name: str) -> Node:
        """What this schema demands of the property."""
        matched = [node for pattern, node in self.patterns if pattern.accepts(map(ord, name))]
        if name in self.properties:
            matched.insert(0, self.properties[name])
        if not matched:
            return self.additional
        return tuple(term for node in matched for term in node)


@dataclass(frozen=True, slots=True)
class Obj:
    """Objects: layers of properties, names that must occur, and what names may be."""

    layers: tuple[Layer, ...] = ()
    required: tuple[str, ...] = ()
    names: tuple[Node, ...] = ()
    least: int = 0
    most: int | None = None
    notes: tuple[str, ...] = ()
    breaches: tuple[Layer, ...] = ()
    """Of each, at least one property must be neither declared nor matched, and satisfy its `additional`."""

    @property
    def declared(self) -> tuple[str, ...]:
        """Property names in order of declaration; required ones that no schema declares come last."""
        names = dict.fromkeys(name for layer in self.layers for name in layer.properties)
        return tuple(dict.fromkeys((*names, *self.required)))

    def node_for(self, name: str) -> Node:
        return tuple(term for layer in self.layers for term in layer.node_for(name))

    def meet(self, other: Obj) -> Obj | None:
        mosts = [most for most in (self.most, other.most) if most is not None]
        most = min(mosts, default=None)
        merged = Obj(
            self.layers + other.layers,
            tuple(dict.fromkeys(self.required + other.required)),
            self.names + other.names,
            max(self.least, other.least),
            most,
            self.notes + other.notes,
            self.breaches + other.breaches,
        )
        if most is not None and max(merged.least, len(merged.required)) > most:
            return None
        return merged


def in_order(shape: Obj, order: Iterable[str]) -> Obj:
    """The same objects, their properties declared in the order given."""
    declared = set(shape.declared)
    names = [name for name in order if name in declared]
    if names == list(shape.declared):
        return shape
    return replace(shape, layers=(Layer(dict.fromkeys(names, ())), *shape.layers))


Shape = Null | Bool | Num | Str | Arr | Obj
ANY: tuple[Shape, ...] = (Null(), Bool(), Num(is_open=True), Str(), Arr(), Obj())


def meet(first: Shape, second: Shape) -> Shape | None:
    """Values that both allow; None where there are none."""
    match first, second:
        case Null(), Null():
            return Null(first.notes + second.notes)
        case Bool(), Bool():
            values = first.values & second.values
            return Bool(values, first.notes + second.notes) if values else None
        case Num(), Num():
            return first.meet(second)
        case Str(), Str():
            return first.meet(second)
        case Arr(), Arr():
            return first.meet(second)
        case Obj(), Obj():
            return first.meet(second)
    return None


def meet_all(first: Iterable[Shape], second: Iterable[Shape]) -> list[Shape]:
    """The intersection of two unions.

    Raises:
        UnheldError: it is a union of far more than the two.
    """
    lefts, rights = list(first), list(second)
    most = max(_MOST_MET, len(lefts) + len(rights))
    met: list[Shape] = []
    for left in lefts:
        met += [shape for right in rights if (shape := meet(left, right)) is not None]
        if len(met) > most:
            raise UnheldError(f"more than {most} alternatives are told apart afterwards")
    return met
