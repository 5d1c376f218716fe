"""One document's decoding as a value, and as one HTML page that shows each step: no script, no request, all escaped.

The page's switch is a checkbox that styles alone answer to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipeline.core.outcome import Outcome
from pipeline.report import text
from pipeline.report.html import page_environment
from pipeline.report.marked import segments
from pipeline.report.preview import TEXT_CHARS

__all__ = ["Candidate", "Step", "Trace", "Unguided", "render_trace"]

BEFORE_CHARS = 70
"""Characters of the text so far that a step shows."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One token that could have been next.  Probabilities from 0 to 1; None where the engine did not tell."""

    text: str
    free: float | None
    """From the model alone."""
    masked: float | None
    """Under the mask."""
    is_legal: bool
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Step:
    """One token of the record, and what stood behind it."""

    number: int
    text: str
    before: str
    """The record so far."""
    field: str | None
    legal_tokens: int
    is_tightened: bool
    """Whether the budget forbade something that the schema allows."""
    is_bent: bool
    """Whether what it forbade is what the model would have said."""
    slack_tokens: int | None
    """Tokens left beyond what closing the record takes, before this one; None without a budget."""
    free: float | None
    """What the model alone gave to the chosen token."""
    masked: float | None
    legal_mass: float | None
    """What the model alone gave to all legal tokens together."""
    candidates: tuple[Candidate, ...]

    @property
    def is_forced(self) -> bool:
        """Whether there was no choice."""
        return self.legal_tokens == 1

    @property
    def mood(self) -> str:
        """How far the model and the mask agreed, as a class of the page."""
        if self.legal_mass is None:
            return ""
        for least, mood in ((0.9, "t-sure"), (0.5, "t-fair"), (0.1, "t-torn")):
            if self.legal_mass >= least:
                return mood
        return "t-led"


@dataclass(frozen=True, slots=True)
class Unguided:
    """What the model writes of the same prompt when nothing holds it."""

    text: str
    tokens: int
    is_cut: bool
    verdict: str
    """What would have become of it, in words."""


@dataclass(frozen=True, slots=True)
class Trace:
    """All of it."""

    document_id: str | None
    document: str
    outcome: Outcome
    steps: tuple[Step, ...]
    unguided: Unguided | None
    note: str | None = None
    """Why there are no steps, or fewer than tokens."""

    @property
    def forced(self) -> int:
        return sum(step.is_forced for step in self.steps)

    @property
    def led(self) -> int:
        """Steps whose likeliest token, for the model alone, was not legal."""
        return sum(bool(step.candidates) and not _favourite(step).is_legal for step in self.steps)

    @property
    def tightened(self) -> int:
        return sum(step.is_tightened for step in self.steps)


def _favourite(step: Step) -> Candidate:
    return max(step.candidates, key=lambda candidate: candidate.free or 0.0)


def render_trace(trace: Trace, *, name: str, facts: Sequence[tuple[str, str]]) -> str:
    """The page.

    Args:
        trace: what happened.
        name: the job's.
        facts: label and value of what it was made with.
    """
    return (
        page_environment()
        .get_template("trace.html.j2")
        .render(
            name=name,
            facts=list(facts),
            trace=trace,
            groups=list(_groups(trace.steps)),
            document=list(segments(trace.document[:TEXT_CHARS], trace.outcome.spans)),
            hidden_chars=max(0, len(trace.document) - TEXT_CHARS),
            columns=text.passed_columns(trace.outcome.extra),
            before_chars=BEFORE_CHARS,
            status_meanings=text.STATUS_MEANINGS,
            cause_meanings=text.CAUSE_MEANINGS,
        )
    )


def _groups(steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    """Steps one by one, those of a forced stretch together."""
    for is_forced, run in groupby(steps, key=lambda step: step.is_forced):
        if is_forced:
            yield tuple(run)
        else:
            yield from ((step,) for step in run)
