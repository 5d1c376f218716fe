"""One entry of the catalogue: a type that a user may write, and what may be expected of its grammar."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import strategies as st
from pydantic import TypeAdapter

__all__ = ["Entry", "entry"]


@dataclass(frozen=True)
class Entry:
    """A named type with expectation hints.

    `may_be_refused` and `may_widen` say which verdicts the compiler is free to give; every other entry must be
    compiled with all verdicts enforced.  `over_restricting` says in words what the grammar leaves out on purpose.
    `instances` draws Python values of the type, or JSON values that validate into it; where it is None they come from
    the type's JSON Schema.  With `over_restricting`, an explicit `instances` draws only what the grammar promises.

    Tags that the tests read: `no_json` (no JSON text validates), `as_drawn` (the dump differs from what was read),
    `unwritten` (Pydantic itself writes the values in a form that the grammar leaves out).
    """

    name: str
    type: Any
    tags: frozenset[str] = frozenset()
    may_be_refused: bool = False
    may_widen: bool = False
    over_restricting: str | None = None
    instances: st.SearchStrategy[Any] | None = None

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's validator of the type, which takes longer to build than a text to validate."""
        return TypeAdapter(self.type)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The type's JSON Schema, as Pydantic has it."""
        return self.adapter.json_schema()


def entry(
    name: str,
    tp: Any,
    *tags: str,
    may_be_refused: bool = False,
    may_widen: bool = False,
    over_restricting: str | None = None,
    instances: st.SearchStrategy[Any] | None = None,
) -> Entry:
    """An `Entry` with its tags as arguments."""
    return Entry(name, tp, frozenset(tags), may_be_refused, may_widen, over_restricting, instances)
