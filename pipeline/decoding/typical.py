"""Guesses at what a record will hold before any was generated: a typical value for each field, and how many of each.

Guesses only, for `lint` and for an estimate without a model.  Nothing that is promised rests on them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.decoding.field_tags import RECORD
from pipeline.decoding.schema_fields import SchemaField

__all__ = ["example_pieces", "typical_pieces"]

ITEMS = 4
"""Items of a list, entries of a map, where its bounds allow them."""
CHARACTERS = 24
LONG_CHARACTERS = 160
_LONG = re.compile(
    r"(.*_)?(description|summary|reason|reasoning|rationale|explanation|analysis|evidence|thoughts?|comments?|notes?|"
    r"text|body|abstract|justification)(_.*)?"
)
_MIDDLING = re.compile(r"(.*_)?(address|title|subject|url|quote)(_.*)?")
_WORDS = "Harbour Street Trading Company and Partners, Unit 7, near the old market square in the north of the town; "
_SPELLINGS = {
    "date": "2024-05-17",
    "datetime": "2024-05-17T09:30:00Z",
    "date-time": "2024-05-17T09:30:00Z",
    "time": "09:30:00",
    "timedelta": "PT1H30M",
    "duration": "PT1H30M",
    "uuid": "3f2c8a1e-5b7d-4c9a-8e6f-1a2b3c4d5e6f",
    "url": "https://www.example.com/products/42",
    "uri": "https://www.example.com/products/42",
    "email": "accounts@example.com",
    "ipv4": "192.0.2.17",
}


def typical_pieces(record: SchemaField) -> Iterator[tuple[str, str, float]]:
    """For each field below a record: its path, its own text in a record (`"name":value,`), and how often it occurs."""
    yield from _pieces(record, 1.0)


def _pieces(field: SchemaField, times: float) -> Iterator[tuple[str, str, float]]:
    key = f"{json.dumps(field.name, ensure_ascii=False)}:" if field.name else ""
    if "array" in field.types or (field.children and field.children[0].path.endswith("*")):
        yield field.path, f"{key}[],", times
        each = _count(field.schema)
        for child in field.children:
            yield from _pieces(child, times if re.search(r"\[\d+\]$", child.path) else times * each)
    elif field.children:
        yield field.path, f"{key}{{}},", times
        for child in field.children:
            yield from _pieces(child, times)
    else:
        yield field.path, f"{key}{json.dumps(_value(field), ensure_ascii=False)},", times


def _count(schema: Mapping[str, Any]) -> int:
    least = schema.get("minItems", schema.get("minProperties", 0))
    most = schema.get("maxItems", schema.get("maxProperties", ITEMS))
    return int(max(least, min(ITEMS, most)))


def _value(field: SchemaField) -> Any:
    choices = field.choices
    if choices:
        return sorted(choices, key=lambda value: len(str(value)))[len(choices) // 2]
    schema: Mapping[str, Any] = field.schema.get("anyOf", (field.schema,))[0]
    spelling = _SPELLINGS.get(schema.get("x-string", {}).get("kind", schema.get("format", "")))
    if spelling is not None:
        return spelling
    types = field.types
    if "string" in types:
        return _text(field.name, schema)
    if "integer" in types:
        return int(min(schema.get("maximum", 128), max(schema.get("minimum", 128), 128)))
    if "number" in types:
        return _number(schema.get("x-number", {}))
    return "boolean" in types or None


def _text(name: str, schema: Mapping[str, Any]) -> str:
    wanted = LONG_CHARACTERS if _LONG.fullmatch(name) else 2 * CHARACTERS if _MIDDLING.fullmatch(name) else CHARACTERS
    wanted = max(int(schema.get("minLength", 0)), min(wanted, int(schema.get("maxLength", wanted))))
    return (_WORDS * (wanted // len(_WORDS) + 1))[:wanted]


def _number(settings: Mapping[str, Any]) -> float:
    places = int(settings.get("decimal_places", 2))
    whole = min(3, int(settings.get("max_digits", 5)) - places)
    return round(float(f"{'128'[: max(1, whole)]}.50"), max(0, places))


def example_pieces(record: SchemaField, examples: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, float]]:
    """As `typical_pieces`, from worked examples: what they hold, each counted as its share of one record."""
    for example in examples:
        yield from _found(record, dict(example), 1 / len(examples))


def _found(field: SchemaField, value: Any, times: float) -> Iterator[tuple[str, str, float]]:
    key = f"{json.dumps(field.name, ensure_ascii=False)}:" if field.name else ""
    below = {child.path: child for child in field.children}
    stem = "" if field.path == RECORD else field.path
    if isinstance(value, list) and below:
        yield field.path, f"{key}[],", times
        for index, item in enumerate(value):
            child = below.get(f"{stem}[{index}]") or below.get(f"{stem}[]")
            if child is not None:
                yield from _found(child, item, times)
    elif isinstance(value, dict) and below:
        yield field.path, f"{key}{{}},", times
        for name, item in value.items():
            child = below.get(f"{stem}.{name}" if stem else name) or below.get(f"{stem}.*" if stem else "*")
            if child is not None:
                yield from _found(child, item, times)
    else:
        yield field.path, f"{key}{json.dumps(value, ensure_ascii=False, separators=(',', ':'), default=str)},", times
