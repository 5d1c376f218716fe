"""Automata of patterns, numbers and formats against oracles: Python's `re`, `Decimal`, `datetime`, `ipaddress`."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
from decimal import Decimal
from functools import cache
from typing import Annotated

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from pipeline.decoding import Verdict, compile_grammar
from pipeline.decoding.automata import Dfa
from pipeline.decoding.formats import string_language
from pipeline.decoding.jsontext import json_string, string_of
from pipeline.decoding.numbers import Bounds, integers, numbers
from pipeline.decoding.regex import compile_pattern
from pipeline.decoding.regex_parser import PatternError, parse_pattern
from pipeline.decoding.strings import any_string
from tests.unit.decoding.support import is_enforced

PATTERNS = [
    *(r"^a|b$", r"^(a|b)$", "abc", r"^[A-Z]{2}\d{3,5}$", r"^(?!foo)[a-z]+$", r"^(?=.*\d)(?=.*[a-z]).{4,8}$"),
    *(r"(^x|y$)", r"[^\d]", r"^\w+@\w+\.com$", r"^$", "", ".", r"^(a|^b)$", r"^[^a-c]*$", r"a{0}b"),
    *(r"^(ab?){2,3}$", r"x*?y", r"^\x41$"),
]
ALPHABET = "abcxyzfoA1290@.com_ \né"


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text(alphabet=ALPHABET, max_size=9))
def test_a_pattern_finds_what_re_finds(pattern: str, text: str) -> None:
    oracle = re.search(pattern.replace("$", r"\Z"), text, re.ASCII)
    assert compile_pattern(pattern).accepts(map(ord, text)) == (oracle is not None)


@pytest.mark.parametrize("pattern", [r"(a)\1", r"\bword\b", "(?<=a)b", "a(b", "[z-a]", "x(a(?=b)c)y"])
def test_a_pattern_that_no_automaton_holds_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern)


bounds = st.decimals(-3000, 3000, places=2, allow_nan=False)
spelt = st.from_regex(r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?", fullmatch=True, alphabet="-.0123456789")


@given(low=st.none() | bounds, high=st.none() | bounds, opens=st.tuples(st.booleans(), st.booleans()), text=spelt)
def test_a_range_of_numbers_holds_exactly_its_numbers(
    low: Decimal | None, high: Decimal | None, opens: tuple[bool, bool], text: str
) -> None:
    value = Decimal(text)
    assume(not (text.startswith("-") and value == 0))
    is_above = low is None or value > low or (value == low and not opens[0])
    is_below = high is None or value < high or (value == high and not opens[1])
    language = numbers(Bounds(low, high, *opens))
    assert language.accepts(text.encode()) == (is_above and is_below)


@given(low=st.integers(-500, 500), span=st.integers(0, 2000), step=st.integers(1, 40), value=st.integers(-3000, 3000))
def test_integers_hold_range_and_multiple_together(low: int, span: int, step: int, value: int) -> None:
    language = integers(Bounds(Decimal(low), Decimal(low + span)), step)
    assert language.accepts(str(value).encode()) == (low <= value <= low + span and value % step == 0)


@given(text=st.text(max_size=12), least=st.integers(0, 5), most=st.integers(5, 10))
def test_a_string_has_one_spelling_and_a_length_in_characters(text: str, least: int, most: int) -> None:
    assume(not any(0xD800 <= ord(char) <= 0xDFFF for char in text))
    spelling = json.dumps(text, ensure_ascii=False).encode()
    assert string_of(least, most).accepts(spelling) == (least <= len(text) <= most)


@given(data=st.binary(max_size=12))
def test_what_a_string_accepts_is_json(data: bytes) -> None:
    if string_of().accepts(b'"' + data + b'"'):
        assert isinstance(json.loads(b'"' + data + b'"'), str)


def test_surrogates_have_no_spelling() -> None:
    language = json_string(compile_pattern("^x$").complement(0x10FFFF))
    assert not language.accepts(b'"\xed\xa0\x80"')
    assert language.accepts('"é"'.encode())
    assert any_string().accepts([0xD7FF])


@given(day=st.dates(), shift=st.integers(-3, 3))
def test_dates_are_those_of_the_calendar(day: dt.date, shift: int) -> None:
    language = string_language({"kind": "date", "ge": "1900-02-28", "lt": "2024-03-01"})
    assert language.accepts(map(ord, day.isoformat())) == (dt.date(1900, 2, 28) <= day < dt.date(2024, 3, 1))
    text = f"{day:%Y}-02-{28 + shift:02d}"
    try:
        dt.date.fromisoformat(text)
        is_real = True
    except ValueError:
        is_real = False
    assert string_language({"kind": "date"}).accepts(map(ord, text)) == is_real


@given(address=st.ip_addresses(v=6))
def test_ipv6_holds_every_compressed_address(address: ipaddress.IPv6Address) -> None:
    assume("." not in str(address))
    assert string_language({"kind": "ipv6"}).accepts(map(ord, str(address)))


@given(text=st.text(alphabet="0123456789abcdef:", max_size=20))
def test_ipv6_holds_nothing_else(text: str) -> None:
    if string_language({"kind": "ipv6"}).accepts(map(ord, text)):
        ipaddress.IPv6Address(text)


@pytest.mark.parametrize("multiple", ["1.5", "0.3", "2.5", "0.25", "7"])
def test_integers_hold_multiples_that_are_none(multiple: str) -> None:
    """Fails when a multiple is cut to an integer."""
    grammar = compile_grammar({"type": "integer", "multipleOf": float(multiple)})
    found = [number for number in range(61) if grammar.automaton.accepts(str(number).encode())]
    assert found == [number for number in range(61) if Decimal(number) % Decimal(multiple) == 0]


@pytest.mark.parametrize("pattern", [r"\p{Lu", r"\p{^L}", r"\u{41", "(?P<name", r"(?<n", r"[a-", r"(a", r"a{2"])
def test_what_is_not_closed_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        parse_pattern(pattern, "rust")


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?i)^[^k]$", "(?i)^[^s]$", r"^[^\p{L}]$", r"^[\P{L}]$", "(?i)^[^a-z]$", r"^\P{Lu}$", r"^[^\P{Lu}]$"),
        *(r"^[^\W]$", r"^[^\D]$", r"^[^\S]$", "(?i)^ı$"),
    ],
)
@pytest.mark.parametrize(
    "char", ["k", "K", "\u212a", "s", "\u017f", "L", "1", "é", "_", "\u0378", "I", "\u24b6", "\x1c"]
)
def test_negated_classes_allow_no_more_than_pydantic_does(pattern: str, char: str) -> None:
    """Fails when `_cases` says what a class that is ruled out holds."""
    model = create_model("Model", value=(str, Field(pattern=pattern)))
    if compile_pattern(pattern, "rust").accepts([ord(char)]):
        model(value=char)


@pytest.mark.parametrize("pattern", [r"(?i)^\P{Lt}$", r"^\p{Cn}$", r"^\p{C}$", r"^\012$", r"^[\012]$", r"^(?!(a$)\n)"])
def test_what_engines_read_differently_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(pattern, "rust")


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^(?!.*\d).+$", r"^(?!\w).$", r"^(?!\S).$", r"^(?!\s).$", r"^(?!\D).$", r"^(?![^\W]).$", r"^(?!a$|1$).+$"),
        *("(?i)^(?!k).$", "(?i)^[^i]$", r"^\D$", r"^\W$", r"^\S$", r"^[^\S]$", r"^(?!\p{Lu}).$"),
    ],
)
@pytest.mark.parametrize(
    "text", ["1", "٣", "a", "é", " ", "\x1c", "\x85", "\u3000", "K", "\u212a", "ı", "İ", "a\n", "1\n", "Ⓐ", "\u0378"]
)
def test_what_must_not_follow_is_taken_widely(pattern: str, text: str) -> None:
    """Python's reading: a class that was narrowed to be sound admits too much once it is turned round."""
    if compile_pattern(pattern, "rust").accepts(map(ord, text)):
        assert re.search(pattern.replace(r"\p{Lu}", "[A-ZÉ]"), text)


def test_a_type_at_two_paths_is_said_to_be_checked_afterwards_at_both() -> None:
    """Fails when what was found of a node is not repeated where the node is met again."""

    class Part(BaseModel):
        code: Annotated[str, Field(max_length=100_000)]

    class Whole(BaseModel):
        first: Part
        second: Part
        more: list[Part]

    verdicts = {item.path: item.verdict for item in compile_grammar(Whole).verdicts}
    assert [verdicts[path] for path in ("first.code", "second.code", "more[].code")] == [Verdict.WIDENED] * 3


MULTIPLES = ["10000", "1000000", "3600", "0.015625", "25000", "0.05", "12.5", "0.35", "19999"]


@cache
def _numbers(multiple: str) -> Dfa:
    return numbers(Bounds(), multiple=Decimal(multiple))


@cache
def _integers(multiple: str) -> Dfa:
    return integers(Bounds(), int(multiple))


@pytest.mark.parametrize("multiple", [multiple for multiple in MULTIPLES if multiple != "19999"])
@given(count=st.integers(-5000, 5000), off=st.sampled_from([0, 0, 1, -1, 10]), decimals=st.integers(0, 6))
def test_multiples_are_told_from_their_neighbours(multiple: str, count: int, off: int, decimals: int) -> None:
    """Fails when remainders are one state that lack different digits."""
    step = Decimal(multiple)
    value = count * step + off * Decimal(1).scaleb(-decimals)
    places = max(1, -int(step.normalize().as_tuple().exponent))
    for text in (f"{value:f}", f"{value.normalize():f}", f"{value:.{decimals}f}"):
        whole, _, fraction = text.partition(".")
        assume(not (text.startswith("-") and Decimal(text) == 0) and len(whole) < 16)
        is_multiple = Decimal(text) % step == 0
        assert _numbers(multiple).accepts(text.encode()) == (is_multiple and len(fraction) <= places)
        if "." not in multiple and not fraction:
            assert _integers(multiple).accepts(text.encode()) == is_multiple


@pytest.mark.parametrize("multiple", MULTIPLES)
def test_a_multiple_takes_the_states_that_it_needs(multiple: str) -> None:
    """Fails when it is judged by its size, not by the digits that its multiples may end with."""
    model = create_model("Model", value=(Annotated[Decimal, Field(multiple_of=Decimal(multiple))], ...))
    grammar = compile_grammar(model)
    assert is_enforced(grammar) == (multiple != "19999")
    assert grammar.automaton.state_count < 1000


def test_a_decimal_whose_multiple_is_too_fine_is_checked_afterwards() -> None:
    class Grain(BaseModel):
        grams: Annotated[Decimal, Field(multiple_of=Decimal("0.9973"))]

    verdicts = {item.path: item.verdict for item in compile_grammar(Grain).verdicts}
    assert verdicts["grams"] is Verdict.WIDENED
