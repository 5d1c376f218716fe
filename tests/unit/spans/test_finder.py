"""The finder: enumerations, what fields accept, sharing, and that it can be repeated and sent."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from pipeline.decoding.span_document import SpanDocument
from pipeline.spans import SpanFinder
from tests.unit.spans.reading import candidates, found_in, values_in

_TEXT = "ACME (M) SDN. BHD.\n25/12/2018 8:13 PM\nCredit card\nTotal: RM 1,234.56\nChange 0.00\n東京 1 234,56"
_KINDS = [
    {"type": "string"},
    {"type": "string", "max_words": 2},
    {"type": "string", "pattern": r"\d+/\d+/\d+"},
    {"type": "date", "date_order": "dmy"},
    {"type": "datetime"},
    {"type": "time"},
    {"type": "decimal"},
    {"type": "integer"},
    {"type": "enum", "values": ["CREDIT CARD", "CASH"]},
]


@pytest.mark.parametrize(
    ("text", "values", "found"),
    [
        ("Paid by CREDIT CARD", ["credit card"], [("credit card", "CREDIT CARD")]),
        ("credit\u00a0 card", ["Credit Card"], [("Credit Card", "credit\u00a0 card")]),
        ("USD 5, USDA, US", ["US", "USD"], [("USD", "USD"), ("US", "US")]),
        ("5EUR", ["EUR"], [("EUR", "EUR")]),
        (
            "cash on delivery",
            ["cash", "cash on delivery"],
            [("cash", "cash"), ("cash on delivery", "cash on delivery")],
        ),
        ("cash and Cash", ["CASH"], [("CASH", "cash"), ("CASH", "Cash")]),
        ("rooms: 2 of 12", [1, 2, 12], [("2", "2"), ("12", "12")]),
        ("is_paid: True", [True, False], [("true", "True")]),
        ("ΦΟΡΟΣ", ["φόρος", "φορος"], [("φορος", "ΦΟΡΟΣ")]),
        ("İSTANBUL", ["istanbul"], [("istanbul", "İSTANBUL")]),
        ("per U\u0308berweisung", ["\u00dcberweisung"], [("\u00dcberweisung", "U\u0308berweisung")]),
        ("caf\u00e9", ["cafe\u0301", "cafe"], [("cafe\u0301", "caf\u00e9")]),
        ('say "A\\B"', ['"a\\b"'], [('\\"a\\\\b\\"', '"A\\B"')]),
        ("null and none", [None, ""], []),
        ("N/A", ["n/a"], [("n/a", "N/A")]),
    ],
)
def test_an_enumeration_has_its_values_where_they_stand_as_words(
    text: str, values: list[object], found: list[tuple[str, str]]
) -> None:
    assert values_in(text, {"type": "enum", "values": values}) == found


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (
            {"type": "decimal", "pattern": r".*[.,]\d\d"},
            [("1234.56", "1,234.56"), ("0.00", "0.00"), ("1234.56", "1 234,56"), ("234.56", "234,56")],
        ),
        ({"type": "integer", "pattern": r"\d{4}"}, [("2018", "2018")]),
        ({"type": "date", "date_order": "dmy", "pattern": r".*-.*"}, []),
        (
            {"type": "enum", "values": ["CREDIT CARD", "CHANGE"], "pattern": r"[A-Z].*"},
            [("CREDIT CARD", "Credit card"), ("CHANGE", "Change")],
        ),
    ],
)
def test_a_pattern_is_asked_of_a_value_as_it_stands_in_the_document(
    kind: dict[str, object], found: list[tuple[str, str]]
) -> None:
    """Fails when patterns are for strings alone."""
    assert values_in(_TEXT, kind) == found


def test_a_field_is_asked_about_the_whole_json_of_each_value_of_a_list_once() -> None:
    asked: list[bytes] = []

    def accepts(data: bytes) -> bool:
        asked.append(data)
        return data != b"5"

    kinds = [
        {"type": "integer"},
        {"type": "date"},
        {"type": "enum", "values": ["no", 7]},
        {"type": "string", "pattern": "n."},
    ]
    finder = SpanFinder(kinds, accepts=[accepts] * len(kinds))
    views = finder.document("5 7 7 no 2018-02-03").views
    assert asked == [b"5", b"7", b"2018", b"2", b"3", b'"2018-02-03"', b"7", b'"no"', b'"no"']
    assert [value for value, _, _ in candidates(views[0])] == ["7", "7", "2018", "2", "3"]


def test_kinds_without_an_acceptor_take_everything() -> None:
    finder = SpanFinder([{"type": "integer"}, {"type": "integer"}], accepts=[lambda _: False])
    refused, taken = finder.document("5").views
    assert refused.is_empty
    assert not taken.is_empty


def test_equal_kinds_share_one_view() -> None:
    first, second, third = (
        SpanFinder([_KINDS[0], {**_KINDS[0], "within": "line", "title": "x"}, _KINDS[1]]).document("a b").views
    )
    assert first is second
    assert first is not third


def test_true_and_1_are_different_values_of_an_enumeration() -> None:
    views = SpanFinder([{"type": "enum", "values": [True]}, {"type": "enum", "values": [1]}]).document("1 true").views
    assert [[value for value, _, _ in candidates(view)] for view in views] == [["true"], ["1"]]


def test_a_document_survives_being_sent() -> None:
    document = SpanFinder(_KINDS).document(_TEXT)
    again = SpanDocument.from_bytes(document.to_bytes())
    for before, after in zip(document.views, again.views, strict=True):
        assert list(candidates(before)) == list(candidates(after))
        assert len(before.starts) > 0


def test_starts_rise_and_candidates_come_in_the_order_of_the_text() -> None:
    for view in SpanFinder(_KINDS).document(_TEXT).views:
        assert (np.diff(view.starts) > 0).all()
        assert (np.diff(view.source_start) >= 0).all()


def test_another_process_finds_the_same() -> None:
    program = (
        "import hashlib, sys; from pipeline.spans import SpanFinder;"
        "from tests.unit.spans.test_finder import _KINDS, _TEXT;"
        "sys.stdout.write(hashlib.sha256(SpanFinder(_KINDS).document(_TEXT).to_bytes()).hexdigest())"
    )
    seeds = ("1", "2")
    digests = {
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in seeds
    }
    assert len(digests) == 1


def test_finding_spans_loads_no_engine() -> None:
    program = (
        "import sys; from pipeline.spans import SpanFinder; SpanFinder([{'type': 'date'}]).document('3 Feb 2018');"
        "sys.exit(bool({'ray', 'vllm', 'torch', 'numba'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_long_line_of_digits_is_read_in_bounded_steps() -> None:
    text = "1 " * 20_000 + "9" * 50_000 + " 1.1" * 5_000
    found = found_in(text, {"type": "decimal"})
    assert len(found) < len(text)
