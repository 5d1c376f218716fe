"""How far an automaton goes after what costs states without end: recursion, open values, counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["MOST_CHARACTERS", "MOST_STATES", "Effort", "efforts"]

MAX_STATES = 60_000
"""States that recursion and open values may take; the byte table then names states in 16 bits."""
MAX_SCHEMA_STATES = 150_000
"""As `MAX_STATES`, for JSON Schemas, which leave more open than models do."""
MOST_STATES = 250_000
"""States of a grammar at most."""
MOST_CHARACTERS = 8192
"""Greatest length of a string that any automaton holds."""
COUNTED_STATES = 60_000
"""States that the counted items of an array may take."""
_WORK = 2
"""States spelt in all, inner parts counted again with what holds them, for each state that the automaton may have."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How far an automaton goes after what costs states without end.

    Attributes:
        recursion_depth: how often a node may stand inside itself.
        any_depth: how deep values that the schema leaves open may nest; at 0, objects gain no undeclared properties.
        state_limit: states of one automaton, at most.
        work_limit: states of all the automata that are made on the way, at most; None for no limit.
        most_characters: greatest length of a string that is held; longer ones are checked afterwards.
        counted_states: states that the counted items of an array may take.
        is_lax: whether a greatest count that takes more is checked afterwards; else a smaller effort is called for.
        is_last: whether a least count that takes more is refused, there being no smaller effort.
    """

    recursion_depth: int
    any_depth: int
    state_limit: int
    work_limit: int | None = None
    most_characters: int = MOST_CHARACTERS
    counted_states: int = COUNTED_STATES
    is_lax: bool = False
    is_last: bool = False

    def is_as(self, other: Effort) -> bool:
        """Whether the two differ in `any_depth` at most."""
        return replace(self, any_depth=other.any_depth) == other


def efforts(recursion_depth: int, *, is_schema: bool) -> list[Effort]:
    """What to try, one after the other: the first automaton that the limits allow is taken.

    Depth of open values is given up first, then depth of recursion; only then is anything that could be held left to
    be checked afterwards: greatest counts, and lengths of strings at the very end.
    """
    limit = MAX_SCHEMA_STATES if is_schema else MAX_STATES
    # Models leave little open, and a first attempt in vain would double their time.
    deepest = [Effort(recursion_depth, 5, limit // 4, _WORK * limit // 4)] if is_schema else []
    depths = ((recursion_depth, 3), (recursion_depth, 2), (recursion_depth, 1), (1, 2), (1, 1))
    strict = [*deepest, *(Effort(*depth, limit, _WORK * limit) for depth in depths), Effort(1, 0, MOST_STATES)]
    return [
        *strict,
        *(replace(effort, is_lax=True) for effort in strict),
        Effort(1, 0, MOST_STATES, most_characters=1024, counted_states=8_000, is_lax=True),
        Effort(1, 0, MOST_STATES, most_characters=128, counted_states=1_000, is_lax=True, is_last=True),
    ]
