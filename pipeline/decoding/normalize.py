"""From JSON Schema keywords to shapes: references, combinations, negation.

What cannot be held exactly is either noted on the shape (the field is then `widened`, and Pydantic or a validator
decides afterwards) or refused by name.  Nothing is dropped silently.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pipeline.decoding.automata import Dfa, StateLimitError, intersect, union
from pipeline.decoding.formats import format_language, string_language
from pipeline.decoding.numbers import MAX_SIGNIFICANT_DIGITS, Bounds
from pipeline.decoding.references import References
from pipeline.decoding.regex import TOP, Dialect, PatternError, any_string, compile_pattern, full_match
from pipeline.decoding.shapes import (
    ANY,
    NEVER,
    Arr,
    Bool,
    Layer,
    Node,
    Null,
    Num,
    Obj,
    Shape,
    Str,
    StrKind,
    Term,
    meet_all,
)  # fmt: skip

__all__ = ["Normalizer", "RefusedError", "UnheldError", "node_key", "words"]

_SPAN_FORMATS: Mapping[str, StrKind] = {"date": "date", "date-time": "datetime", "time": "time"}
_DECIMAL_DIGITS = 28
"""Digits of a `Decimal` without a bound of its own: the precision of Python's default context."""
_TYPES = ("null", "boolean", "number", "string", "array", "object")


class RefusedError(Exception):
    """A construct for which there is no sound automaton; the message says why and what to write instead."""


class UnheldError(Exception):
    """A keyword that cannot be held exactly; it becomes a note, and is checked afterwards."""


class Normalizer:
    """Expands nodes of one schema document.

    Args:
        schema: the document.
        dialect: how `pattern` is read.
    """

    def __init__(self, schema: Any, *, dialect: Dialect) -> None:
        self.references = References(schema)
        self.dialect: Dialect = dialect
        self._memo: dict[tuple[tuple[int, bool], ...], list[Shape]] = {}
        self._open: list[tuple[int, bool]] = []
        self._made: list[Any] = []

    def shapes(self, node: Node) -> list[Shape]:
        """The union that a node denotes; empty where nothing satisfies it.

        Raises:
            RefusedError: the node holds a construct that cannot be compiled.
        """
        key = node_key(node)
        found = self._memo.get(key)
        if found is None:
            found = list(ANY)
            for term in {term.key: term for term in node}.values():
                try:
                    found = meet_all(found, self.expand(term))
                except UnheldError as error:
                    found = [_with_notes(shape, [str(error)]) for shape in found]
            self._memo[key] = found
        return found

    def keep(self, schema: Any) -> Term:
        """A term of a schema made here, which is kept alive: terms are told apart by identity."""
        self._made.append(schema)
        return Term(schema)

    def expand(self, term: Term) -> list[Shape]:
        schema = term.schema
        if isinstance(schema, bool):
            return list(ANY) if schema is term.is_positive else []
        if not isinstance(schema, Mapping):
            raise RefusedError(f"{schema!r} is not a schema")
        if term.key in self._open:
            raise RefusedError("a $ref leads back to itself with nothing in between")
        self._open.append(term.key)
        try:
            return self._positive(schema) if term.is_positive else self._negative(schema)
        finally:
            self._open.pop()

    def _positive(self, schema: Mapping[str, Any]) -> list[Shape]:
        if "x-refused" in schema:
            raise RefusedError(schema["x-refused"])
        if "$ref" in schema and self.references.ref_hides_siblings:
            return self.expand(Term(self._resolve(schema["$ref"])))
        shapes: list[Shape] = self._own(schema)
        notes: list[str] = list(schema.get("x-checked", ()))
        for keyword, expansion in self._combinations(schema):
            try:
                shapes = meet_all(shapes, expansion())
            except UnheldError as error:
                notes.append(f"{keyword}: {error}")
            except StateLimitError:
                notes.append(f"{keyword}: too large for an automaton")
        if "x-span" in schema:
            shapes = [_with_span(shape, schema["x-span"]) for shape in shapes]
        return [_with_notes(shape, notes) for shape in shapes]

    def _resolve(self, reference: str) -> Any:
        target = self.references.resolve(reference)
        if target is None:
            raise RefusedError(f"$ref {reference!r} leads nowhere in this schema; remote references are not followed")
        return target

    def _combinations(self, schema: Mapping[str, Any]) -> Iterable[tuple[str, Callable[[], list[Shape]]]]:
        if "$ref" in schema:
            yield "$ref", lambda: self.expand(Term(self._resolve(schema["$ref"])))
        for part in schema.get("allOf", ()):
            yield "allOf", lambda part=part: self.expand(Term(part))  # type: ignore[misc]
        if "anyOf" in schema:
            yield "anyOf", lambda: self._union(Term(part) for part in schema["anyOf"])
        if "oneOf" in schema:
            yield "oneOf", lambda: self._one_of(schema["oneOf"])
        if "const" in schema:
            yield "const", lambda: self._constants([schema["const"]])
        if "enum" in schema:
            yield "enum", lambda: self._constants(schema["enum"])
        if "not" in schema:
            yield "not", lambda: self.expand(Term(schema["not"], False))
        if "if" in schema and ("then" in schema or "else" in schema):
            yield "if", lambda: self._conditional(schema)
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, demand in schema.get(keyword, {}).items():
                yield keyword, lambda name=name, demand=demand: self._dependent(name, demand)  # type: ignore[misc]
        for keyword in ("contains", "unevaluatedProperties", "unevaluatedItems", "minContains"):
            if keyword in schema and not (keyword.startswith("unevaluated") and schema[keyword] is True):
                yield keyword, lambda: _unheld("is checked afterwards")
        if schema.get("uniqueItems"):
            yield "uniqueItems", lambda: self._unique(schema)

    def _union(self, terms: Iterable[Term]) -> list[Shape]:
        return [shape for term in terms for shape in self.expand(term)]

    def _unique(self, schema: Mapping[str, Any]) -> list[Shape]:
        if schema.get("maxItems", 2) <= 1 or ("type" in schema and "array" not in _types(schema)):
            return list(ANY)
        raise UnheldError("items must differ")

    def _conditional(self, schema: Mapping[str, Any]) -> list[Shape]:
        condition = schema["if"]
        met = meet_all(self.expand(Term(condition)), self.expand(Term(schema.get("then", True))))
        return met + meet_all(self.expand(Term(condition, False)), self.expand(Term(schema.get("else", True))))

    def _dependent(self, name: str, demand: Any) -> list[Shape]:
        others: list[Shape] = [shape for shape in ANY if not isinstance(shape, Obj)]
        without = Obj(layers=(Layer({name: (NEVER,)}),))
        having: list[Shape] = [Obj(required=(name,))]
        if isinstance(demand, list):
            having = meet_all(having, [Obj(required=tuple(demand))])
        else:
            having = meet_all(having, self.expand(Term(demand)))
        return [*others, without, *having]

    def _one_of(self, branches: Sequence[Any]) -> list[Shape]:
        """Branches that cannot hold together are a union; others are told apart by negation, where it can be held."""
        if all(self.is_disjoint((Term(a),), (Term(b),)) for i, a in enumerate(branches) for b in branches[:i]):
            return self._union(Term(branch) for branch in branches)
        shapes: list[Shape] = []
        for index, branch in enumerate(branches):
            alone = self.expand(Term(branch))
            for other, rival in enumerate(branches):
                if other != index and alone and not self.is_disjoint((Term(branch),), (Term(rival),)):
                    alone = meet_all(alone, self.expand(Term(rival, False)))
            shapes += alone
        return shapes

    def is_disjoint(self, first: Node, second: Node, depth: int = 3) -> bool:
        """Whether no value satisfies both; False where that is not plain to see."""
        try:
            return all(self._is_void(shape, depth) for shape in self.shapes(first + second))
        except (UnheldError, RefusedError, StateLimitError):
            return False

    def _is_void(self, shape: Shape, depth: int) -> bool:
        match shape:
            case Str() if shape.inner is None:
                return shape.whole_language.is_empty
            case Obj() if depth:
                return any(self._is_never(shape.node_for(name), depth - 1) for name in shape.required)
            case Arr() if depth:
                return any(self._is_never(shape.item(index), depth - 1) for index in range(min(shape.least, 8)))
        return False

    def _is_never(self, node: Node, depth: int) -> bool:
        if any(term.key in self._open for term in node):
            return False
        return all(self._is_void(shape, depth) for shape in self.shapes(node))

    # Keywords of one type.

    def _own(self, schema: Mapping[str, Any]) -> list[Shape]:
        if "x-number" in schema:
            return _decimal(schema["x-number"])
        shapes: list[Shape] = []
        types = _types(schema)
        for name in types:
            match name:
                case "null":
                    shapes.append(Null())
                case "boolean":
                    shapes.append(Bool())
                case "integer" | "number":
                    if name == "number" or "number" not in types:
                        shapes.append(self._number(schema, is_integer=name == "integer"))
                case "string":
                    shapes.append(self._string(schema))
                case "array":
                    shapes.append(self._array(schema))
                case "object":
                    shapes.append(self._object(schema))
                case _:
                    raise RefusedError(f"type {name!r} is not a JSON type")
        return [shape for shape in shapes if not (isinstance(shape, Num) and shape.is_void)]

    def _number(self, schema: Mapping[str, Any], *, is_integer: bool) -> Num:
        bounds = _schema_bounds(schema)
        multiples = (Decimal(str(schema["multipleOf"])),) if "multipleOf" in schema else ()
        if is_integer and multiples and multiples[0] != multiples[0].to_integral_value():
            multiples = (multiples[0] * (Decimal(1) / multiples[0]),) if Decimal(1) % multiples[0] == 0 else multiples
        if not is_integer and multiples and not _is_dyadic(multiples[0]):
            # Validators divide doubles; below a million units they agree with exact arithmetic.
            reach = multiples[0] * 999_999
            bounds = bounds.intersection(Bounds(-reach, reach))
        return Num(is_integer, bounds, multiples, is_free=bounds.is_free and not multiples)

    def _string(self, schema: Mapping[str, Any]) -> Str:
        notes: list[str] = []
        languages: list[Dfa] = []
        for keyword, made in self._languages(schema):
            try:
                languages.append(made())
            except (PatternError, StateLimitError) as error:
                notes.append(f"{keyword}: {error}")
        whole: Dfa | None = None
        for language in languages:
            whole = language if whole is None else intersect(whole, language, state_limit=60_000).minimized()
        inner = (Term(schema["x-json"]),) if "x-json" in schema else None
        least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
        if schema.get("format") in ("base64", "base64url") and (least or most is not None):
            # Pydantic counts the bytes, not the characters that spell them.
            notes.append("length of the decoded bytes")
            least, most = 0, None
        kind = schema.get("x-string", {}).get("kind", _SPAN_FORMATS.get(schema.get("format", ""), "string"))
        most = None if most is None else int(most)
        return Str(whole, least, most, inner, tuple(notes), kind if kind in _SPAN_FORMATS.values() else "string")

    def _languages(self, schema: Mapping[str, Any]) -> Iterable[tuple[str, Callable[[], Dfa]]]:
        if "pattern" in schema:
            yield "pattern", lambda: compile_pattern(schema["pattern"], self.dialect)
        if "x-string" in schema:
            yield "format", lambda: string_language(schema["x-string"])
        elif "format" in schema and (language := format_language(schema["format"])) is not None:
            yield "format", lambda: language
        if schema.get("x-strip_whitespace"):
            yield (
                "strip",
                lambda: full_match(
                    r"([^\s\x00-\x20\x7f-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]([^\x00]*[^\s\x00-\x20\x7f-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff])?)?"
                ),
            )
        if schema.get("x-ascii_only"):
            yield "ascii", lambda: full_match(r"[\x00-\x7f]*")

    def _array(self, schema: Mapping[str, Any]) -> Arr:
        items, prefix = schema.get("items", True), schema.get("prefixItems", [])
        if isinstance(items, list):
            prefix, items = items, schema.get("additionalItems", True)
        most = schema.get("maxItems")
        nodes = tuple((Term(item),) for item in prefix)
        if items is False:
            most = len(prefix) if most is None else min(most, len(prefix))
        rest = () if items is True else (Term(items),)
        return Arr(nodes, rest, int(schema.get("minItems", 0)), None if most is None else int(most))

    def _object(self, schema: Mapping[str, Any]) -> Obj:
        notes: list[str] = []
        patterns: list[tuple[Dfa, Node]] = []
        for pattern, demand in schema.get("patternProperties", {}).items():
            try:
                patterns.append((compile_pattern(pattern, self.dialect), (Term(demand),)))
            except (PatternError, StateLimitError) as error:
                raise RefusedError(f"patternProperties {pattern!r}: {error}") from error
        properties = {name: (Term(demand),) for name, demand in schema.get("properties", {}).items()}
        additional = schema.get("additionalProperties", True)
        layer = Layer(properties, tuple(patterns), () if additional is True else (Term(additional),))
        names: tuple[Node, ...] = ()
        if "propertyNames" in schema:
            names += ((self.keep({"allOf": [{"type": "string"}, schema["propertyNames"]]}),),)
        if "x-keys" in schema:
            names += ((Term(schema["x-keys"]),),)
        required = schema.get("required", [])
        most = schema.get("maxProperties")
        return Obj(
            (layer,), tuple(required) if isinstance(required, list) else (), names,
            int(schema.get("minProperties", 0)), None if most is None else int(most), tuple(notes),
        )  # fmt: skip

    # Values given outright.

    def _constants(self, values: Sequence[Any]) -> list[Shape]:
        shapes: list[Shape] = []
        strings = [value for value in values if isinstance(value, str)]
        if strings:
            shapes.append(Str(words(strings), kind="enum", values=tuple(strings)))
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        # In Pydantic's reading 1.0 is not the member 1; in JSON Schema's it is.
        whole = [value for value in numbers if isinstance(value, int)] if self.dialect == "rust" else []
        rest = [value for value in numbers if not (self.dialect == "rust" and isinstance(value, int))]
        for chosen, is_integer in ((whole, True), (rest, False)):
            if chosen:
                only = frozenset(Decimal(str(value)) for value in chosen)
                shapes.append(Num(is_integer, only=only, is_free=False))
        booleans = frozenset(value for value in values if isinstance(value, bool))
        if booleans:
            shapes.append(Bool(booleans))
        if None in values:
            shapes.append(Null())
        return shapes + [self._constant(value) for value in values if isinstance(value, list | dict)]

    def _constant(self, value: list[Any] | dict[str, Any]) -> Shape:
        if isinstance(value, list):
            items = tuple((self.keep({"const": item}),) for item in value)
            return Arr(items, (), len(value), len(value))
        properties: dict[str, Node] = {name: (self.keep({"const": item}),) for name, item in value.items()}
        return Obj((Layer(properties, (), (NEVER,)),), tuple(value))

    # Negation: the union of what each keyword alone rules out.

    def _negative(self, schema: Mapping[str, Any]) -> list[Shape]:
        shapes: list[Shape] = []
        ignored = {
            "title",
            "description",
            "default",
            "examples",
            "$schema",
            "$id",
            "id",
            "$comment",
            "definitions",
            "$defs",
        }
        for keyword in schema:
            if keyword not in ignored and not keyword.startswith("x-"):
                shapes += self._ruled_out(keyword, schema)
        return shapes

    def _ruled_out(self, keyword: str, schema: Mapping[str, Any]) -> list[Shape]:
        value = schema[keyword]
        match keyword:
            case "$ref":
                return self.expand(Term(self._resolve(value), False))
            case "not":
                return self.expand(Term(value))
            case "allOf":
                return [shape for part in value for shape in self.expand(Term(part, False))]
            case "anyOf":
                found: list[Shape] = list(ANY)
                for part in value:
                    found = meet_all(found, self.expand(Term(part, False)))
                return found
            case "type":
                return self._other_types(_types(schema))
            case "const" | "enum":
                return self._other_values([value] if keyword == "const" else value)
            case "required":
                return [Obj(layers=(Layer({name: (NEVER,)}),)) for name in value]
            case "properties":
                return [
                    Obj(layers=(Layer({name: (Term(demand, False),)}),), required=(name,))
                    for name, demand in value.items()
                    if demand is not True and demand != {}
                ]
            case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
                return _outside(_schema_bounds({keyword: value}))
            case "pattern":
                try:
                    return [Str(compile_pattern(value, self.dialect).complement(TOP))]
                except PatternError as error:
                    raise UnheldError(str(error)) from error
            case "minLength":
                return [Str(most=value - 1)] if value else []
            case "maxLength":
                return [Str(least=value + 1)]
            case "minItems":
                return [Arr(most=value - 1)] if value else []
            case "maxItems":
                return [Arr(least=value + 1)]
            case "minProperties":
                return [Obj(most=value - 1)] if value else []
            case "maxProperties":
                return [Obj(least=value + 1)]
        raise UnheldError(f"the contrary of {keyword} is checked afterwards")

    def _other_types(self, types: Sequence[str]) -> list[Shape]:
        if "integer" in types and "number" not in types:
            raise UnheldError("numbers that are no integers are told apart afterwards")
        return [shape for name, shape in zip(_TYPES, ANY, strict=True) if name not in types]

    def _other_values(self, values: Sequence[Any]) -> list[Shape]:
        if any(isinstance(value, list | dict) and value for value in values):
            raise UnheldError("other arrays and objects are told apart afterwards")
        shapes: list[Shape] = [] if None in values else [Null()]
        booleans = frozenset({True, False}) - {value for value in values if isinstance(value, bool)}
        if booleans:
            shapes.append(Bool(booleans))
        numbers = frozenset(Decimal(str(v)) for v in values if isinstance(v, int | float) and not isinstance(v, bool))
        shapes.append(Num(excluded=numbers, is_free=not numbers))
        strings = [value for value in values if isinstance(value, str)]
        shapes.append(Str(words(strings).complement(TOP)) if strings else Str())
        return [*shapes, Arr(least=int([] in values)), Obj(least=int({} in values))]


@functools.cache
def _stripped() -> Dfa:
    """Strings that stripping white space, in any reading of it, leaves as they are."""
    edge = r"[^\x00-\x20\x7f-\u00a0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
    return full_match(rf"({edge}([^\x00]*{edge})?)?")


def node_key(node: Node) -> tuple[tuple[int, bool], ...]:
    """Equal for nodes that hold the same terms."""
    return tuple(sorted({term.key for term in node} - {(1, True)}))


def _unheld(reason: str) -> list[Shape]:
    raise UnheldError(reason)


def _with_notes(shape: Shape, notes: Sequence[str]) -> Shape:
    return replace(shape, notes=tuple(dict.fromkeys((*shape.notes, *notes)))) if notes else shape


def _with_span(shape: Shape, settings: Mapping[str, Any]) -> Shape:
    """Strings and numbers become extractive; the decimal in quotes goes, since one spelling is enough."""
    if isinstance(shape, Str | Num):
        return replace(shape, span=settings)
    if isinstance(shape, Null):
        return shape
    raise RefusedError("Span marks strings, numbers, dates, times and enums; mark the items of a list, not the list")


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    types = schema.get("type", _TYPES)
    return (types,) if isinstance(types, str) else tuple(dict.fromkeys(types))


def _schema_bounds(schema: Mapping[str, Any]) -> Bounds:
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
    return None if value is None else Decimal(str(value))


def _outside(bounds: Bounds) -> list[Shape]:
    shapes: list[Shape] = []
    if bounds.low is not None:
        shapes.append(Num(bounds=Bounds(None, bounds.low, False, not bounds.is_low_open), is_free=False))
    if bounds.high is not None:
        shapes.append(Num(bounds=Bounds(bounds.high, None, not bounds.is_high_open, False), is_free=False))
    return shapes


def _decimal(settings: Mapping[str, Any]) -> list[Shape]:
    """A decimal is spelt as a number, or as a string of the same digits."""
    from pipeline.decoding.spelling import number_language

    bounds = Bounds()
    for key, is_low, is_open in (("ge", True, False), ("gt", True, True), ("le", False, False), ("lt", False, True)):
        if key in settings:
            value = Decimal(settings[key])
            bounds = bounds.intersection(
                Bounds(value, None, is_open) if is_low else Bounds(None, value, False, is_open)
            )
    multiples = (Decimal(settings["multiple_of"]),) if "multiple_of" in settings else ()
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
    return [number, Str(number_language(exact), kind="decimal")]


def words(texts: Sequence[str]) -> Dfa:
    """Exactly these strings."""
    for word in texts:
        if any(0xD800 <= ord(char) <= 0xDFFF for char in word):
            raise RefusedError(f"{json.dumps(word)} holds a lone surrogate, which UTF-8 cannot spell")
    parts = []
    for word in dict.fromkeys(texts):
        edges = tuple(((ord(char), ord(char), index + 1),) for index, char in enumerate(word))
        parts.append(Dfa((*edges, ()), (False,) * len(word) + (True,), (-1,) * (len(word) + 1)))
    return union(parts) if parts else any_string(1, 0)
