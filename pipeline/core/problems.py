"""Owns the words for what Pydantic refuses of a job spec: where, what is wanted there, and the key that was meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from pipeline.core.suggest import meant_key, section_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["problems"]

_WANTED = {
    "missing": "is required",
    "model_type": "is a section: its keys stand beneath it, indented",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping of keys",
    "string_type": "must be text; put a number or a date in quotes",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be an integer"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
}
"""By Pydantic's type of an error; the others speak for themselves."""


def problems(error: ValidationError, root: type[BaseModel]) -> str:
    """All on one line, each key once, without the values, which may be secrets.

    Args:
        error: of validating `root`.
        root: the whole model, whose fields are sections.
    """
    found: dict[str, dict[str, None]] = {}
    for item in error.errors(include_url=False, include_input=False):
        found.setdefault(".".join(_place(root, item["loc"])), {})[_wanted(root, item)] = None
    # Of a value that may be of several kinds, the kind that was meant is the one whose inside was looked at.
    outer = {place for place in found if any(other.startswith(f"{place}.") for other in found)}
    return "; ".join(
        f"{place}: {' or '.join(wanted)}" if place else " or ".join(wanted)
        for place, wanted in found.items()
        if place not in outer
    )


def _place(root: type[BaseModel], path: Sequence[int | str]) -> Iterator[str]:
    """The keys and positions of a path, without the names that Pydantic gives to the kinds of a value."""
    section: type[BaseModel] | None = root
    for part in path:
        if isinstance(part, int):
            yield str(part)
        elif section is not None:
            yield part
            section = section_of(section, part) if part in section.model_fields else None


def _wanted(root: type[BaseModel], item: ErrorDetails) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown key" + meant_key(root, item["loc"])
    said = item["msg"].removeprefix("Value error, ").replace("Input should be ", "must be ", 1)
    return _WANTED.get(item["type"], said)
