"""A record type's JSON Schema as a tree of fields: references followed, `null` left out, paths as the guide names them.

For those who read a schema as its author does (`lint`, typical values).  What a schema means exactly is decided by
`normalize`, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pipeline.decoding.field_tags import RECORD

__all__ = ["SchemaField", "fields_of"]


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One place of a record.

    Attributes:
        path: as `items[].amount`, `prices.*` or `pair[0]`.
        name: the property's name; empty for the record, for items of a list and for values of a map.
        schema: its own keywords, `$ref` and `null` resolved; of a union `anyOf` alone, branches resolved.
        description: the field's own, else that of the type it refers to.
        is_required: whether every record has it.
        children: properties, items, map values, those of all branches of a union.
    """

    path: str
    name: str
    schema: Mapping[str, Any]
    description: str | None = None
    is_required: bool = True
    children: tuple[SchemaField, ...] = field(default=())

    def walk(self) -> Iterator[SchemaField]:
        """This field and all below it, in order of declaration."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def types(self) -> frozenset[str]:
        """JSON types of its values, as far as its keywords name them."""
        found: set[str] = set()
        for branch in self.schema.get("anyOf", (self.schema,)):
            named = branch.get("type", ())
            found.update((named,) if isinstance(named, str) else named)
            if "x-number" in branch:
                found.add("number")
        return frozenset(found)

    @property
    def choices(self) -> tuple[Any, ...] | None:
        """The values of an enum or a constant, `null` left out; None for other fields."""
        values = self.schema.get("enum", [self.schema["const"]] if "const" in self.schema else None)
        return None if values is None else tuple(value for value in values if value is not None)


def fields_of(schema: Mapping[str, Any]) -> SchemaField:
    """The tree of a schema document; a recursive type is followed once."""
    return _Reader(schema).field(RECORD, "", schema, is_required=True, open_references=())


_Branch: TypeAlias = tuple[Mapping[str, Any], tuple[str, ...]]
"""Keywords, and the references that were followed to them."""

_MOST_BRANCHES = 32


def _joined(first: _Branch, second: _Branch) -> _Branch:
    return {**first[0], **second[0]}, tuple(dict.fromkeys(first[1] + second[1]))


class _Reader:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def field(
        self, path: str, name: str, schema: Any, *, is_required: bool, open_references: tuple[str, ...]
    ) -> SchemaField:
        branches = self._branches(schema, open_references)
        solid = [(own, references) for own, references in branches if own.get("type") != "null"]
        own: Mapping[str, Any] = {}
        if len(solid) == 1:
            own = solid[0][0]
        elif solid:
            own = {"anyOf": [branch for branch, _ in solid]}
        described = schema.get("description") if isinstance(schema, Mapping) else None
        children: dict[str, SchemaField] = {}
        for branch, references in solid:
            for child in self._children(path, branch, references):
                children.setdefault(child.path, child)
        return SchemaField(path, name, own, described or own.get("description"), is_required, tuple(children.values()))

    def _branches(self, schema: Any, references: tuple[str, ...]) -> list[_Branch]:
        """What a schema comes to: one set of keywords for each way to satisfy it, as far as that is plain to see."""
        if not isinstance(schema, Mapping):
            return [({}, references)]
        own = {key: value for key, value in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
        conjuncts: list[list[_Branch]] = []
        if "$ref" in schema and (reference := str(schema["$ref"])) not in references:
            conjuncts.append(self._branches(self._resolved(reference), (*references, reference)))
        conjuncts += [self._branches(part, references) for part in schema.get("allOf", ())]
        for key in ("anyOf", "oneOf"):
            if alternatives := [branch for part in schema.get(key, ()) for branch in self._branches(part, references)]:
                conjuncts.append(alternatives)
        found: list[_Branch] = [({}, references)]
        for alternatives in conjuncts:
            found = [_joined(first, second) for first in found for second in alternatives][:_MOST_BRANCHES]
        return [({**branch, **own}, opened) for branch, opened in found]

    def _resolved(self, reference: str) -> Any:
        target: Any = self._document
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
        return target

    def _children(self, path: str, schema: Mapping[str, Any], references: tuple[str, ...]) -> Iterator[SchemaField]:
        stem = "" if path == RECORD else path
        required = schema.get("required", ())
        for name, below in schema.get("properties", {}).items():
            yield self.field(
                f"{stem}.{name}" if stem else name,
                name,
                below,
                is_required=name in required,
                open_references=references,
            )
        for index, below in enumerate(schema.get("prefixItems", ())):
            yield self.field(f"{stem}[{index}]", "", below, is_required=True, open_references=references)
        for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
            below = schema.get(key)
            if isinstance(below, Mapping):
                place = f"{stem}{mark}" if stem else mark.lstrip(".")
                yield self.field(place, "", below, is_required=False, open_references=references)
