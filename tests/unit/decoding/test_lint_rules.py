"""Rules of lint: each speaks where it should, and is silent where it should not."""

from __future__ import annotations

import datetime as dt
import enum
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model, field_validator

from pipeline import Span
from pipeline.decoding import lint_fields
from pipeline.decoding.lint import ENUM_AT_MOST, RULES, advise, advise_budget
from pipeline.decoding.pydantic_schema import schema_of_type
from pipeline.decoding.schema_fields import fields_of
from pipeline.decoding.typical import example_pieces, typical_pieces

Wide = enum.StrEnum("Wide", {f"v{number}": f"v{number}" for number in range(ENUM_AT_MOST + 1)})


def said(**fields: Any) -> set[tuple[str, str]]:
    """(path, rule) of all advice on a record with these fields, each its annotation; no descriptions are missed."""
    return {(item.path, item.rule) for item in advice_on(create_model("R", **fields)) if item.rule != "no_description"}


def advice_on(record: type[BaseModel]) -> Any:
    return advise(schema_of_type(record), lint_fields(record))


Text = Annotated[str, Field(max_length=20)]
Yes = Literal["yes", "no"]


@pytest.mark.parametrize(
    ("rule", "field", "loud", "silent"),
    [
        ("unbounded_string", "remark", str, Text),
        ("unbounded_string", "remark", str | None, Text | None),
        (
            "unbounded_string",
            "remark",
            Annotated[str, Field(pattern=r"^a+$")],
            Annotated[str, Field(pattern=r"^a{2,9}$")],
        ),
        ("unbounded_string", "remark", Annotated[str, Field(pattern=r"^x*$")], Annotated[str, Field(pattern=r"^x\*$")]),
        ("unbounded_string", "remark", str, Annotated[str, Span()]),
        ("unbounded_string", "remark", str, dt.date),
        ("unbounded_list", "lines", list[int], Annotated[list[int], Field(max_length=3)]),
        ("unbounded_list", "lines", dict[str, int], tuple[int, int]),
        ("large_enum", "kind", Wide, Yes),
        ("empty_name", "data", Text, None),
        ("empty_name", "field1", Text, None),
        ("empty_name", "value_2", Text, None),
        ("looks_copied", "company", Text, Annotated[str, Span(), Field(max_length=20)]),
        ("looks_copied", "due", dt.date, Annotated[dt.date, Span()]),
        ("looks_copied", "total", Decimal, Annotated[Decimal, Span()]),
        ("looks_copied", "country", Text, Yes),
    ],
)
def test_a_rule_speaks_of_one_and_not_of_the_other(rule: str, field: str, loud: Any, silent: Any) -> None:
    assert (field, rule) in said(**{field: (loud, ...)})
    if silent is None:
        assert ("dataset", rule) not in said(dataset=(loud, ...))
    else:
        assert (field, rule) not in said(**{field: (silent, ...)})


@pytest.mark.parametrize(
    ("order", "is_late"),
    [
        ({"label": Yes, "reasoning": Text}, True),
        ({"reasoning": Text, "label": Yes}, False),
        ({"is_fraud": bool, "evidence": Text}, True),
        ({"amount": int, "amount_quote": Text}, True),
        ({"amount_quote": Text, "amount": int}, False),
        ({"company": Text, "explanation": Text, "score": int}, False),
    ],
)
def test_reasoning_comes_before_the_answer_it_leads_to(order: dict[str, Any], is_late: bool) -> None:
    found = said(**{name: (kind, ...) for name, kind in order.items()})
    assert any(rule == "answer_before_reasoning" for _, rule in found) == is_late


def test_rules_reach_nested_fields_by_the_paths_of_the_verdicts() -> None:
    class Inner(BaseModel):
        note: str

    class Outer(BaseModel):
        first: Annotated[list[Inner], Field(max_length=2)]
        second: dict[str, Inner]

    paths = {item.path for item in advice_on(Outer) if item.rule == "unbounded_string"}
    assert paths == {"first[].note", "second.*.note"}
    assert paths <= {verdict.path for verdict in lint_fields(Outer)}


def test_descriptions_count_wherever_pydantic_puts_them() -> None:
    class Described(BaseModel):
        """What it is."""

        note: Annotated[Text, Field(description="said here")]

    class Outer(BaseModel):
        inner: Described
        bare: Text

    assert [item.path for item in advice_on(Outer) if item.rule == "no_description"] == ["bare"]


def test_what_is_checked_afterwards_is_said_with_its_reason() -> None:
    class Checked(BaseModel):
        note: Text

        @field_validator("note")
        @classmethod
        def _loud(cls, value: str) -> str:
            return value

    found = [item for item in advice_on(Checked) if item.rule == "checked_afterwards"]
    assert [item.path for item in found] == ["note"]
    assert "validator" in found[0].message


def test_a_recursive_type_is_followed_once_and_ends() -> None:
    class Node(BaseModel):
        note: str
        below: list[Node] = []

    assert {item.path for item in advice_on(Node) if item.rule == "unbounded_string"} == {"note"}


def test_every_rule_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("max_tokens", "least", "likely", "rule"),
    [
        (10, 20, 50, "budget_below_least"),
        (40, 20, 50, "budget_below_likely"),
        (50, 20, 50, None),
        (40, None, 50, "budget_below_likely"),
    ],
)
def test_a_budget_too_small_comes_with_one_that_would_do(
    max_tokens: int, least: int | None, likely: int, rule: str | None
) -> None:
    found = advise_budget(max_tokens, least, likely)
    assert (found.rule if found else None) == rule
    if found is not None:
        wanted = int(found.message.split()[-3])
        assert advise_budget(wanted, least, likely) is None


def test_examples_are_taken_apart_into_the_fields_they_hold() -> None:
    class Line(BaseModel):
        name: str

    class Record(BaseModel):
        total: int
        lines: list[Line]

    tree = fields_of(schema_of_type(Record))
    examples = [{"total": 3, "lines": [{"name": "a"}, {"name": "b"}]}, {"total": 4, "lines": []}]
    found = [(path, text) for path, text, _ in example_pieces(tree, examples)]
    assert found.count(("lines[].name", '"name":"a",')) == 1
    assert found.count(("total", '"total":4,')) == 1
    assert {times for _, _, times in example_pieces(tree, examples)} == {0.5}


def test_typical_values_keep_to_their_bounds_and_lists_count_their_items() -> None:
    class Line(BaseModel):
        name: Annotated[str, Field(max_length=5)]

    class Record(BaseModel):
        lines: Annotated[list[Line], Field(max_length=2)]

    pieces = {path: (text, times) for path, text, times in typical_pieces(fields_of(schema_of_type(Record)))}
    text, times = pieces["lines[].name"]
    assert times == 2
    assert len(text) == len('"name":"12345",')
