"""Values given outright, by `const` or `enum`: the shapes that hold just them, or all but them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pipeline.decoding.char_classes import Dialect
from pipeline.decoding.code_points import TOP
from pipeline.decoding.refusals import UnheldError
from pipeline.decoding.shapes import NEVER, Arr, Bool, Layer, Node, Null, Num, Obj, Shape, Str
from pipeline.decoding.strings import words
from pipeline.decoding.type_keywords import Keep

__all__ = ["only_values", "other_values"]


def only_values(values: Sequence[Any], *, dialect: Dialect, keep: Keep) -> list[Shape]:
    """Exactly these values.

    Raises:
        RefusedError: a string among them has no spelling in UTF-8.
    """
    shapes: list[Shape] = []
    strings = [value for value in values if isinstance(value, str)]
    if strings:
        shapes.append(Str(words(strings), kind="enum", values=tuple(strings)))
    numbers = _numbers(values)
    # In Pydantic's reading 1.0 is not the member 1; in JSON Schema's it is.
    whole = [value for value in numbers if isinstance(value, int)] if dialect == "rust" else []
    rest = [value for value in numbers if not (dialect == "rust" and isinstance(value, int))]
    for chosen, is_integer in ((whole, True), (rest, False)):
        if chosen:
            only = frozenset(Decimal(str(value)) for value in chosen)
            shapes.append(Num(is_integer, only=only, is_free=False))
    booleans = frozenset(value for value in values if isinstance(value, bool))
    if booleans:
        shapes.append(Bool(booleans))
    if None in values:
        shapes.append(Null())
    return shapes + [_constant(value, keep) for value in values if isinstance(value, list | dict)]


def _numbers(values: Sequence[Any]) -> list[int | float]:
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def _constant(value: list[Any] | dict[str, Any], keep: Keep) -> Shape:
    if isinstance(value, list):
        items = tuple((keep({"const": item}),) for item in value)
        return Arr(items, (), len(value), len(value))
    properties: dict[str, Node] = {name: (keep({"const": item}),) for name, item in value.items()}
    return Obj((Layer(properties, (), (NEVER,)),), tuple(value))


def other_values(values: Sequence[Any]) -> list[Shape]:
    """Every value but these.

    Raises:
        UnheldError: an array or an object with content is among them.
        RefusedError: a string among them has no spelling in UTF-8.
    """
    if any(isinstance(value, list | dict) and value for value in values):
        raise UnheldError("other arrays and objects are told apart afterwards")
    shapes: list[Shape] = [] if None in values else [Null()]
    booleans = frozenset({True, False}) - {value for value in values if isinstance(value, bool)}
    if booleans:
        shapes.append(Bool(booleans))
    numbers = frozenset(Decimal(str(value)) for value in _numbers(values))
    shapes.append(Num(excluded=numbers, is_free=not numbers))
    strings = [value for value in values if isinstance(value, str)]
    shapes.append(Str(words(strings).complement(TOP)) if strings else Str())
    return [*shapes, Arr(least=int([] in values)), Obj(least=int({} in values))]
