"""How a guided request travels from the adapter to the engine core: what is written on one side is read on the other.

vLLM carries two public fields to the engine core untouched: the text of a `regex` constraint, and
`SamplingParams.extra_args`.  The first names the guide, in a few literal characters that vLLM's own check of regular
expressions parses in no time; the second holds everything that the cursor needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipeline.core.errors import RequestRefusedError

__all__ = ["EXTRA_ARGS_KEY", "MASK_NS", "Binding", "guide_literal", "is_guide_literal", "without_binding"]

EXTRA_ARGS_KEY = "recordmill"
"""The one key of `extra_args` that is ours."""

MASK_NS = "recordmill_mask_ns"
"""Where the scheduler's statistics, which come back with each step, hold the time spent on masks since the start.

vLLM has no place in them for what is not its own.  This key stands among the stages of its fetches, in a dictionary of
integers that is there anyway: one more costs a fraction of a microsecond a step, a dictionary of its own two.
"""

_LITERAL_START = "recordmill-guide-"


def guide_literal(fingerprint: str) -> str:
    """The constraint text that stands for a guide: letters, digits and `-` only, so a literal regular expression."""
    return _LITERAL_START + fingerprint


def is_guide_literal(text: str) -> bool:
    return text.startswith(_LITERAL_START)


@dataclass(frozen=True, slots=True)
class Binding:
    """What binds one request to one guide.

    `path` is a local file that every process of the node can open; `budget_tokens` counts the tokens of the prefix;
    `document` is a `SpanDocument` in bytes.
    """

    fingerprint: str
    path: str
    budget_tokens: int | None = None
    prefix_tokens: int = 0
    reserve_tokens: tuple[int, ...] = ()
    document: bytes | None = None

    def extra_args(self) -> dict[str, Any]:
        """For `SamplingParams.extra_args`."""
        return {EXTRA_ARGS_KEY: asdict(self)}

    @classmethod
    def from_extra_args(cls, extra_args: Mapping[str, Any] | None) -> Binding | None:
        """The binding, or None for a request that is not ours.

        Raises:
            RequestRefusedError: our key is there, and what it holds is not a binding.
        """
        if not extra_args or EXTRA_ARGS_KEY not in extra_args:
            return None
        try:
            return _BINDING.validate_python(extra_args[EXTRA_ARGS_KEY])
        except ValidationError as error:
            wrong = ", ".join(".".join(map(str, item["loc"])) for item in error.errors(include_input=False))
            raise RequestRefusedError(f"extra_args[{EXTRA_ARGS_KEY!r}] is not a binding: {wrong}") from error


def without_binding(extra_args: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A copy without our key; None where nothing else is left."""
    return {key: value for key, value in (extra_args or {}).items() if key != EXTRA_ARGS_KEY} or None


_BINDING = TypeAdapter(Binding)
