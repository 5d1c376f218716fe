"""How the report writes text and numbers."""

from __future__ import annotations

import datetime as dt
import enum
import json

import pytest

from pipeline.core.outcome import Cause, Status
from pipeline.report import text


def test_every_status_and_cause_has_a_meaning() -> None:
    assert set(text.STATUS_MEANINGS) == set(Status)
    assert set(text.CAUSE_MEANINGS) == set(Cause)


def test_what_could_steer_a_terminal_is_made_visible_one_for_one() -> None:
    hostile = "a\x1b[31m\x00\x9b\x7f\u202eb\ud800\r\n\t"
    shown = text.visible(hostile)
    assert shown == "a␛[31m␀\ufffd␡\ufffdb\ufffd \n\t"
    assert len(shown) == len(hostile)


def test_spelling_out_needs_no_font_and_keeps_line_feeds() -> None:
    assert text.spelled("a\x1b\u202e\ud800\r\nb") == "a\\x1b\\u202e\\ud800\nb"


def test_ordinary_text_of_any_script_is_left_alone() -> None:
    ordinary = "Keramik & Söhne – مستند ٤٢ – 日本語 🧾 a\u200db"
    assert text.visible(ordinary) == text.spelled(ordinary) == ordinary


@pytest.mark.parametrize(
    ("share", "written"),
    [(0.0, "0%"), (1.0, "100%"), (0.99999, ">99.9%"), (0.00001, "<0.1%"), (0.9614, "96.1%"), (None, "–")],
)
def test_only_none_is_0_percent_and_only_all_is_100(share: float | None, written: str) -> None:
    assert text.percent(share) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0, "0 s"),
        (0.0003, "<1 ms"),
        (0.82, "820 ms"),
        (0.9999, "1.0 s"),
        (59.99, "1 min"),
        (245, "4 min 5 s"),
        (3599.9, "1 h"),
        (7800, "2 h 10 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, written: str) -> None:
    assert text.duration(seconds) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (0.0042, "0.0042"),
        (0.0999, "0.1"),
        (7.25, "7.25"),
        (96.87, "96.9"),
        (9999, "9,999"),
        (13090, "13.1k"),
        (50000, "50k"),
        (999_999, "1M"),
        (118_230_112, "118M"),
    ],
)
def test_a_compact_number_keeps_three_digits(value: float, written: str) -> None:
    assert text.compact(value) == written


class Urgency(enum.Enum):
    LOW = "low"


def test_a_record_is_shown_as_it_is_stored() -> None:
    record = {"urgency": Urgency.LOW, "tags": {"a"}, "by": {Urgency.LOW: 1, dt.date(2024, 3, 5): 2}, "raw": b"\xff"}
    assert json.loads(text.record_text(record)) == {
        "urgency": "low",
        "tags": ["a"],
        "by": {"low": 1, "2024-03-05": 2},
        "raw": "_w==",
    }
