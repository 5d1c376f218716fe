"""Owns a run's guide as a worker uses it: its name in requests, what a document lets it say, what tokens show."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.spec import JobSpec
from pipeline.decoding import Guide, Marks, NoSpanError, SpanDocument, review
from pipeline.engine.base import BackendName
from pipeline.spans.finder import SpanFinder

__all__ = ["Guidance", "GuideReviewer", "guidance_of"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GuideReviewer:
    """Replays tokens against one guide, for one document; see `policy.Reviewer`."""

    guide: Guide
    document: SpanDocument | None = None
    """What extractive fields may copy; None for guides without any."""

    def review(
        self, token_ids: Sequence[int], budget_tokens: int | None, reserve_tokens: Sequence[int] = ()
    ) -> Marks | None:
        """What a completion says of its budget; None where it is not legal, so that the engine left its guide."""
        try:
            return review(self.guide, token_ids, budget_tokens, reserve_tokens, self.document)
        except ValueError as error:
            logger.warning("an engine left guide %s: %s", self.guide.fingerprint, error)
            return None

    def is_legal(self, token_ids: Sequence[int], budget_tokens: int, reserve_tokens: Sequence[int] = ()) -> bool:
        """Whether a record under this budget may begin so.

        Raises:
            NoSpanError: no record can be written for this document under any budget.
        """
        try:
            cursor = self.guide.cursor(budget_tokens, reserve_tokens, self.document)
        except NoSpanError:
            raise
        except ValueError:
            return False
        return len(cursor.validate(token_ids)) == len(token_ids)

    def least_left(self, token_ids: Sequence[int]) -> int:
        """The fewest tokens that complete the record these begin."""
        cursor = self.guide.cursor(document=self.document)
        for token_id in token_ids:
            cursor.advance(token_id)
        return cursor.least_left


@dataclass(frozen=True, slots=True)
class Guidance:
    """What guides a run's requests.  `name` is the guide's fingerprint, or the JSON Schema for the stock backends."""

    backend: BackendName | None
    name: str = ""
    guide: Guide | None = None
    finder: SpanFinder | None = None
    """Where the guide has extractive fields."""
    reserve: tuple[int, ...] = ()

    @property
    def least_tokens(self) -> int:
        """The fewest tokens that hold a record, as far as is known without a document."""
        return self.guide.least_tokens if self.guide is not None else 1

    def for_document(self, text: str) -> GuideReviewer | None:
        """What reviews the records of a document with this text; None without a guide.  May take milliseconds.

        Raises:
            NoSpanError: a required extractive field has no candidate in the text.
        """
        if self.guide is None:
            return None
        if self.finder is None:
            return GuideReviewer(self.guide)
        document = self.finder.document(text)
        self.guide.cursor(None, (), document)
        return GuideReviewer(self.guide, document)

    def decode(self, token_ids: Sequence[int]) -> str | None:
        """The text of a record's tokens, exact to the byte; None where there is no guide that knows them."""
        return None if self.guide is None else self.guide.decode(token_ids).decode("utf-8", "replace")


def guidance_of(spec: JobSpec, guide: Guide | None, schema: Mapping[str, Any]) -> Guidance:
    """The guidance that a job asks for; `guide` is there for guide `recordmill` and for no other."""
    chosen = spec.decoding.guide
    if chosen == "none":
        return Guidance(None)
    if guide is None or chosen != "recordmill":
        return Guidance(chosen, json.dumps(schema))
    finder = SpanFinder.of_guide(guide, spec.decoding.date_order) if guide.span_kinds else None
    reserve = guide.usual_reserve if spec.truncation.reserve else ()
    return Guidance(chosen, guide.fingerprint, guide, finder, reserve)
