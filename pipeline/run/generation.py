"""What is asked for a document, and what comes of it: the values that a policy takes and returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pipeline.engine.base import BackendName, Completion

__all__ = ["Ended", "Generation", "Sampling", "Usage"]


class Ended(enum.Enum):
    """How a generation ended, by its guide and its counts alone."""

    COMPLETE = enum.auto()
    CUT = enum.auto()
    """Out of tokens before the record was complete."""
    RUNAWAY = enum.auto()
    """Stopped, or closed, because it was repeating itself."""
    UNKNOWN = enum.auto()
    """Ended by itself without a guide that could tell; the parser decides."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a document's requests took together."""

    requests: int = 0
    cached_tokens: int = 0
    queued_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0

    def added(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def plus(self, completion: Completion) -> Usage:
        return Usage(
            self.requests + 1,
            # Further requests say the same prompt again, which is in the cache by then.
            self.cached_tokens if self.requests else completion.cached_tokens,
            self.queued_s + completion.queued_s,
            self.prefill_s + completion.prefill_s,
            self.decode_s + completion.decode_s,
        )


@dataclass(frozen=True, slots=True)
class Sampling:
    """What every request of one document shares; `seed` is the document's own."""

    request_id: str
    prompt_ids: tuple[int, ...]
    backend: BackendName | None
    guide_name: str
    temperature: float = 0.0
    seed: int | None = None
    reserve_tokens: tuple[int, ...] = ()
    document: bytes | None = None
    """What extractive fields may copy; see `GuideRequest`."""


@dataclass(frozen=True, slots=True)
class Generation:
    """The tokens kept for a document, and how they came about."""

    token_ids: tuple[int, ...]
    ended: Ended
    budget_tokens: int
    usage: Usage
    text: str | None = None
    """The engine's own text; None where the tokens come from more than one request."""
    slack_tokens: int | None = None
    is_closed: bool = False
    """Whether the budget, or the end put to a repetition, changed the record."""
    shaped_fields: tuple[str, ...] = ()
    detail: str | None = None
