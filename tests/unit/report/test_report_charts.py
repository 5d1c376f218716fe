"""Where the marks of the charts go."""

from __future__ import annotations

import pytest

from pipeline.core.outcome import Cause, Status
from pipeline.report.charts import COLUMNS_AT_MOST, histogram, rate_chart, shard_chart
from pipeline.report.model import Distribution, Pause
from tests.unit.report.runs import START, closed, lost, plan_of, report_of, valid

BINS = Distribution(edges=(0, 1, 2, 4, 8, 16, 32), counts=(0, 0, 2, 0, 6, 0, 0))


def test_a_histogram_cuts_empty_ends_and_keeps_empty_middles() -> None:
    chart = histogram(BINS, "tokens", "tokens")
    assert chart is not None
    assert [name for name, _ in chart.rows] == ["2–3", "4–7", "8–15"]
    assert [mark.height for mark in chart.marks] == pytest.approx([100 / 3, 0, 100])
    assert sum(mark.width for mark in chart.marks) == pytest.approx(100)


def test_the_last_bin_has_no_upper_end() -> None:
    chart = histogram(Distribution(edges=(0, 1), counts=(1, 3)), "tokens", "tokens")
    assert chart is not None
    assert chart.marks[1].title == "1 and more tokens: 3 documents (75.0%)"


def test_a_histogram_of_nothing_is_no_chart() -> None:
    assert histogram(Distribution(), "tokens", "tokens") is None


def test_the_budget_stands_within_its_bin_and_not_outside_the_chart() -> None:
    chart = histogram(BINS, "tokens", "tokens", budget=12)
    assert chart is not None
    assert chart.lines[0].at == pytest.approx(100 * 2.5 / 3)
    beyond = histogram(BINS, "tokens", "tokens", budget=512)
    assert beyond is not None
    assert beyond.lines == ()


def test_shard_columns_stack_to_the_share_that_is_not_valid() -> None:
    rows = [valid("a"), closed("b"), lost("c", Status.TRUNCATED, Cause.RUNAWAY), valid("d")]
    chart = shard_chart(report_of(plan_of(4), {0: rows}))
    assert chart is not None
    assert chart.y_ticks[-1].label == "50%"
    assert [(mark.kind, mark.y, mark.height) for mark in chart.marks] == [("closed", 50, 50), ("truncated", 0, 50)]
    assert chart.marks[0].title == "shard 1: 2 valid, 1 closed, 1 truncated"
    assert [(tick.at, tick.label) for tick in chart.x_ticks] == [(50, "1")]


def test_many_shards_share_columns_and_none_is_left_out() -> None:
    plan = plan_of(*[1] * 1000)
    chart = shard_chart(report_of(plan, {position: [closed(str(position))] for position in range(999)}))
    assert chart is not None
    assert len(chart.rows) <= COLUMNS_AT_MOST
    assert sum(int(summary.split(" closed")[0]) for _, summary in chart.rows if "closed" in summary) == 999
    assert "1 without an outcome" in chart.rows[-1][1]


def test_a_few_missing_shards_of_a_shared_column_do_not_look_like_all_of_it() -> None:
    plan = plan_of(*[1] * (4 * COLUMNS_AT_MOST))
    chart = shard_chart(report_of(plan, {position: [closed("a")] for position in range(3)}))
    assert chart is not None
    width = 100 / COLUMNS_AT_MOST
    assert [mark.kind for mark in chart.marks[:3]] == ["missing", "closed", "missing"]
    assert [mark.x for mark in chart.marks[:3]] == pytest.approx([0.75 * width, 0, width])
    assert [mark.width for mark in chart.marks[:3]] == pytest.approx([0.25 * width, 0.75 * width, width])


def test_no_marks_leave_the_plot() -> None:
    plan = plan_of(3, 3, 3)
    report = report_of(plan, {0: [valid("a"), closed("b"), lost("c")], 1: [lost("d"), lost("e"), lost("f")]})
    charts = [shard_chart(report), rate_chart(report, tokens=True), rate_chart(report, tokens=False)]
    for chart in charts:
        assert chart is not None
        for mark in chart.marks:
            assert -1e-6 <= mark.x <= mark.x + mark.width <= 100 + 1e-6
            assert -1e-6 <= mark.y <= mark.y + mark.height <= 100 + 1e-6


def test_a_wholly_valid_run_has_no_shard_chart() -> None:
    assert shard_chart(report_of(plan_of(1), {0: [valid("a")]})) is None
    assert shard_chart(report_of(plan_of(), {})) is None


def test_the_budget_that_cuts_the_longest_records_is_shown() -> None:
    """Without a ladder no record is longer than the budget, which then lies in the last bin that there is."""
    chart = histogram(Distribution(edges=(0, 1, 2, 4, 8), counts=(0, 0, 1, 2, 3)), "tokens", "tokens", budget=12)
    assert chart is not None
    assert chart.lines[0].at == pytest.approx(100 * 2.5 / 3)


def test_pauses_close_to_each_other_are_all_marked_and_the_longest_alone_is_written() -> None:
    report = report_of(plan_of(1, 1), {0: [valid("a")], 1: [valid("b")]})
    lengths = {10: 60, 40: 600, 50: 6000, 55: 60, 90: 40}
    pauses = tuple(
        Pause(from_at=START, active_s=report.active_s * at / 100, length_s=length) for at, length in lengths.items()
    )
    chart = rate_chart(report.model_copy(update={"pauses": pauses}), tokens=False)
    assert chart is not None
    assert [line.at for line in chart.lines] == pytest.approx(list(lengths))
    assert [line.label for line in chart.lines if not line.is_minor] == ["paused 1 h 40 min"]


def test_an_axis_of_documents_has_no_halves_of_one() -> None:
    chart = histogram(Distribution(edges=(0, 1), counts=(0, 3)), "tokens", "tokens")
    assert chart is not None
    assert [tick.label for tick in chart.y_ticks] == ["0", "3"]
