"""The seam between a run and whatever generates text: one protocol and the values that cross it.

An engine turns prompts (token ids) into completions (token ids).  It knows guides by name only; what a completion
means is decided by its caller, from the guide and the parser, never from `finish`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

__all__ = ["BackendName", "Completion", "Engine", "EngineMetrics", "Finish", "GuideRequest", "Request"]

BackendName: TypeAlias = Literal["recordmill", "outlines", "xgrammar", "guidance"]
"""What guides a request."""
Finish: TypeAlias = Literal["stop", "length", "repetition"]
"""How a completion ended, for the engine; it says nothing of the record."""


@dataclass(frozen=True, slots=True)
class GuideRequest:
    """How one request is guided.

    `name` is a guide's fingerprint, or for the stock backends the JSON Schema itself.  `prefix_tokens` says how many
    of the prompt's last ids already belong to the record (a continuation).  `budget_tokens` is the most tokens the
    whole record may take, those of the prefix included; None turns the budget mask off.
    """

    backend: BackendName
    name: str
    budget_tokens: int | None = None
    prefix_tokens: int = 0
    reserve_tokens: tuple[int, ...] = ()
    """Tokens kept back for each later field, by the guide's field index; empty for none."""
    document: bytes | None = None
    """What extractive fields may copy, as `SpanDocument.to_bytes` has it; None for guides without any."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt."""

    request_id: str
    prompt_ids: Sequence[int]
    max_tokens: int
    guide: GuideRequest | None = None
    temperature: float = 0.0
    seed: int | None = None
    logprobs: int | None = None
    """How many alternatives' log-probabilities to return a step, for `trace`; None for none."""
    scored_tokens: int = 0
    """How many of the prompt's last ids to score instead of writing more: what the model, under no mask, thought of
    each, with `logprobs` alternatives."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back: ids without the prompt's, and their text; an end-of-sequence id is not among them."""

    token_ids: tuple[int, ...]
    text: str
    finish: Finish
    cached_tokens: int = 0
    """Prompt tokens served by the prefix cache."""
    queued_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    logprobs: tuple[Mapping[int, float], ...] = ()
    """For each id written, log-probabilities by id, under the request's mask."""
    scores: tuple[Mapping[int, float], ...] = ()
    """For each id that was to be scored, log-probabilities by id, its own among them."""


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """What an engine says of itself since its start."""

    values: Mapping[str, float] = field(default_factory=dict)


class Engine(Protocol):
    """Turns requests into completions, many at a time."""

    @property
    def name(self) -> str:
        """What generates and in which version, for the part's `_engine` column."""

    @property
    def max_model_len(self) -> int:
        """Tokens that prompt and completion may take together."""

    async def generate(self, request: Request) -> Completion:
        """One completion.

        Raises:
            RequestRefusedError: this request cannot be served; others can.
            EngineDeadError: the engine is gone or silent; no request will be served.
        """

    def metrics(self) -> EngineMetrics:
        """Counters for the report's breakdown; may be empty."""

    async def close(self) -> None:
        """Ends the engine and every process it started."""
