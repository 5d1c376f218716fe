"""What the keywords of one type say, such as `minimum`, `pattern` or `items`: a schema's own shapes, uncombined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pipeline.decoding.automata import Dfa, StateLimitError, intersect
from pipeline.decoding.char_classes import Dialect
from pipeline.decoding.formats import format_language, string_language
from pipeline.decoding.numbers import MAX_SIGNIFICANT_DIGITS, Bounds, NumberTooFineError
from pipeline.decoding.refusals import RefusedError
from pipeline.decoding.regex import compile_pattern, full_match
from pipeline.decoding.regex_parser import PatternError
from pipeline.decoding.shapes import Arr, Bool, Layer, Node, Null, Num, Obj, Shape, Str, StrKind, Term
from pipeline.decoding.spelling import number_language

__all__ = ["TYPES", "Keep", "bounds_of", "own_layer", "own_shapes", "types_of", "without_narrowed"]

TYPES = ("null", "boolean", "number", "string", "array", "object")
"""Types of JSON, in the order of the shapes of `ANY`."""
_SPAN_FORMATS: Mapping[str, StrKind] = {"date": "date", "date-time": "datetime", "time": "time"}
_DECIMAL_DIGITS = 28
"""Digits of a `Decimal` without a bound of its own: the precision of Python's default context."""
Keep = Callable[[Any], Term]
"""Makes a term of a schema that stands in no document, and keeps that schema alive."""


_EXACT_FORMATS = frozenset({"date", "ipv4"})


def without_narrowed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without keywords of which an automaton holds only a part."""
    left_out = {"format"} if schema.get("format") not in _EXACT_FORMATS else set()
    if "multipleOf" in schema and not _is_dyadic(Decimal(str(schema["multipleOf"]))):
        left_out.add("multipleOf")
    return {key: value for key, value in schema.items() if key not in left_out}


def own_shapes(schema: Mapping[str, Any], *, dialect: Dialect, keep: Keep) -> list[Shape]:
    """The union of what a schema allows on its own, one shape or two for each of its types.

    Raises:
        RefusedError: a keyword cannot be compiled.
    """
    if "x-number" in schema:
        return _decimal(schema["x-number"])
    shapes: list[Shape] = []
    types = types_of(schema)
    for name in types:
        match name:
            case "null":
                shapes.append(Null())
            case "boolean":
                shapes.append(Bool())
            case "integer" | "number":
                if name == "number" or "number" not in types:
                    number = _number(schema, is_integer=name == "integer")
                    # Pydantic's open values keep to what a double holds.
                    shapes.append(replace(number, is_open=dialect == "ecma" and "type" not in schema))
            case "string":
                shapes.append(_string(schema, dialect))
            case "array":
                shapes.append(_array(schema))
            case "object":
                shapes.append(_object(schema, dialect, keep))
            case _:
                raise RefusedError(f"type {name!r} is not a JSON type")
    return [shape for shape in shapes if not (isinstance(shape, Num) and shape.is_void)]


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that a schema names, or all of them."""
    types = schema.get("type", TYPES)
    return (types,) if isinstance(types, str) else tuple(dict.fromkeys(types))


def _number(schema: Mapping[str, Any], *, is_integer: bool) -> Num:
    bounds = bounds_of(schema)
    multiples = (Decimal(str(schema["multipleOf"])),) if "multipleOf" in schema else ()
    if not is_integer and multiples and not _is_dyadic(multiples[0]):
        # Validators divide doubles; below a million units they agree with exact arithmetic.
        reach = multiples[0] * 999_999
        bounds = bounds.intersection(Bounds(-reach, reach))
    return Num(is_integer, bounds, multiples, is_free=bounds.is_free and not multiples)


def bounds_of(schema: Mapping[str, Any]) -> Bounds:
    """The interval that a schema leaves to numbers, its exclusive bounds as booleans (draft 4) or as numbers."""
    low, high = schema.get("minimum"), schema.get("maximum")
    low_open, high_open = schema.get("exclusiveMinimum", False), schema.get("exclusiveMaximum", False)
    bounds = Bounds(_decimal_of(low), _decimal_of(high), low_open is True, high_open is True)
    if not isinstance(low_open, bool):
        bounds = bounds.intersection(Bounds(_decimal_of(low_open), None, True))
    if not isinstance(high_open, bool):
        bounds = bounds.intersection(Bounds(None, _decimal_of(high_open), False, True))
    return bounds


def _is_dyadic(value: Decimal) -> bool:
    """Whether a double holds the value exactly."""
    denominator = value.as_integer_ratio()[1]
    return denominator & (denominator - 1) == 0


def _decimal_of(value: Any) -> Decimal | None:
    return None if value is None else _finite(value)


def _finite(value: Any) -> Decimal:
    number = Decimal(str(value))
    if not number.is_finite():
        raise RefusedError(f"{value} is no bound of numbers, nor a multiple")
    return number


def _decimal(settings: Mapping[str, Any]) -> list[Shape]:
    """A decimal is spelt as a number, or as a string of the same digits."""
    bounds = Bounds()
    for key, is_low, is_open in (("ge", True, False), ("gt", True, True), ("le", False, False), ("lt", False, True)):
        if key in settings:
            value = _finite(settings[key])
            bounds = bounds.intersection(
                Bounds(value, None, is_open) if is_low else Bounds(None, value, False, is_open)
            )
    multiples = (_finite(settings["multiple_of"]),) if "multiple_of" in settings else ()
    digits, places = settings.get("max_digits"), settings.get("decimal_places")
    exact = Num(
        bounds=bounds, multiples=multiples, is_free=False, significant=_DECIMAL_DIGITS, whole_digits=_DECIMAL_DIGITS
    )
    exact = replace(exact, places=_DECIMAL_DIGITS if places is None else places)
    if digits is not None:
        whole = min(_DECIMAL_DIGITS, digits - (places or 0))
        exact = replace(exact, significant=min(digits, _DECIMAL_DIGITS), whole_digits=whole)
    # A JSON number is read as a double on its way, which must not carry it over a bound.
    limit = _DECIMAL_DIGITS if bounds.is_free else MAX_SIGNIFICANT_DIGITS
    number = replace(exact, significant=min(exact.significant, limit), whole_digits=min(exact.whole_digits, limit))
    try:
        return [number, Str(number_language(exact), kind="decimal")]
    except NumberTooFineError as error:
        exact = replace(exact, multiples=(), bounds=Bounds())
        return [number, Str(number_language(exact), notes=(f"range and multiple: {error}",), kind="decimal")]


def _string(schema: Mapping[str, Any], dialect: Dialect) -> Str:
    notes: list[str] = []
    whole: Dfa | None = None
    for keyword, made in _languages(schema, dialect):
        try:
            language = made()
            whole = language if whole is None else intersect(whole, language, state_limit=60_000).minimized()
        except (PatternError, StateLimitError) as error:
            notes.append(f"{keyword}: {error}")
    inner = (Term(schema["x-json"]),) if "x-json" in schema else None
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    if schema.get("format") in ("base64", "base64url") and (least or most is not None):
        # Pydantic counts the bytes, not the characters that spell them.
        notes.append("length of the decoded bytes")
        least, most = 0, None
    kind = schema.get("x-string", {}).get("kind", _SPAN_FORMATS.get(schema.get("format", ""), "string"))
    most = None if most is None else int(most)
    return Str(whole, least, most, inner, tuple(notes), kind if kind in _SPAN_FORMATS.values() else "string")


def _languages(schema: Mapping[str, Any], dialect: Dialect) -> Iterable[tuple[str, Callable[[], Dfa]]]:
    if "pattern" in schema:
        yield "pattern", lambda: compile_pattern(schema["pattern"], dialect)
    if "x-string" in schema:
        yield "format", lambda: string_language(schema["x-string"])
    elif "format" in schema and (language := format_language(schema["format"])) is not None:
        yield "format", lambda: language
    if schema.get("x-strip_whitespace"):
        yield "strip", _stripped
    if schema.get("x-ascii_only"):
        yield "ascii", lambda: full_match(r"[\x00-\x7f]*")


def _stripped() -> Dfa:
    """Strings that stripping white space, in any reading of it, leaves as they are."""
    edge = r"[^\s\x00-\x20\x7f-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
    return full_match(rf"({edge}([^\x00]*{edge})?)?")


def _array(schema: Mapping[str, Any]) -> Arr:
    items, prefix = schema.get("items", True), schema.get("prefixItems", [])
    if isinstance(items, list):
        prefix, items = items, schema.get("additionalItems", True)
    most = schema.get("maxItems")
    nodes = tuple((Term(item),) for item in prefix)
    if items is False:
        most = len(prefix) if most is None else min(most, len(prefix))
    rest = () if items is True else (Term(items),)
    return Arr(nodes, rest, int(schema.get("minItems", 0)), None if most is None else int(most))


def own_layer(schema: Mapping[str, Any], dialect: Dialect) -> Layer:
    """What a schema says of properties by their names.

    Raises:
        RefusedError: a pattern of names cannot be compiled.
    """
    patterns: list[tuple[Dfa, Node]] = []
    for pattern, demand in schema.get("patternProperties", {}).items():
        try:
            patterns.append((compile_pattern(pattern, dialect), (Term(demand),)))
        except (PatternError, StateLimitError) as error:
            raise RefusedError(f"patternProperties {pattern!r}: {error}") from error
    properties = {name: (Term(demand),) for name, demand in schema.get("properties", {}).items()}
    additional = schema.get("additionalProperties", True)
    return Layer(properties, tuple(patterns), () if additional is True else (Term(additional),))


def _object(schema: Mapping[str, Any], dialect: Dialect, keep: Keep) -> Obj:
    names: tuple[Node, ...] = ()
    if "propertyNames" in schema:
        names += ((keep({"allOf": [{"type": "string"}, schema["propertyNames"]]}),),)
    if "x-keys" in schema:
        names += ((Term(schema["x-keys"]),),)
    required = schema.get("required", [])
    most = schema.get("maxProperties")
    return Obj(
        (own_layer(schema, dialect),), tuple(required) if isinstance(required, list) else (), names,
        int(schema.get("minProperties", 0)), None if most is None else int(most),
    )  # fmt: skip
