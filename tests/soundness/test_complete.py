"""Every valid instance, as compact JSON in declaration order, is accepted; what is left out on purpose has its reason.

Instances of each type: `RECORDMILL_SOUNDNESS_INSTANCES` (default 20).
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pydantic import TypeAdapter

from tests.soundness.entry import Entry
from tests.soundness.instances import instances_of
from tests.soundness.models import CATALOGUE
from tests.soundness.ordering import in_declared_order
from tests.soundness.subject import compiled

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
def test_every_instance_is_accepted(entry: Entry) -> None:
    subject = compiled(entry.name)
    if subject.grammar is None:
        pytest.skip(f"refused: {subject.refusal}")
    is_exact = entry.over_restricting is None or entry.instances is not None
    seen: dict[bytes, bool] = {}

    @_drawn
    @given(instances_of(entry))
    def check(text: bytes) -> None:
        seen[text] = subject.grammar.automaton.accepts(text)
        if is_exact:
            assert seen[text], f"a valid instance that the automaton refuses: {text.decode(errors='replace')}"

    check()
    if entry.over_restricting is not None:
        share = sum(seen.values()) / len(seen)
        print(f"{entry.name}: {share:.0%} of {len(seen)} instances accepted; {entry.over_restricting}")
        assert any(seen.values()), f"no instance is accepted: {entry.over_restricting}"


@pytest.mark.parametrize("entry", _ENTRIES, ids=lambda entry: entry.name)
def test_instances_are_values_of_the_type(entry: Entry) -> None:
    adapter = TypeAdapter(entry.type)

    @_drawn
    @given(instances_of(entry))
    def check(text: bytes) -> None:
        adapter.validate_json(text)

    check()


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
