"""Every valid instance, as compact JSON in declaration order, is accepted; what is left out on purpose has its reason.

Instances of each type: `RECORDMILL_SOUNDNESS_INSTANCES` (default 20).
"""

from __future__ import annotations

import os
from datetime import date, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Address
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import AnyUrl, Field, TypeAdapter

from pipeline.decoding import compile_grammar
from tests.soundness.catalogue.objects import Person
from tests.soundness.entry import Entry
from tests.soundness.instances import instances_of
from tests.soundness.models import CATALOGUE
from tests.soundness.ordering import in_declared_order
from tests.soundness.subject import compiled

LEFT_OUT: list[tuple[Any, bytes, str]] = [
    (str, rb'"\u0041"', "each character has one spelling"),
    (str, rb'"a\/b"', "each character has one spelling"),
    (Person, b'{"age":1,"name":"a"}', "keys come in the order of declaration"),
    (Person, b'{"name": "a", "age": 1}', "no white space between tokens"),
    (Person, b'{"name":"a","age":"1"}', "an int is a number, not text that reads as one"),
    (Person, b'{"name":"a","age":1,"more":0}', "keys that the model would ignore are not written"),
    (bool, b'"yes"', "a bool is true or false"),
    (int, b"12345678901234567890", "integers have 19 digits"),
    (int, b"1.0", "an int is written as one"),
    (float, b"-0.0", "zero has no sign"),
    (Annotated[float, Field(ge=0, le=1)], b"0.30000000000000004", "a float with bounds has 15 digits"),
    (Annotated[float, Field(ge=0, le=1)], b"1e-7", "a float with bounds has no exponent"),
    (Decimal, b'"1E+3"', "a decimal has no exponent"),
    (Annotated[str, Field(pattern=r"^\d$")], '"٣"'.encode(), "\\d is ASCII"),
    (date, b"0", "a date is written as one, not as seconds"),
    (datetime, b'"2020-01-01T00:00"', "times have seconds"),
    (datetime, b'"2020-01-01 00:00:00"', "date and time are parted by T"),
    (timedelta, b'"P1Y"', "a year is no fixed time"),
    (UUID, b'"6F9619FF-8B86-D011-B42D-00C04FC964FF"', "UUIDs are in lower case"),
    (AnyUrl, b'"https://user:secret@h.org/"', "URLs hold no credentials"),
    (IPv4Network, b'"192.0.2.0/30"', "network prefixes are whole bytes"),
    (IPv6Address, b'"::ffff:192.0.2.1"', "IPv6 addresses hold no IPv4 part"),
]
"""Texts that their type accepts and no grammar writes, each with the reason: what a guide leaves out on purpose."""

INSTANCES = int(os.environ.get("RECORDMILL_SOUNDNESS_INSTANCES", "20"))

_ENTRIES = [entry for entry in CATALOGUE if not entry.tags & {"no_json", "unwritten"}]
_drawn = settings(
    max_examples=INSTANCES,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)


@pytest.mark.parametrize("entry", _ENTRIES, ids=lambda entry: entry.name)
def test_every_instance_is_valid_and_accepted(entry: Entry) -> None:
    subject = compiled(entry.name)
    is_exact = entry.over_restricting is None or entry.instances is not None
    seen: dict[bytes, bool] = {}

    @_drawn
    @given(instances_of(entry))
    def check(text: bytes) -> None:
        entry.adapter.validate_json(text)
        if subject.grammar is None:
            return
        seen[text] = subject.grammar.automaton.accepts(text)
        if is_exact:
            assert seen[text], f"a valid instance that the automaton refuses: {text.decode(errors='replace')}"

    check()
    if subject.grammar is None:
        pytest.skip(f"refused: {subject.refusal}")
    if entry.over_restricting is not None:
        share = sum(seen.values()) / len(seen)
        print(f"{entry.name}: {share:.0%} of {len(seen)} instances accepted; {entry.over_restricting}")
        assert any(seen.values()), f"no instance is accepted: {entry.over_restricting}"


@pytest.mark.parametrize(("tp", "text", "reason"), LEFT_OUT, ids=[reason for _, _, reason in LEFT_OUT])
def test_what_is_left_out_on_purpose(tp: Any, text: bytes, reason: str) -> None:
    TypeAdapter(tp).validate_json(text)
    assert not compile_grammar(tp).automaton.accepts(text), f"now written; no longer true: {reason}"


def test_declared_order_reaches_through_references_and_combinators() -> None:
    schema = {
        "properties": {"z": {"$ref": "#/$defs/pair"}, "y": {}},
        "allOf": [{"properties": {"x": {}}}],
        "additionalProperties": {"properties": {"d": {}, "c": {}}},
        "$defs": {"pair": {"properties": {"b": {}, "a": {}}}},
    }
    value = {"free": {"c": 1, "d": 2}, "x": 1, "y": 2, "z": {"a": 1, "b": 2}}
    ordered = in_declared_order(value, schema)
    assert list(ordered) == ["z", "y", "x", "free"]
    assert list(ordered["z"]) == ["b", "a"]
    assert list(ordered["free"]) == ["d", "c"]
