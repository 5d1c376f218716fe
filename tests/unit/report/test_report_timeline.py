"""The rate over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report.timeline import Timeline, Work, timeline

START = datetime(2026, 11, 28, 21, tzinfo=UTC)


def work(start_s: float, end_s: float, documents: int = 60, tokens: int = 600) -> Work:
    return Work(START + timedelta(seconds=start_s), START + timedelta(seconds=end_s), documents, tokens)


def documents(line: Timeline) -> float:
    return sum(point.documents_per_s * point.length_s for point in line.points)


def test_work_side_by_side_adds_up() -> None:
    line = timeline([work(0, 60), work(0, 60)], points=6)
    assert line.active_s == 60
    assert [point.documents_per_s for point in line.points] == pytest.approx([2] * 6)
    assert [point.output_tokens_per_s for point in line.points] == pytest.approx([20] * 6)


def test_a_pause_stops_the_clock_and_is_named() -> None:
    line = timeline([work(0, 60), work(3660, 3720)], points=4)
    assert line.active_s == 120
    assert [(pause.active_s, pause.length_s) for pause in line.pauses] == [(60, 3600)]
    assert line.points[2].at == START + timedelta(seconds=3660)
    assert [point.documents_per_s for point in line.points] == pytest.approx([1] * 4)


def test_a_short_gap_is_no_pause() -> None:
    line = timeline([work(0, 60), work(70, 130)])
    assert (line.active_s, line.pauses) == (130, ())


def test_no_work_gives_no_points() -> None:
    assert timeline([]) == timeline([work(5, 5)]) == Timeline(0.0, (), ())


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.floats(-10, 1e4), st.integers(0, 5000)),
        min_size=1,
        max_size=30,
    )
)
def test_nothing_is_lost_when_work_is_spread(items: list[tuple[float, float, int]]) -> None:
    line = timeline([work(start, start + length, number) for start, length, number in items])
    if line.active_s:
        assert documents(line) == pytest.approx(sum(number for _, _, number in items), rel=1e-6, abs=1e-6)
