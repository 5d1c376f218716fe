"""How far an automaton goes after what costs states without end: recursion, open values, counts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COPIED_STATES", "MOST_CHARACTERS", "MOST_STATES", "Effort", "efforts"]

MAX_STATES = 60_000
"""States that recursion and open values may take; the byte table then names states in 16 bits."""
MAX_SCHEMA_STATES = 150_000
"""As `MAX_STATES`, for JSON Schemas, which leave more open than models do."""
MOST_STATES = 250_000
"""States of a grammar at most."""
_WORK = 2
"""States spelt in all, inner parts counted again with what holds them, for each state that the automaton may have."""
MOST_CHARACTERS = 8192
COPIED_STATES = 60_000


@dataclass(frozen=True, slots=True)
class Effort:
    """How far an automaton goes after what costs states without end.

    Attributes:
        recursion_depth: how often a node may stand inside itself.
        any_depth: how deep values that the schema leaves open may nest; at 0, objects gain no undeclared properties.
        state_limit: states of one automaton, at most.
        work_limit: states of all the automata that are made on the way, at most; None for no limit.
        most_characters: greatest length of a string that is held; longer ones are checked afterwards.
        copied_states: states that the counted items of an array may take; beyond, they are counted afterwards.
    """

    recursion_depth: int
    any_depth: int
    state_limit: int
    work_limit: int | None = None
    most_characters: int = MOST_CHARACTERS
    copied_states: int = COPIED_STATES


def efforts(recursion_depth: int, *, is_schema: bool) -> list[Effort]:
    """How much is unrolled and counted, most first: the first automaton that the state limit allows is taken."""
    limit = MAX_SCHEMA_STATES if is_schema else MAX_STATES
    # Models leave little open, and a first attempt in vain would double their time.
    deepest = [Effort(recursion_depth, 5, limit // 4, work_limit=_WORK * limit // 4)] if is_schema else []
    return [
        *deepest,
        Effort(recursion_depth, 3, limit, work_limit=_WORK * limit),
        Effort(1, 2, limit, work_limit=_WORK * limit),
        Effort(1, 1, limit, work_limit=_WORK * limit),
        Effort(1, 0, MOST_STATES),
        Effort(1, 0, MOST_STATES, most_characters=1024, copied_states=8_000),
        Effort(1, 0, MOST_STATES, most_characters=128, copied_states=1_000),
    ]
