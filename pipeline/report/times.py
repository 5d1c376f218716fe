"""Where the time goes: seconds by phase from the footers, and what submissions have written down of their engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

from pydantic import TypeAdapter, ValidationError

from pipeline.report.model import EngineTime, PhaseTime, Submission
from pipeline.report.use import ENTRY, EngineUse
from pipeline.storage.footer import PartFooter

__all__ = ["Phases", "SubmissionsUse", "engine_use"]

_STORED = TypeAdapter(EngineUse)

PHASES = {
    "queue": True,
    "prompt": False,
    "prefill": True,
    "decode": True,
    "mask": False,
    "parse": False,
    "encode": False,
    "put": False,
}
"""In the order a document passes them, and whether the engine spends them."""
FROM_SUBMISSIONS = ("mask", "put")
"""No footer has them."""


@dataclass(frozen=True, slots=True)
class SubmissionsUse:
    """What several submissions have written down together."""

    total: EngineUse
    masked_documents: int
    """Of the submissions that say what masks took."""
    left_out: int
    """Submissions that do not say what their engines did, or nothing that this version understands."""

    @property
    def engine_time(self) -> EngineTime:
        total = self.total
        return EngineTime(
            wall_s=total.wall_s,
            request_wall_s=total.request_wall_s,
            busy_s=total.busy_s,
            documents=total.documents,
            submissions_left_out=self.left_out,
        )


def engine_use(submissions: Iterable[Submission]) -> SubmissionsUse:
    """The sum over the submissions that say it; those that were killed, or are older, do not."""
    found = [_use_of(submission) for submission in submissions]
    known = [use for use in found if use is not None]
    return SubmissionsUse(
        total=reduce(EngineUse.plus, known, EngineUse()),
        masked_documents=sum(use.documents for use in known if use.mask_s),
        left_out=len(found) - len(known),
    )


def _use_of(submission: Submission) -> EngineUse | None:
    try:
        return _STORED.validate_python(submission.entries.get(ENTRY))
    except ValidationError:
        return None


@dataclass(slots=True)
class Phases:
    """Seconds by phase, while footers are added."""

    seconds: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    """Of the parts that say what a phase took."""

    def add(self, footer: PartFooter) -> None:
        """Zero in a footer means: not measured."""
        for phase in PHASES:
            if phase not in FROM_SUBMISSIONS and (seconds := getattr(footer.timings_s, phase)):
                self.seconds[phase] += seconds
                self.documents[phase] += footer.rows

    def times(self, use: SubmissionsUse) -> tuple[PhaseTime, ...]:
        """Every phase.  Where the engines' use is known, `encode` is from there: a footer knows its table alone."""
        seconds: dict[str, float] = dict(self.seconds)
        documents = dict(self.documents)
        if use.total.documents:
            seconds |= {"mask": use.total.mask_s, "encode": use.total.encode_s, "put": use.total.put_s}
            documents |= {"mask": use.masked_documents} | dict.fromkeys(("encode", "put"), use.total.documents)
        return tuple(
            PhaseTime(
                phase=phase, seconds=seconds.get(phase, 0), is_engine=is_engine, documents=documents.get(phase, 0)
            )
            for phase, is_engine in PHASES.items()
        )
