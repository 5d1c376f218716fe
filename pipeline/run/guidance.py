"""Owns a run's guide as the worker uses it: the name its requests carry, and what a finished record shows."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.core.spec import JobSpec
from pipeline.decoding import Guide, review
from pipeline.run.policy import Marks

__all__ = ["Guidance", "GuideReviewer", "guidance_of"]

logger = logging.getLogger(__name__)

RESERVE_TOKENS = 8
"""Kept back for each field that is still to come, where the budget allows it."""


@dataclass(frozen=True, slots=True)
class GuideReviewer:
    """Replays tokens against one guide; see `policy.Reviewer`."""

    guide: Guide

    def review(
        self, token_ids: Sequence[int], budget_tokens: int | None, reserve_tokens: Sequence[int] = ()
    ) -> Marks | None:
        """What a completion says of its budget; None where it is not legal, so that the engine left its guide."""
        try:
            return review(self.guide, token_ids, budget_tokens, reserve_tokens)
        except ValueError as error:
            logger.warning("an engine left guide %s: %s", self.guide.fingerprint, error)
            return None

    def is_legal(self, token_ids: Sequence[int], budget_tokens: int, reserve_tokens: Sequence[int]) -> bool:
        """Whether a record under this budget may begin so."""
        cursor = self.guide.cursor(budget_tokens, reserve_tokens)
        return len(cursor.validate(token_ids)) == len(token_ids)

    def least_left(self, token_ids: Sequence[int]) -> int:
        """The fewest tokens that complete the record these begin."""
        cursor = self.guide.cursor()
        for token_id in token_ids:
            cursor.advance(token_id)
        return int(self.guide.distance[cursor.state])


@dataclass(frozen=True, slots=True)
class Guidance:
    """What guides a run's requests.  `name` is the guide's fingerprint, or the JSON Schema for the stock backends."""

    backend: Literal["recordmill", "outlines", "xgrammar", "guidance"] | None
    name: str = ""
    reviewer: GuideReviewer | None = None
    reserve: tuple[int, ...] = field(default=())

    @property
    def least_tokens(self) -> int:
        """The fewest tokens that hold a record, as far as is known."""
        return self.reviewer.guide.least_tokens if self.reviewer is not None else 1

    def decode(self, token_ids: Sequence[int]) -> str | None:
        """The text of a record's tokens, exact to the byte; None where there is no guide that knows them."""
        if self.reviewer is None:
            return None
        return self.reviewer.guide.decode(token_ids).decode("utf-8", "replace")


def guidance_of(spec: JobSpec, guide: Guide | None, schema: Mapping[str, Any]) -> Guidance:
    """The guidance that a job asks for; `guide` is there for guide `recordmill` and for no other."""
    chosen = spec.decoding.guide
    if chosen == "none":
        return Guidance(None)
    if guide is None or chosen != "recordmill":
        return Guidance(chosen, json.dumps(schema))
    reserve = (RESERVE_TOKENS,) * len(guide.fields) if spec.truncation.reserve else ()
    return Guidance(chosen, guide.fingerprint, GuideReviewer(guide), reserve)
