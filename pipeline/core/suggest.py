"""Owns the hint of an error about a name that is not there: the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import get_args

from pydantic import BaseModel

__all__ = ["did_you_mean", "meant_key", "section_of"]

_Model = type[BaseModel]


def did_you_mean(name: str, known: Collection[str]) -> str:
    """`; did you mean 'text'?`, or nothing where no known name is close."""
    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


def meant_key(root: _Model, place: Sequence[int | str]) -> str:
    """As `did_you_mean`, for an unknown key: one of its section, or the one of its name in another section.

    Args:
        root: the whole model, whose fields are sections.
        place: the key's path, as Pydantic gives it.
    """
    section: _Model | None = root
    for part in place[:-1]:
        if section is not None and isinstance(part, str):
            section = section_of(section, part)
    if section is None:
        return ""
    name = str(place[-1])
    elsewhere = [f"{key}.{name}" for key in root.model_fields if name in _keys(section_of(root, key))]
    if len(place) > 1 and name in root.model_fields:
        elsewhere.append(name)
    return f"; did you mean {elsewhere[0]!r}?" if len(elsewhere) == 1 else did_you_mean(name, _keys(section))


def _keys(section: _Model | None) -> Collection[str]:
    return () if section is None else section.model_fields.keys()


def section_of(section: _Model, key: str) -> _Model | None:
    """The section that stands under a key, itself or in a list; None where a value does."""
    annotation = section.model_fields[key].annotation
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
    return next((kind for kind in kinds if issubclass(kind, BaseModel)), None)
