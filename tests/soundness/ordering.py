"""Puts the keys of a JSON value in the order in which a JSON Schema declares them."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

__all__ = ["in_declared_order"]

_MOST_STEPS = 64


def in_declared_order(value: Any, schema: Any) -> Any:
    """`value` with the keys of each object as its schema declares them, then those that none declares.

    An object's order is its own `properties` first, then those of `$ref`, `allOf`, `anyOf`, `oneOf`, `then`, `else`
    and `dependencies`, in the order written.
    """
    return _ordered(value, [schema], schema)


def _ordered(value: Any, schemas: list[Any], root: Any) -> Any:
    parts = _parts(schemas, root)
    if isinstance(value, dict):
        names: dict[str, None] = {}
        for part in parts:
            properties = part.get("properties")
            if isinstance(properties, dict):
                names.update(dict.fromkeys(properties))
        keys = [name for name in names if name in value]
        keys += [key for key in value if key not in names]
        return {key: _ordered(value[key], _of_key(parts, key), root) for key in keys}
    if isinstance(value, list):
        return [_ordered(item, _of_item(parts, index), root) for index, item in enumerate(value)]
    return value


def _of_key(parts: list[dict[str, Any]], key: str) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        properties = part.get("properties")
        if isinstance(properties, dict) and key in properties:
            found.append(properties[key])
        patterns = part.get("patternProperties")
        if isinstance(patterns, dict):
            found.extend(patterns.values())
        found.append(part.get("additionalProperties"))
    return found


def _of_item(parts: list[dict[str, Any]], index: int) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        items = part.get("items")
        prefix = items if isinstance(items, list) else part.get("prefixItems")
        if isinstance(prefix, list) and index < len(prefix):
            found.append(prefix[index])
        elif not isinstance(items, list):
            found.append(items)
        else:
            found.append(part.get("additionalItems"))
    return found


def _parts(schemas: list[Any], root: Any) -> list[dict[str, Any]]:
    """Every object schema that applies, or may apply, at one place: references and combinators followed."""
    parts: list[dict[str, Any]] = []
    pending = list(schemas)
    while pending and len(parts) < _MOST_STEPS:
        schema = pending.pop(0)
        if not isinstance(schema, dict) or any(schema is part for part in parts):
            continue
        parts.append(schema)
        more: list[Any] = [_resolved(schema.get("$ref"), root)]
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(keyword)
            more.extend(branches if isinstance(branches, list) else [])
        more.extend(schema.get(keyword) for keyword in ("then", "else"))
        dependencies = schema.get("dependencies")
        more.extend(dependencies.values() if isinstance(dependencies, dict) else [])
        pending = more + pending
    return parts


def _resolved(reference: Any, root: Any) -> Any:
    """The target of a local JSON pointer; None where there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    place = root
    for step in reference.removeprefix("#").split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(place, dict) and key in place:
            place = place[key]
        elif isinstance(place, list) and key.isdigit() and int(key) < len(place):
            place = place[int(key)]
        else:
            return None
    return place
