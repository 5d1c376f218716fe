"""The simulation itself: what it says of the order of the shards, and medians."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.simulation.measured import measure, median
from tests.bench.simulation.order import Skew, tails
from tests.bench.simulation.weather import Weather


def test_longest_first_loses_less_at_the_end_than_the_inputs_order() -> None:
    """On a made-up clock and with fixed seeds, so that it is the same each time."""
    steady = Weather(straggler=0)
    found = {(item.order, item.has_backups): item for item in tails(20_000, 20, 100, steady, Skew(), (1, 2, 3))}
    assert len(found) == 4
    first, last = found["longest first", False], found["as in the input", False]
    assert first.idle_s < last.idle_s / 2
    assert first.least_wall_s <= first.wall_s < last.wall_s
    assert first.doubled_s == pytest.approx(0, abs=1)
    assert found["as in the input", True].doubled_s > 0


def test_every_document_of_a_stormy_run_is_committed_and_medians_are_of_each_figure() -> None:
    stormy = replace(Weather(), failure=0.05, death=0.02)
    runs = [measure(3_000, 3, 100, stormy, seed) for seed in (1, 2, 3)]
    middle = median(runs)
    assert middle.shards == 30
    assert middle.attempts == sorted(run.attempts for run in runs)[1]
    assert 0 < middle.useful_share <= 1
