"""What type of value each keyword of a schema takes, by the meta-schemas of drafts 4 to 2020-12."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pipeline.decoding.refusals import RefusedError

__all__ = ["check_keywords"]

_MOST_NUMBER = 10**400
"""Beyond every double, and beyond what any field holds; such a number is not worked with, only refused."""


def check_keywords(schema: Mapping[str, Any]) -> None:
    """Looks at the keywords of one schema, not at those of the schemas in it.

    Raises:
        RefusedError: the value of a keyword is not of its type; the message names the keyword.
    """
    for keyword, value in schema.items():
        if (wanted := _WANTED.get(keyword)) is not None and not wanted[1](value):
            raise RefusedError(f"{keyword} must be {wanted[0]}, and is not")


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return is_number and -_MOST_NUMBER < value < _MOST_NUMBER  # False for what is not a number


def _is_bound(value: Any) -> bool:
    return isinstance(value, bool) or _is_number(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_step(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_names(value: Any) -> bool:
    return _is_list(value) and all(isinstance(name, str) for name in value)


def _is_types(value: Any) -> bool:
    return isinstance(value, str) or _is_names(value)


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_map_of_names(value: Any) -> bool:
    return _is_map(value) and all(map(_is_names, value.values()))


def _is_json(value: Any) -> bool:
    if _is_list(value):
        return all(map(_is_json, value))
    if isinstance(value, Mapping):
        return _is_map(value) and all(map(_is_json, value.values()))
    return value is None or isinstance(value, bool | str) or _is_number(value)


def _is_choice(value: Any) -> bool:
    return _is_list(value) and _is_json(value)


_Wanted = tuple[str, Callable[[Any], bool]]


def _each(keywords: str, wanted: str, holds: Callable[[Any], bool]) -> dict[str, _Wanted]:
    return dict.fromkeys(keywords.split(), (wanted, holds))


_WANTED: Mapping[str, _Wanted] = {
    **_each("type", "the name of a type or a list of them", _is_types),
    **_each("minimum maximum", "a finite number", _is_number),
    **_each("exclusiveMinimum exclusiveMaximum", "a finite number, or true or false", _is_bound),
    **_each("multipleOf", "a finite number above zero", _is_step),
    **_each("minLength maxLength minItems maxItems minProperties maxProperties", "a count", _is_count),
    **_each("pattern format", "a string", _is_text),
    **_each("const", "a value that JSON can spell", _is_json),
    **_each("enum", "a list of values that JSON can spell", _is_choice),
    **_each("allOf anyOf oneOf prefixItems", "a list", _is_list),
    **_each("required", "a list of names", _is_names),
    **_each("properties patternProperties dependencies dependentSchemas", "a map of names", _is_map),
    **_each("dependentRequired", "a map of names to lists of names", _is_map_of_names),
}
