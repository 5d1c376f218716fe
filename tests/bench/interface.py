"""What the benchmarks ask of an engine of guided decoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

__all__ = ["BenchEngine", "CompileRefusedError", "Compiled", "Matcher", "Schema", "mask_words", "schema_of"]

Schema = Mapping[str, Any] | bool | type


class CompileRefusedError(Exception):
    """The engine says itself that it cannot compile the schema."""


class Matcher(Protocol):
    """One sequence."""

    def write_mask(self) -> None:
        """Fills the matcher's own bit mask with the ids that are legal now."""

    def advance(self, token_id: int) -> bool:
        """Takes one id; False where it is illegal."""

    def is_accepting(self) -> bool:
        """Whether a whole record has been taken."""


class Compiled(Protocol):
    """A compiled schema.  `verdict` is `enforced`, `widened`, or `-` where the engine gives none."""

    verdict: str
    size_bytes: int | None

    def matcher(self, budget_tokens: int | None = None) -> Matcher:
        """A new sequence at the start; the budget is for engines that know one."""


class BenchEngine(Protocol):
    """`version` is the distribution's."""

    name: str
    version: str

    def compile(self, schema: Schema) -> Compiled:
        """Compiles a JSON Schema, or a Pydantic model.

        Raises:
            CompileRefusedError: the engine refuses it; any other exception is the engine's own and counts as an error.
        """


def schema_of(schema: Schema) -> Any:
    """JSON Schema of a Pydantic model; a schema as it is."""
    from pydantic import TypeAdapter

    return TypeAdapter(schema).json_schema() if isinstance(schema, type) else schema


def mask_words(size: int) -> np.ndarray[Any, Any]:
    return np.zeros((size + 31) // 32, np.int32)
