"""What a document lets an extractive field say, once the field's own constraints have had their say."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, create_model

from pipeline import Span
from pipeline.core.spec import parse_spec
from pipeline.decoding import compile_grammar, compile_guide
from pipeline.run.guidance import guidance_of
from tests.unit.decoding.support import vocabulary

TEXT = "Order AB-12 of 2018-02-03\nDue 2019-05-06, rate 0.1234, total 12.50, ref XY"
SPEC = parse_spec(
    {
        "name": "n",
        "input": {"uri": "in/"},
        "record": "a:B",
        "model": {"name": "m"},
        "output": {"uri": "out/"},
    },
    source="test",
)


def _can_write(fields: dict[str, Any], record: str) -> bool:
    model: type[BaseModel] = create_model("Record", **{name: (kind, ...) for name, kind in fields.items()})
    guidance = guidance_of(SPEC, compile_guide(compile_grammar(model), vocabulary()), {})
    reviewer = guidance.for_document(TEXT)
    assert reviewer is not None
    cursor = reviewer.guide.cursor(document=reviewer.document)
    return all(cursor.advance(4 + byte) for byte in record.encode())


OLD = Annotated[dt.date, Span(), Field(lt=dt.date(2019, 1, 1))]
NEW = Annotated[dt.date, Span(), Field(ge=dt.date(2019, 1, 1))]
MONEY = Annotated[Decimal, Span(), Field(ge=0, decimal_places=2)]
RATE = Annotated[Decimal, Span(), Field(ge=0, decimal_places=4)]
CODE = Annotated[str, Span(), Field(pattern="^[A-Z]{2}-[0-9]{2}$")]


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ({"a": OLD, "b": NEW}, '{"a":"2018-02-03","b":"2019-05-06"}'),
        ({"a": MONEY, "b": RATE}, '{"a":12.50,"b":0.1234}'),
        ({"a": CODE}, '{"a":"AB-12"}'),
    ],
)
def test_what_each_field_allows_can_be_copied(fields: dict[str, Any], record: str) -> None:
    assert _can_write(fields, record)


@pytest.mark.parametrize(
    ("fields", "record"),
    [
        ({"a": OLD, "b": NEW}, '{"a":"2018-02-03","b":"2018-02-03"}'),
        ({"a": MONEY, "b": RATE}, '{"a":0.1234'),
        ({"a": RATE, "b": MONEY}, '{"a":12.50,"b":0.1234'),
        ({"a": CODE}, '{"a":"XY"'),
    ],
)
def test_what_a_field_of_its_own_forbids_cannot_though_another_allows_it(fields: dict[str, Any], record: str) -> None:
    assert not _can_write(fields, record)
