"""From JSON Schema keywords to shapes: references, combinations, negation.

What cannot be held exactly is either noted on the shape (the field is then `widened`, and Pydantic or a validator
decides afterwards) or refused by name.  Nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.core.span import Span
from pipeline.core.suggest import did_you_mean
from pipeline.decoding.automata import StateLimitError
from pipeline.decoding.char_classes import Dialect
from pipeline.decoding.constants import only_values
from pipeline.decoding.keyword_types import check_keywords
from pipeline.decoding.negation import breached, ruled_out, settled
from pipeline.decoding.references import References
from pipeline.decoding.refusals import RefusedError, UnheldError
from pipeline.decoding.shapes import ANY, NEVER, Arr, Layer, Node, Null, Num, Obj, Shape, Str, Term, in_order, meet_all
from pipeline.decoding.type_keywords import own_layer, own_shapes, types_of, without_narrowed

__all__ = ["Normalizer", "node_key"]


_SPAN = TypeAdapter(Span)
_UNHELD = ("contains", "minContains", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
"""Keywords that are checked afterwards."""


class Normalizer:
    """Expands nodes of one schema document.

    Args:
        schema: the document.
        dialect: how `pattern` is read.
        is_wide: whether languages that hold less than they might (formats, fractional multiples) are left out, so that
            whatever satisfies a node is in its shapes.
    """

    def __init__(self, schema: Any, *, dialect: Dialect, is_wide: bool = False) -> None:
        self._document = schema
        self._is_wide = is_wide
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
            found = [part for shape in found for part in settled(shape)]
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
            if "$ref" in schema and self.references.ref_hides_siblings:
                return self.expand(Term(self._resolve(schema["$ref"], schema), term.is_positive))
            check_keywords(schema)
            return self._positive(schema) if term.is_positive else self._negative(schema)
        finally:
            self._open.pop()

    def _positive(self, schema: Mapping[str, Any]) -> list[Shape]:
        said = _without_own(schema) if self.dialect == "ecma" else schema
        if "x-refused" in said:
            raise RefusedError(said["x-refused"])
        notes: list[str] = list(said.get("x-checked", ()))
        said = without_narrowed(said) if self._is_wide else said
        shapes: list[Shape] = own_shapes(said, dialect=self.dialect, keep=self.keep)
        for keyword, expansion in self._combinations(schema):
            try:
                shapes = meet_all(shapes, expansion())
            except UnheldError as error:
                notes.append(f"{keyword}: {error}")
            except StateLimitError:
                notes.append(f"{keyword}: too large for an automaton")
        if "x-span" in schema:
            settings = _span_settings(schema["x-span"])
            shapes = [_with_span(shape, settings) for shape in shapes]
        return [_with_notes(shape, notes) for shape in shapes]

    def _resolve(self, reference: Any, holder: Mapping[str, Any]) -> Any:
        target = self.references.resolve(reference, holder) if isinstance(reference, str) else None
        if target is None:
            raise RefusedError(f"$ref {reference!r} leads nowhere in this schema; remote references are not followed")
        return target

    def _combinations(self, schema: Mapping[str, Any]) -> Iterable[tuple[str, Callable[[], list[Shape]]]]:
        if "$ref" in schema:
            yield "$ref", lambda: self.expand(Term(self._resolve(schema["$ref"], schema)))
        for part in schema.get("allOf", ()):
            yield "allOf", lambda part=part: self.expand(Term(part))  # type: ignore[misc]
        if "anyOf" in schema:
            yield "anyOf", lambda: self._union(Term(part) for part in schema["anyOf"])
        if "oneOf" in schema:
            yield "oneOf", lambda: self._one_of(schema["oneOf"])
        if "const" in schema:
            yield "const", lambda: only_values([schema["const"]], dialect=self.dialect, keep=self.keep)
        if "enum" in schema:
            yield "enum", lambda: only_values(schema["enum"], dialect=self.dialect, keep=self.keep)
        if "not" in schema:
            yield "not", lambda: self.expand(Term(schema["not"], False))
        if "if" in schema and ("then" in schema or "else" in schema):
            yield "if", lambda: self._conditional(schema)
        for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            for name, demand in schema.get(keyword, {}).items():
                yield keyword, lambda name=name, demand=demand: self._dependent(name, demand)  # type: ignore[misc]
        for keyword in _UNHELD:
            if keyword in schema and not (keyword.startswith("unevaluated") and schema[keyword] is True):
                yield keyword, lambda: _unheld("is checked afterwards")
        if schema.get("uniqueItems"):
            yield "uniqueItems", lambda: self._unique(schema)

    def _union(self, terms: Iterable[Term]) -> list[Shape]:
        return self._in_one_order([shape for term in terms for shape in self.expand(term)])

    def _in_one_order(self, shapes: list[Shape]) -> list[Shape]:
        """The branches of a schema declare their properties in one order, that in which any names them first.

        A record type's branches are classes, each with an order of its own.
        """
        if self.dialect == "rust":
            return shapes
        order = dict.fromkeys(name for shape in shapes if isinstance(shape, Obj) for name in shape.declared)
        return [in_order(shape, order) if isinstance(shape, Obj) else shape for shape in shapes]

    def _unique(self, schema: Mapping[str, Any]) -> list[Shape]:
        if schema.get("maxItems", 2) <= 1 or ("type" in schema and "array" not in types_of(schema)):
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
        wide = self._wide
        if all(wide.is_disjoint((Term(a),), (Term(b),)) for i, a in enumerate(branches) for b in branches[:i]):
            return self._union(Term(branch) for branch in branches)
        shapes: list[Shape] = []
        for index, branch in enumerate(branches):
            alone = self.expand(Term(branch))
            for other, rival in enumerate(branches):
                if other != index and alone and not wide.is_disjoint((Term(branch),), (Term(rival),)):
                    alone = meet_all(alone, self.expand(Term(rival, False)))
            shapes += alone
        return self._in_one_order(shapes)

    @cached_property
    def _wide(self) -> Normalizer:
        """Judges whether branches can hold together: what a language leaves out must not tell them apart."""
        return self if self._is_wide else Normalizer(self._document, dialect=self.dialect, is_wide=True)

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
        for keyword, value in schema.items():
            if keyword == "additionalProperties":
                try:
                    shapes += breached(schema, own_layer(schema, self.dialect))
                except RefusedError as error:
                    raise UnheldError(str(error)) from error
            elif keyword not in ignored and not keyword.startswith("x-"):
                shapes += self._ruled_out(keyword, value, schema)
        return shapes

    def _ruled_out(self, keyword: str, value: Any, schema: Mapping[str, Any]) -> list[Shape]:
        match keyword:
            case "$ref":
                return self.expand(Term(self._resolve(value, schema), False))
            case "not":
                return self.expand(Term(value))
            case "allOf":
                return [shape for part in value for shape in self.expand(Term(part, False))]
            case "anyOf":
                found: list[Shape] = list(ANY)
                for part in value:
                    found = meet_all(found, self.expand(Term(part, False)))
                return found
        return ruled_out(keyword, schema, self.dialect)


def node_key(node: Node) -> tuple[tuple[int, bool], ...]:
    """Equal for nodes that hold the same terms."""
    return tuple(sorted({term.key for term in node} - {(1, True)}))


def _unheld(reason: str) -> list[Shape]:
    raise UnheldError(reason)


def _without_own(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without keywords of our own, which only a record type's schema may use; anyone's may begin so."""
    return {keyword: value for keyword, value in schema.items() if not keyword.startswith("x-")}


def _with_notes(shape: Shape, notes: Sequence[str]) -> Shape:
    return replace(shape, notes=tuple(dict.fromkeys((*shape.notes, *notes)))) if notes else shape


def _span_settings(said: Any) -> dict[str, Any]:
    """All settings of a mark.

    Raises:
        RefusedError: one is unknown or has a wrong value.
    """
    try:
        return _SPAN.validate_python(said).settings
    except ValidationError as error:
        wrong = error.errors()[0]
        place = ".".join(("x-span", *map(str, wrong["loc"])))
        if wrong["type"] == "unexpected_keyword_argument":
            raise RefusedError(f"{place}: unknown key{did_you_mean(str(wrong['loc'][-1]), Span.__slots__)}") from error
        raise RefusedError(f"{place}: {wrong.get('ctx', {}).get('error', wrong['msg'])}") from error


def _with_span(shape: Shape, settings: Mapping[str, Any]) -> Shape:
    """Strings and numbers become extractive; the decimal in quotes goes, since one spelling is enough."""
    if isinstance(shape, Str | Num):
        return replace(shape, span=settings)
    if isinstance(shape, Null):
        return shape
    raise RefusedError("Span marks strings, numbers, dates, times and enums; mark the items of a list, not the list")
