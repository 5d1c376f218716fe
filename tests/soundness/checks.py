"""What is true of every text that a guide lets through: the properties the proof checks, one text at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

__all__ = ["DuplicateKeyError", "complaint", "strict_json"]


class DuplicateKeyError(ValueError):
    """An object names a key twice."""


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DuplicateKeyError("duplicate key")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def strict_json(text: bytes) -> Any:
    """The value of strict JSON text.

    Raises:
        ValueError: it is not UTF-8 (`UnicodeDecodeError`), not JSON (`JSONDecodeError`), holds NaN or Infinity, or
            names a key twice (`DuplicateKeyError`).
    """
    return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)


def complaint(adapter: TypeAdapter[Any], text: bytes, *, validates: bool, allow_duplicate_keys: bool) -> str | None:
    """Why `text` breaks the proof; None where it does not.

    Args:
        validates: the type must accept the text (all verdicts are enforced); otherwise it need only be JSON.
        allow_duplicate_keys: the type has keys of free choice, which no finite automaton can keep apart.
    """
    try:
        strict_json(text)
    except DuplicateKeyError as error:
        if not allow_duplicate_keys:
            return str(error)
    except ValueError as error:
        return f"not JSON: {error}"
    if not validates:
        return None
    try:
        adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{first['type']} at {place or 'the root'}: {first['msg']}"
    except ValueError as error:
        # A model's own `__init__` may raise outside Pydantic's frame.
        return f"ValueError: {error}"
    return None
