"""How it is said that a schema asks for what no automaton holds: refused, or noted for a check afterwards."""

from __future__ import annotations

__all__ = ["RefusedError", "UnheldError"]


class RefusedError(Exception):
    """A construct for which there is no sound automaton; the message says why and what to write instead."""


class UnheldError(Exception):
    """A keyword that cannot be held exactly; it becomes a note, and is checked afterwards."""
