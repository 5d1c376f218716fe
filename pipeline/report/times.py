"""Where the time goes: seconds by phase from the footers, and what submissions have written down of their engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.report.model import EngineTime, PhaseTime, Submission
from pipeline.report.values import Count, Seconds
from pipeline.storage.footer import PartFooter

__all__ = ["EngineUse", "Phases", "engine_use"]

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
NOT_IN_FOOTERS = "put"
ENTRY = "engine_use"


class EngineUse(BaseModel):
    """One submission's entry, or the sum of several; see `run.use.EngineUse`."""

    model_config = ConfigDict(frozen=True)
    wall_s: Seconds = 0.0
    request_wall_s: Seconds = 0.0
    busy_s: Seconds = 0.0
    encode_s: Seconds = 0.0
    put_s: Seconds = 0.0
    documents: Count = 0

    @property
    def engine_time(self) -> EngineTime:
        return EngineTime(
            wall_s=self.wall_s, request_wall_s=self.request_wall_s, busy_s=self.busy_s, documents=self.documents
        )


def engine_use(submissions: Iterable[Submission]) -> EngineUse:
    """The sum over the submissions that say it; those that were killed, or are older, do not."""
    total = EngineUse()
    for submission in submissions:
        try:
            found = EngineUse.model_validate(submission.entries.get(ENTRY, {}))
        except ValidationError:
            continue
        total = EngineUse(**{name: getattr(total, name) + getattr(found, name) for name in EngineUse.model_fields})
    return total


@dataclass(slots=True)
class Phases:
    """Seconds by phase, while footers are added."""

    seconds: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    """Of the parts that say what a phase took."""

    def add(self, footer: PartFooter) -> None:
        """Zero in a footer means: not measured."""
        for phase in PHASES:
            if phase != NOT_IN_FOOTERS and (seconds := getattr(footer.timings_s, phase)):
                self.seconds[phase] += seconds
                self.documents[phase] += footer.rows

    def times(self, use: EngineUse) -> tuple[PhaseTime, ...]:
        """Every phase.  Where the engines' use is known, `encode` is from there: a footer knows its table alone."""
        seconds: dict[str, float] = dict(self.seconds)
        documents = dict(self.documents)
        if use.documents:
            seconds |= {"encode": use.encode_s, "put": use.put_s}
            documents |= {"encode": use.documents, "put": use.documents}
        return tuple(
            PhaseTime(
                phase=phase, seconds=seconds.get(phase, 0), is_engine=is_engine, documents=documents.get(phase, 0)
            )
            for phase, is_engine in PHASES.items()
        )
