"""The arithmetic of a sample: what a budget would do to records of its lengths, and how sure that is."""

from __future__ import annotations

import math

import pytest

from pipeline.run.figures import Spread, budget_rows, share_interval


def test_a_record_is_cut_short_where_it_is_longer_than_the_budget_or_was_cut_by_every_budget() -> None:
    lengths = [(10, False), (20, False), (20, True), (40, False)]
    shares = [row.cut_share for row in budget_rows(lengths, (10, 20, 40))]
    assert shares == [0.75, 0.5, 0.25]


def test_tokens_of_a_document_stop_at_the_budget() -> None:
    assert budget_rows([(10, False), (30, False)], (20,))[0].output_tokens == 15


def test_nothing_generated_gives_no_rows() -> None:
    assert budget_rows([], (10,)) == ()


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1)]
)
def test_intervals_are_wilsons(hits: int, total: int, low: float, high: float) -> None:
    """Values worked out from the formula by hand."""
    found = share_interval(hits, total)
    assert math.isclose(found[0], low, abs_tol=1e-4)
    assert math.isclose(found[1], high, abs_tol=1e-4)


def test_a_spread_is_exact_on_few_numbers() -> None:
    found = Spread.of([5, 1, 9])
    assert (found.mean, found.median, found.p95, found.most) == (5, 5, 9, 9)
