"""What a single keyword rules out, as shapes: the parts of which the negation of a schema is the union."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.decoding.char_classes import Dialect
from pipeline.decoding.code_points import TOP
from pipeline.decoding.constants import other_values
from pipeline.decoding.numbers import Bounds
from pipeline.decoding.refusals import UnheldError
from pipeline.decoding.regex import compile_pattern
from pipeline.decoding.regex_parser import PatternError
from pipeline.decoding.shapes import ANY, NEVER, Arr, Layer, Node, Num, Obj, Shape, Str, Term
from pipeline.decoding.type_keywords import TYPES, bounds_of, types_of

__all__ = ["breached", "ruled_out", "settled"]

_MOST_BREACHES = 16
"""Properties by which an undeclared one may be ruled in, at most; each is a shape of its own."""


def ruled_out(keyword: str, schema: Mapping[str, Any], dialect: Dialect) -> list[Shape]:
    """What breaks one keyword of a schema, if it stood alone; a bound stands with what says whether it is open.

    Raises:
        UnheldError: no shapes hold that exactly.
        RefusedError: the keyword cannot be compiled.
    """
    value = schema[keyword]
    match keyword:
        case "type":
            return _other_types(types_of({"type": value}))
        case "const" | "enum":
            return other_values([value] if keyword == "const" else value)
        case "required":
            return [Obj(layers=(Layer({name: (NEVER,)}),)) for name in value]
        case "properties":
            return [
                Obj(layers=(Layer({name: (Term(demand, False),)}),), required=(name,))
                for name, demand in value.items()
                if demand is not True and demand != {}
            ]
        case "minimum" | "exclusiveMinimum":
            return _outside(bounds_of(schema)._replace(high=None))
        case "maximum" | "exclusiveMaximum":
            return _outside(bounds_of(schema)._replace(low=None))
        case "pattern":
            try:
                return [Str(compile_pattern(value, dialect).complement(TOP))]
            except PatternError as error:
                raise UnheldError(str(error)) from error
        case "minLength":
            return [Str(most=int(value) - 1)] if value else []
        case "maxLength":
            return [Str(least=int(value) + 1)]
        case "minItems":
            return [Arr(most=int(value) - 1)] if value else []
        case "maxItems":
            return [Arr(least=int(value) + 1)]
        case "minProperties":
            return [Obj(most=int(value) - 1)] if value else []
        case "maxProperties":
            return [Obj(least=int(value) + 1)]
    raise UnheldError(f"the contrary of {keyword} is checked afterwards")


def _outside(bounds: Bounds) -> list[Shape]:
    shapes: list[Shape] = []
    if bounds.low is not None:
        shapes.append(Num(bounds=Bounds(None, bounds.low, False, not bounds.is_low_open), is_free=False))
    if bounds.high is not None:
        shapes.append(Num(bounds=Bounds(bounds.high, None, not bounds.is_high_open, False), is_free=False))
    return shapes


def _other_types(types: Sequence[str]) -> list[Shape]:
    if "integer" in types and "number" not in types:
        raise UnheldError("numbers that are no integers are told apart afterwards")
    return [shape for name, shape in zip(TYPES, ANY, strict=True) if name not in types]


def breached(schema: Mapping[str, Any], own: Layer) -> list[Shape]:
    """What breaks `additionalProperties`: objects with a property that only it speaks of, and that it refuses.

    Args:
        schema: that holds the keyword.
        own: what it says of properties.
    """
    additional = schema["additionalProperties"]
    if additional is True or additional == {}:
        return []
    node = () if additional is False else (Term(additional, False),)
    return [Obj(breaches=(replace(own, additional=node),))]


def settled(shape: Shape) -> list[Shape]:
    """The shape without breaches: a union over the properties that may be the one.

    Only declared properties are told apart; where others may occur, it is noted that they are checked afterwards.
    """
    if not isinstance(shape, Obj) or not shape.breaches:
        return [shape]
    breach, rest = shape.breaches[0], replace(shape, breaches=shape.breaches[1:])
    names = [name for name in shape.declared if breach.is_outside(name)]
    if not breach.additional and any(name in shape.required for name in names):
        return settled(rest)
    is_closed = any(not layer.patterns and _is_never(layer.additional) for layer in shape.layers)
    if not is_closed or len(names) > _MOST_BREACHES:
        note = "the contrary of additionalProperties is checked afterwards"
        return settled(replace(rest, notes=tuple(dict.fromkeys((*rest.notes, note)))))
    found: list[Shape] = []
    for name in names:
        demand = Obj((Layer({name: breach.additional}),), (name,))
        if (met := rest.meet(demand)) is not None:
            found += settled(met)
    return found


def _is_never(node: Node) -> bool:
    return any(term.schema is False and term.is_positive for term in node)
