"""Forms of numbers and amounts, and what each may be read as."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spans.reading import found_in, values_in


@pytest.mark.parametrize(
    ("form", "whole"),
    [
        ("12.50", ["12.50"]), ("12,50", ["12.50"]), ("1,234.56", ["1234.56"]), ("1.234,56", ["1234.56"]),
        ("1'234.56", ["1234.56"]),
        ("1’234.56", ["1234.56"]), ("1`234.56", ["1234.56"]), ("1 234,56", ["1234.56"]), ("1\u00a0234,56", ["1234.56"]),
        ("1\u202f234.56", ["1234.56"]),
        ("1 234 567,8", ["1234567.8"]), ("1,234,567.89", ["1234567.89"]), ("1.234.567,89", ["1234567.89"]),
        ("1,234,567", ["1234567"]),
        ("12,34,567.00", ["1234567.00"]), ("1,234", ["1.234", "1234"]), ("1.234", ["1.234", "1234"]),
        ("9.000", ["9.000", "9000"]),
        ("0.234", ["0.234"]), ("1234.5", ["1234.5"]), ("007", ["7"]), ("00.50", ["0.50"]), (".50", ["0.50"]),
        ("0", ["0"]),
        ("1.5e3", ["1500"]), ("2.5E-2", ["0.025"]), ("１２．５０", ["12.50"]), ("١٢٫٥٠", ["12.50"]), ("१२३", ["123"]),
        ("-12.50", ["-12.50"]), ("−12.50", ["-12.50"]), ("- 12.50", ["-12.50"]), ("(12.50)", ["-12.50"]),
        ("12.50-", ["-12.50"]),
        ("-$12.50", ["-12.50"]), ("$-12.50", ["-12.50"]), ("-RM12.50", ["-12.50"]), ("RM -12.50", ["-12.50"]),
        ("(RM 12.50)", ["-12.50"]), ("( 1,234.56 )", ["-1234.56"]), ("(12.50 )", ["-12.50"]),
        ("(12.50 EUR )", ["-12.50"]),
        ("($1,234.56)", ["-1234.56"]), ("(12.50 EUR)", ["-12.50"]), ("-€ 5", ["-5"]), ("(6%)", ["-6"]),
        ("-1.234,56", ["-1234.56"]),
        ("(1 234,56)", ["-1234.56"]), ("1 234,56-", ["-1234.56"]),
    ],
)  # fmt: skip
def test_a_number_is_found_with_its_place_in_many_forms(form: str, whole: list[str]) -> None:
    found = values_in(f"Total: {form} net", {"type": "decimal"})
    readings = [value for value, source in found if source in (form, form.removeprefix("$").removeprefix("RM "))]
    assert readings == whole


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("RM12.50", ["12.50"]), ("12.50RM", ["12.50"]), ("$12.50", ["12.50"]), ("12,50€", ["12.50"]),
        ("CHF 12.-", ["12"]), ("12,-- kr", ["12"]),
        ("Fr. 12.–", ["12"]), ("6%", ["6"]), ("6.5 %", ["6.5"]), ("Rs.1,00,000/-", ["100000"]), ("@2.10", ["2.10"]),
        ("2x1.50", ["2", "1.50"]),
        ("1.50 x 2", ["1.50", "2"]), ("25/12/2018", ["25", "12", "2018"]), ("1.2.2018", ["1", "2", "2018"]),
        ("10-20", ["10", "20"]),
        ("10 - 20", ["10", "20"]), ("A-12", ["12"]), ("07-3523888", ["7", "3523888"]), ("INV-2018", ["2018"]),
        ("12.50.", ["12.50"]),
        ("3,4,5", ["3", "4", "5"]), ("1,23,4", ["1", "23", "4"]), ("1 234,56", ["1", "1234.56", "234.56"]),
        ("2 1 234,56", ["2", "1", "1234.56", "234.56"]),
        ("1 2345", ["1", "2345"]), ("0 123", ["0", "123"]), ("1234 567", ["1234", "567"]), ("-0.00", ["0.00"]),
        ("(0)", ["0"]),
        ("1,234.56.78", ["1", "234", "56", "78"]), ("no digits", []), ("½ cup", []), ("1\n234,56", ["1", "234.56"]),
    ],
)  # fmt: skip
def test_what_stands_around_a_number_neither_hides_nor_changes_it(text: str, values: list[str]) -> None:
    assert [value for value, _ in values_in(text, {"type": "decimal"})] == values


@pytest.mark.parametrize("form", ["-12.50", "(12.50)", "12.50-", "-RM12.50"])
def test_the_amount_of_a_negative_number_can_be_said_too(form: str) -> None:
    assert ("12.50", "12.50") in values_in(form, {"type": "decimal"})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234", ["1234"]), ("1.234", ["1234"]), ("12.00", ["12"]), ("12.50", []), ("007", ["7"]),
        ("1 234", ["1", "1234", "234"]), ("-5", ["-5", "5"]),
        ("9.000", ["9", "9000"]), ("3 pcs", ["3"]), ("1'234'567", ["1234567"]), ("25/12/2018", ["25", "12", "2018"]),
        ("1.5", []), ("12 345 678", ["12", "12345678", "345", "345678", "678"]),
    ],
)  # fmt: skip
def test_integers_are_the_numbers_without_a_fraction(text: str, values: list[str]) -> None:
    assert [value for value, _ in values_in(text, {"type": "integer"})] == values


@settings(deadline=None, max_examples=200)
@given(
    st.decimals(-(10**9), 10**9, places=2),
    st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), ("\u00a0", ","), ("", "."), ("", ",")]),
    st.sampled_from(["{}", "RM{}", "$ {}", "{} EUR", "Total {}", "{}%"]),
)
def test_every_amount_is_read_in_every_notation(amount: Decimal, marks: tuple[str, str], around: str) -> None:
    grouping, point = marks
    plain = f"{abs(amount):,.2f}"
    written = plain.replace(",", "g").replace(".", point).replace("g", grouping)
    sign = "-" if amount < 0 else ""
    values = {value for value, _ in values_in(around.format(sign + written), {"type": "decimal"})}
    assert f"{sign}{plain.replace(',', '')}" in values


@settings(deadline=None, max_examples=300)
@given(
    st.text(alphabet="0123456789.,'-() \u00a0RM$%eE", max_size=30), st.sampled_from(["decimal", "integer", "number"])
)
def test_what_is_found_is_a_json_number_that_the_text_has_the_digits_of(text: str, kind: str) -> None:
    for value, start, end in found_in(text, {"type": kind}):
        number = json.loads(value, parse_float=Decimal)
        assert isinstance(number, int if kind == "integer" else int | Decimal)
        assert value.startswith("-") == (number < 0)
        source = text[start:end]
        if "e" not in source.lower():
            digits = "".join(char for char in source if char.isdecimal()).lstrip("0")
            assert digits.startswith("".join(char for char in value if char.isdecimal()).lstrip("0"))


def test_the_same_value_at_several_places_is_a_candidate_at_each() -> None:
    assert found_in("9.00 and 9.00", {"type": "decimal"}) == [("9.00", 0, 4), ("9.00", 9, 13)]
