"""The bar: what it says, and that a narrow terminal loses words and not counts."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from pipeline.cli.bar import BarProgress
from pipeline.core.outcome import Cause, Status
from pipeline.run.ledger import Tally
from pipeline.run.progress import Snapshot

SNAPSHOT = Snapshot(
    "extract",
    documents_planned=2000,
    documents=900,
    documents_working=100,
    engines_ready=1,
    engines_wanted=2,
    tally=Tally({(Status.VALID, None): 880, (Status.CLOSED, Cause.BUDGET): 20}),
    elapsed_s=100.0,
)


def drawn(width: int, *snapshots: Snapshot) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    with BarProgress(console) as bar:
        for snapshot in snapshots:
            bar(snapshot)
    lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", out.getvalue().replace("\r", "\n")).splitlines()
    return [line for line in lines if line.strip()][-1]


def test_rate_time_left_engines_and_counts_are_shown() -> None:
    line = drawn(160, SNAPSHOT)
    for words in ("extracting", "1000/2000", "10/s", "1 min 40 s left", "1 of 2 engines", "█ 880 valid", "▓ 20 closed"):
        assert words in line


@pytest.mark.parametrize("width", [80, 99])
def test_a_narrow_terminal_keeps_to_one_line_and_to_the_counts(width: int) -> None:
    line = drawn(width, SNAPSHOT)
    assert len(line) <= width
    assert "engines" not in line
    assert "█ 880" in line


def test_before_there_is_a_rate_nothing_is_promised() -> None:
    line = drawn(160, Snapshot("start", documents_planned=10, engines_wanted=1))
    assert "left" not in line
    assert "starting engines" in line
