"""Time in words: what is left, the engines' busy share, and each phase of a document in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.report.model import PhaseTime, Report
from pipeline.report.text import compact, count, duration, percent

__all__ = ["OVERLAP", "engines_line", "left_line", "measured_of", "milliseconds", "phase_lines"]

NOT_MEASURED = "not measured"
OVERLAP = (
    "Documents run side by side, so their times overlap: they are how long a document takes, not a share of the clock. "
    "Masks, encoding and puts are for many at once, and divided evenly; masks are a part of decoding."
)


def engines_line(report: Report) -> str:
    """How busy the engines were."""
    engine = report.engine
    left_out = f"; {engine.submissions_left_out} of {len(report.submissions)} submissions do not say"
    rest = left_out if engine.submissions_left_out else ""
    if engine.busy_share is None:
        return f"busy share {NOT_MEASURED}{rest}"
    busy = f"busy {percent(engine.busy_share)} of the time from first request to last commit"
    steady = f", {percent(engine.steady_share)} of that to the last request"
    return busy + steady + _in_brackets(measured_of(engine.documents, report)) + rest


def left_line(report: Report) -> str:
    """How long what is missing takes at the mean rate so far; nothing where none is missing, or there is no rate."""
    missing, rate = report.balance.documents_missing, report.documents_per_s
    return f"at this rate what is missing takes {duration(missing / rate)}" if missing and rate else ""


def milliseconds(phase: PhaseTime) -> str:
    """A phase of one document, as `1.2 ms`."""
    ms = phase.ms_per_document
    if ms is None:
        return NOT_MEASURED
    shown = "<0.01" if 0 < ms < 0.005 else compact(ms) if ms < 100 else count(ms)
    return f"{shown} ms"


def phase_lines(report: Report) -> Iterator[str]:
    """Each phase with its milliseconds."""
    for phase in report.phases:
        of = measured_of(phase.documents, report) if phase.documents else ""
        yield f"{phase.phase} {milliseconds(phase)}{_in_brackets(of)}"


def measured_of(documents: int, report: Report) -> str:
    """Of how many documents something was measured, where it is not all."""
    every = report.balance.outcomes.documents
    return "" if documents >= every else f"of {count(documents)} of {count(every)} documents"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
