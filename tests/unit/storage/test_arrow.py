"""Outcomes as rows: nothing lost, nothing altered, and one schema whatever the rows are."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, HttpUrl, NaiveDatetime

from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.storage.arrow import outcomes_table, record_schema, storable
from pipeline.storage.footer import part_footer
from pipeline.storage.parts import encode_part, read_part
from tests.stores import MemoryStore


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    name: str
    price: Annotated[Decimal, Field(max_digits=12, decimal_places=2)] | None = None
    note: int | str | None = None


class Record(BaseModel):
    title: str
    count: int
    ratio: float | None = None
    is_paid: bool = False
    amount: Decimal = Decimal(0)
    total: Annotated[Decimal, Field(max_digits=12, decimal_places=2)] = Decimal(0)
    day: dt.date | None = None
    at: dt.datetime | None = None
    wall: NaiveDatetime | None = None
    clock: dt.time | None = None
    lasts: dt.timedelta | None = None
    blob: bytes = b""
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] | None = None
    key: uuid.UUID | None = None
    items: list[Item] = []
    best: Item | None = None
    tags: set[str] = set()
    pair: tuple[int, int] | None = None
    prices: dict[str, Item] = {}
    anything: Any = None


SCHEMA = record_schema(Record, {"source": pa.string(), "pages": pa.int32()})

# What pydantic holds and Parquet holds too: UTF-8 text, 64-bit integers, microseconds.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ints = st.integers(-(2**63), 2**63 - 1)
money = st.decimals(-(10**9), 10**9, places=2)
items = st.builds(Item, name=texts, price=st.none() | money, note=st.none() | ints | texts)
json_values = st.recursive(
    st.none() | st.booleans() | ints | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)
records = st.builds(
    Record,
    title=texts,
    count=ints,
    ratio=st.none() | st.floats(allow_nan=False),
    is_paid=st.booleans(),
    amount=st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**6), max_value=10**6),
    total=money,
    day=st.none() | st.dates(),
    at=st.none() | st.datetimes(timezones=st.just(dt.UTC)),
    wall=st.none() | st.datetimes(),
    clock=st.none() | st.times(),
    lasts=st.none() | st.timedeltas(dt.timedelta(days=-9000), dt.timedelta(days=9000)),
    blob=st.binary(max_size=8),
    colour=st.sampled_from(Colour),
    kind=st.sampled_from(["a", "b", None]),
    key=st.none() | st.uuids(),
    items=st.lists(items, max_size=3),
    best=st.none() | items,
    tags=st.sets(texts, max_size=3),
    pair=st.none() | st.tuples(ints, ints),
    prices=st.dictionaries(texts, items, max_size=3),
    anything=json_values,
)
outcomes = st.builds(
    lambda record, key, shaped, spans, source, pages: Outcome(
        document_id=key,
        status=Status.CLOSED if shaped else Status.VALID,
        cause=Cause.BUDGET if shaped else None,
        record=record.model_dump(),
        prompt_tokens=10,
        output_tokens=20,
        budget_tokens=30,
        slack_tokens=10,
        shaped_fields=tuple(shaped),
        spans=tuple(spans),
        extra={"source": source, "pages": pages},
    ),
    records,
    st.none() | texts,
    st.lists(texts, max_size=2),
    st.lists(st.builds(FoundSpan, texts, st.integers(0, 2**40), st.integers(0, 2**40), st.booleans()), max_size=2),
    st.none() | texts,
    st.none() | st.integers(-(2**31), 2**31 - 1),
)


def _through_a_part(rows: list[Outcome]) -> pa.Table:
    """Model, outcome, table, Parquet, and back."""
    now = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
    table = outcomes_table(rows, SCHEMA, attempt="attempt-1", engine="scripted 1")
    footer = part_footer(
        [storable(row, SCHEMA) for row in rows],
        shard_id="0" * 16,
        fingerprint="f" * 64,
        attempt="attempt-1",
        engine="scripted 1",
        started_at=now,
        finished_at=now,
    )
    store = MemoryStore()
    store.put_if_absent("s3://memory/part", encode_part(table, footer), attempt="attempt-1")
    return read_part(store, "s3://memory/part")


def _back(row: dict[str, Any]) -> Record:
    """The record that a row holds, made by reading the row as the README tells users to."""
    values = {name: row[name] for name in Record.model_fields}
    for item in [*values["items"], *([values["best"]] if values["best"] else []), *dict(values["prices"]).values()]:
        item["note"] = None if item["note"] is None else json.loads(item["note"])
    values["prices"] = dict(values["prices"])
    values["anything"] = None if values["anything"] is None else json.loads(values["anything"])
    return Record.model_validate(values)


@settings(max_examples=150, deadline=None)
@given(st.lists(outcomes, min_size=1, max_size=4))
def test_a_record_comes_back_from_parquet_as_it_went_in(rows: list[Outcome]) -> None:
    table = _through_a_part(rows)
    assert table.schema.equals(SCHEMA)
    for row, outcome in zip(table.to_pylist(), rows, strict=True):
        assert _back(row) == Record.model_validate(outcome.record)
        assert row["_document_id"] == outcome.document_id
        assert row["_status"] == outcome.status
        assert row["_cause"] == outcome.cause
        assert tuple(row["_shaped_fields"]) == outcome.shaped_fields
        assert tuple(FoundSpan(**span) for span in row["_spans"]) == outcome.spans
        assert {name: row[name] for name in ("source", "pages")} == outcome.extra


@settings(max_examples=100, deadline=None)
@given(
    st.fixed_dictionaries({name: st.just(None) for name in ()})
    | st.dictionaries(st.sampled_from([*Record.model_fields, "unknown"]), json_values | st.decimals() | st.datetimes())
)
def test_no_record_whatever_it_holds_stops_a_part(record: dict[str, Any]) -> None:
    [row] = _through_a_part([Outcome("a", Status.VALID, record=record)]).to_pylist()
    if row["_status"] == "invalid":
        assert row["_cause"] == "not_storable"
        assert row["_detail"]
        assert all(row[name] is None for name in Record.model_fields)
    else:
        assert row["_status"] == "valid"


def test_a_part_without_a_record_has_the_types_of_any_other() -> None:
    failed = _through_a_part([Outcome("a", Status.FAILED, Cause.TOO_LONG), Outcome(None, Status.FAILED, Cause.NULL_ID)])
    empty = _through_a_part([])
    valid = _through_a_part([Outcome("a", Status.VALID, record=Record(title="t", count=1).model_dump())])
    assert failed.schema.equals(valid.schema, check_metadata=False)
    assert empty.schema.equals(valid.schema, check_metadata=False)
    assert pa.concat_tables([failed, empty, valid], promote_options="none").num_rows == 3
    assert failed["title"].null_count == 2


def _stored(**values: Any) -> Outcome:
    return storable(Outcome("a", Status.VALID, record={"title": "t", "count": 1, **values}), SCHEMA)


@pytest.mark.parametrize(
    ("values", "detail"),
    [
        ({"count": 2**63}, "count: the integer is beyond 64 bits"),
        ({"count": -(2**63) - 1}, "count: the integer is beyond 64 bits"),
        ({"title": "lone \ud800"}, "title: it holds a lone surrogate"),
        ({"total": Decimal("0.001")}, "total: no decimal128(12, 2) can hold it"),
        ({"total": Decimal(10) ** 10}, "total: no decimal128(12, 2) can hold it"),
        ({"total": Decimal("NaN")}, "total: the number is not finite"),
        ({"wall": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}, "wall: it has a UTC offset"),
        ({"at": dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))}, "at: no timestamp[us, tz=UTC]"),
        ({"day": dt.datetime(2026, 1, 1)}, "day: a datetime is not a date"),
        ({"items": [{"name": "a"}, {"name": "b", "price": Decimal("1e12")}]}, "items[1].price: "),
        ({"items": [{"name": "a", "colour": 1}]}, "items[0].colour: no column holds it"),
        ({"prices": {"x": {"name": 1, "note": "\ud800"}}}, "prices[x].note: "),
        ({"anything": object()}, "anything: it has no JSON form"),
        ({"surprise": 1}, "surprise: no column holds it"),
    ],
)
def test_what_a_column_cannot_hold_is_said_with_its_place(values: dict[str, Any], detail: str) -> None:
    outcome = _stored(**values)
    assert (outcome.status, outcome.cause, outcome.record) == (Status.INVALID, Cause.NOT_STORABLE, None)
    assert outcome.detail is not None
    assert outcome.detail.startswith(detail)


def test_the_record_that_does_not_fit_is_kept_as_raw_text() -> None:
    assert json.loads(_stored(count=2**70).raw or "") == {"title": "t", "count": 2**70}
    generated = Outcome("a", Status.VALID, record={"count": 2**70}, raw='{"count":1180591620717411303424}')
    assert storable(generated, SCHEMA).raw == generated.raw


def test_what_fits_is_left_alone() -> None:
    outcome = Outcome("a", Status.VALID, record=Record(title="t", count=1).model_dump(), extra={"source": "x"})
    assert storable(outcome, SCHEMA) is outcome


def test_an_instant_keeps_its_time_and_a_naive_one_is_utc() -> None:
    summer = dt.timezone(dt.timedelta(hours=2))
    at = [dt.datetime(2026, 7, 1, 12, tzinfo=summer), dt.datetime(2026, 7, 1, 12)]
    table = _through_a_part([Outcome("a", Status.VALID, record={"at": value}) for value in at])
    assert [value.hour for value in table["at"].to_pylist()] == [10, 12]
    assert str(table["at"].type) == "timestamp[us, tz=UTC]"


def test_a_time_of_day_with_an_offset_is_kept_at_utc() -> None:
    clock = dt.time(1, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    table = _through_a_part([Outcome("a", Status.VALID, record={"clock": clock})])
    assert table["clock"].to_pylist() == [dt.time(23, 30)]


def test_infinities_in_json_columns_are_still_json() -> None:
    table = _through_a_part([Outcome("a", Status.VALID, record={"anything": [float("inf"), float("nan")]})])
    assert json.loads(table["anything"][0].as_py(), parse_constant=pytest.fail) == ["Infinity", "NaN"]


def test_types_that_pydantic_dumps_as_objects_are_their_text() -> None:
    class Page(BaseModel):
        url: HttpUrl

    record = Page(url="https://example.com/a").model_dump()
    table = outcomes_table([Outcome("a", Status.VALID, record=record)], record_schema(Page), attempt="a", engine="e")
    assert table["url"].to_pylist() == ["https://example.com/a"]


def test_a_sets_order_does_not_depend_on_the_process() -> None:
    table = _through_a_part([Outcome("a", Status.VALID, record={"tags": {"b", "c", "a"}})])
    assert table["tags"].to_pylist() == [["a", "b", "c"]]


def test_audit_text_with_a_lone_surrogate_is_stored_readably() -> None:
    rows = [Outcome("a\ud800", Status.INVALID, Cause.NOT_JSON, detail="\ud800", raw='{"x": "\ud83d\ude00 \udfff"}')]
    [row] = _through_a_part(rows).to_pylist()
    assert row["_document_id"] == "a\ufffd"
    assert row["_raw"] == '{"x": "\U0001f600 \ufffd"}'


def test_a_passed_value_that_does_not_fit_is_null_and_takes_the_record_into_raw() -> None:
    failed = storable(Outcome("a", Status.FAILED, Cause.EMPTY, extra={"pages": 2**40, "source": "x"}), SCHEMA)
    assert (failed.status, failed.cause, failed.extra) == (Status.FAILED, Cause.EMPTY, {"source": "x"})
    valid = storable(Outcome("a", Status.VALID, record={"title": "t"}, extra={"pages": 2**40}), SCHEMA)
    assert (valid.status, valid.cause, valid.extra) == (Status.INVALID, Cause.NOT_STORABLE, {})


def test_the_decimal_context_of_the_process_does_not_matter() -> None:
    with decimal.localcontext() as context:
        context.prec = 3
        table = _through_a_part([Outcome("a", Status.VALID, record={"total": Decimal("1234567.89")})])
    assert table["total"].to_pylist() == [Decimal("1234567.89")]


def test_a_passed_map_keeps_a_key_that_stands_twice() -> None:
    schema = record_schema(Item, {"meta": pa.map_(pa.string(), pa.int64())})
    pairs = [("a", 1), ("a", 2), ("b", 3)]
    outcome = Outcome("d", Status.FAILED, Cause.EMPTY, extra={"meta": pairs})
    assert outcomes_table([outcome], schema, attempt="a", engine="e")["meta"].to_pylist() == [pairs]
