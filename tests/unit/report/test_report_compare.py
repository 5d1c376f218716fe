"""How a value is compared with a known answer."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from pipeline.report.compare import fold_text, is_match, read_dates, read_number, written


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9.00", "9"),
        ("RM 1,007.50", "1007.50"),
        ("1.007,50 €", "1007.50"),
        ("1,007", "1007"),
        ("1.234.567", "1234567"),
        ("12,5", "12.5"),
        ("1 234,5", "1234.5"),
        ("$8.20", "8.2"),
        ("-1.73", "-1.73"),
        ("-RM 3.00", "-3"),
        ("(1.73)", "-1.73"),
    ],
)
def test_an_amount_is_read_as_the_number_it_writes(text: str, number: str) -> None:
    assert read_number(text) == Decimal(number)


@pytest.mark.parametrize("text", ["", "none", "9.75 x 3", "12/10"])
def test_a_text_without_exactly_one_number_is_no_number(text: str) -> None:
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("25/12/2018 8:13:39 PM", "2018-12-25"),
        ("28 MAR 18", "2018-03-28"),
        ("15-MAR-2018", "2018-03-15"),
        ("Mar 5, 2018", "2018-03-05"),
        ("2018-03-05", "2018-03-05"),
        ("2018/03/05", "2018-03-05"),
        ("20180305", "2018-03-05"),
        ("31.12.99", "1999-12-31"),
    ],
)
def test_a_date_that_has_one_meaning_is_read_whatever_the_order(text: str, date: str) -> None:
    assert read_dates(text) == {dt.date.fromisoformat(date)}


def test_the_date_order_decides_between_the_meanings_of_a_numeric_date() -> None:
    assert read_dates("09/01/2019", "dmy") == {dt.date(2019, 1, 9)}
    assert read_dates("09/01/2019", "mdy") == {dt.date(2019, 9, 1)}
    assert read_dates("09/01/2019") == {dt.date(2019, 1, 9), dt.date(2019, 9, 1)}
    assert read_dates("18-11-12", "ymd") == {dt.date(2018, 11, 12)}


@pytest.mark.parametrize("text", ["", "soon", "99/99/2018", "30 FEB 2018", "٣/٤"])
def test_what_is_no_date_reads_as_none(text: str) -> None:
    assert read_dates(text) == frozenset()


def test_folding_ignores_case_punctuation_and_spacing() -> None:
    assert fold_text("  Book-Ta .K\n(TAMAN  DAYA) ") == fold_text("BOOKTA K TAMAN DAYA")
    assert fold_text("STRASSE ﬁve") == fold_text("Straße five")


def test_folding_keeps_digits_apart_that_punctuation_kept_apart() -> None:
    assert fold_text("9.00") != fold_text("900")
    assert fold_text("55,57") == fold_text("55, 57")


def test_typed_values_match_answers_written_as_text() -> None:
    assert is_match(Decimal("9.00"), "RM9.0", "number")
    assert is_match(9.1, Decimal("9.10"), "number")
    assert is_match(dt.date(2018, 12, 25), "25/12/2018", "date")
    assert is_match(dt.datetime(2018, 12, 25, 8), dt.date(2018, 12, 25), "date")


@pytest.mark.parametrize(
    ("gold", "is_same"),
    [
        (dt.datetime(2026, 1, 2, 23, 30, tzinfo=dt.UTC), True),
        (dt.datetime(2026, 1, 2, 23, 30), True),
        (dt.datetime(2026, 1, 2, 9), False),
        ("2026-01-03T00:30:00+01:00", True),
        ("2026-01-02T09:00:00Z", False),
        ("2026-01-02", True),
        (dt.date(2026, 1, 2), True),
        ("2/1/2026 9:00", True),  # a time that is not ISO 8601 is not read
        ("2026-01-03", False),
    ],
)
def test_instants_of_one_day_are_not_the_same_where_the_answer_has_a_time_too(gold: object, is_same: bool) -> None:
    assert is_match(dt.datetime(2026, 1, 2, 23, 30, tzinfo=dt.UTC), gold, "date") is is_same


def test_an_instant_is_written_as_its_json_is() -> None:
    assert written(dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)) == "2026-01-02T03:04:05Z"
    assert written(dt.datetime(2026, 1, 2, 3, 4, 5)) == "2026-01-02T03:04:05"


def test_two_unreadable_values_do_not_match_each_other() -> None:
    assert not is_match("x", "x", "number")
    assert not is_match("x", "x", "date")
    assert not is_match(float("nan"), float("nan"), "number")


@pytest.mark.parametrize(
    ("value", "gold", "is_same"), [(True, 1, True), (True, 0, False), (False, 0.0, True), (False, 1, False)]
)
def test_a_truth_value_is_compared_with_numbers(value: bool, gold: float, is_same: bool) -> None:
    """pandas writes flags that may be missing as numbers."""
    assert is_match(value, gold, "number") is is_same


@pytest.mark.parametrize(
    ("value", "gold"), [("$", "€"), ("+", "-"), ("", "—"), ("🙂", "🙁"), ("दिन", "दान"), ("!", "?"), ("C++", "C")]
)
def test_what_folding_must_not_make_alike(value: str, gold: str) -> None:
    assert not is_match(value, gold, "text")
