"""The model of the scripted engine: what it would say next, and which faults it plays.

`model: {name: scripted, engine: {...}}` in a job spec asks for it; the keys are those of `Script`.
"""

from __future__ import annotations

import hashlib
import importlib
import zlib
from collections.abc import Callable, Iterable
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pipeline.core.errors import EngineStartError
from pipeline.core.sections import ModelSpec

__all__ = ["SCRIPTED", "Script", "ToyModel", "is_scripted"]

SCRIPTED = "scripted"
"""The model name that stands for the scripted engine."""

_WISHED = 10.0
_EARLY_END = {ord('"'): 0.4, ord("}"): 0.3, ord("]"): 0.3}
"""How much likelier than others the bytes are that end something; 1 is always first."""


def is_scripted(model: ModelSpec) -> bool:
    return model.name == SCRIPTED


class Script(BaseModel):
    """What the scripted engine plays.  A fault strikes the requests whose prompt contains its marker."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_model_len: Annotated[int, Field(ge=1)] = 1 << 16
    tensor_parallel_size: Annotated[int, Field(ge=1)] = 1
    """Says where a run places the engine, as with vLLM, and nothing else."""
    seed: int = 0
    answers: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = None
    """`package.module:function` that takes a prompt and gives the completion; without it the completion is random."""
    token_s: Annotated[float, Field(ge=0)] = 0.0
    """How long each token takes."""
    crash_on: str | None = None
    """The process ends at once, as if killed."""
    crash_times: Annotated[int, Field(ge=1)] | None = None
    """How many crashes there are in all, counted in the log; None for no end."""
    freeze_on: str | None = None
    """The engine falls silent: no request is answered any more."""
    refuse_on: str | None = None
    garbage_on: str | None = None
    """The completion is no JSON."""
    cut_on: str | None = None
    """The completion ends half way, as if out of tokens."""
    log: str | None = None
    """File to which each request, completion and crash is appended: one JSON object a line."""

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if self.crash_times is not None and self.log is None:
            raise ValueError("crash_times is counted in the log; name one")
        return self

    @classmethod
    def of(cls, model: ModelSpec) -> Script:
        """The script that a job spec's `model.engine` describes.

        Raises:
            EngineStartError: it has a key or a value that no script has.
        """
        try:
            return cls.model_validate(model.engine)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
            raise EngineStartError(f"model.engine of the scripted model: {problems}") from error

    def answer_function(self) -> Callable[[str], str] | None:
        """The function that `answers` names.

        Raises:
            EngineStartError: there is no such function.
        """
        if self.answers is None:
            return None
        module, _, name = self.answers.partition(":")
        try:
            function: Callable[[str], str] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise EngineStartError(f"model.engine.answers: {error}") from error
        return function


class ToyModel:
    """Scores for the next token that depend on the prompt and on what was said so far, and on nothing else.

    Like a language model at temperature 0: the same history under another mask gives the same scores, so a budget
    bends a completion where it forbids what the model would have said, and only there.
    """

    def __init__(self, prompt_ids: Iterable[int], wish: bytes | None, seed: int, end_id: int) -> None:
        """
        Args:
            wish: what it says as long as it may and has said nothing else; None for something random.
            end_id: id of the end token; ids below 256 are bytes.
        """
        self._prompt = zlib.crc32(np.fromiter(prompt_ids, np.int32).tobytes())
        self._wish = wish
        self._seed = seed
        self._end_id = end_id

    def scores(self, said: list[int], size: int) -> NDArray[np.float64]:
        """float64[size]: the greatest is what the model says next."""
        history = np.array([self._seed & 0xFFFFFFFF, self._prompt, *said], np.uint32).tobytes()
        digest = hashlib.blake2b(history, digest_size=8).digest()
        scores = np.random.default_rng(int.from_bytes(digest)).random(size)
        for token_id, gain in _EARLY_END.items():
            scores[token_id] += gain
        scores[self._end_id] += 1
        if (wished := self._wished(said)) is not None:
            scores[wished] += _WISHED
        return scores

    def _wished(self, said: list[int]) -> int | None:
        if self._wish is None or said != list(self._wish[: len(said)]):
            return None
        return self._wish[len(said)] if len(said) < len(self._wish) else self._end_id
