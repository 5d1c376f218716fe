"""Input objects become shards, and a plan survives being written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.document import InputObject, Plan
from pipeline.core.errors import VerificationError
from pipeline.run.fingerprint import Identity
from pipeline.run.plan import (
    StoredPlan,
    longest_first,
    make_shards,
    parse_plan,
    render_plan,
    spread,
    text_bytes,
    write_plan,
)
from pipeline.storage.layout import RunLayout
from tests.stores import MemoryStore


def _object(name: str, rows: tuple[int, ...], unreadable: str | None = None) -> InputObject:
    return InputObject(f"s3://b/in/{name}.parquet", f"etag-{name}", 1000, rows, tuple(9 * r for r in rows), unreadable)


OBJECTS = st.lists(st.lists(st.integers(0, 300), max_size=6).map(tuple), max_size=6).map(
    lambda groups: tuple(_object(str(index), rows) for index, rows in enumerate(groups))
)


@given(OBJECTS, st.integers(1, 200))
def test_every_row_is_planned_once_in_order_and_no_shard_is_too_large(
    objects: tuple[InputObject, ...], shard_rows: int
) -> None:
    shards = make_shards(objects, shard_rows)
    planned = [
        (piece.uri, piece.row_group, row)
        for shard in shards
        for piece in shard.pieces
        for row in range(piece.row_start, piece.row_stop)
    ]
    wanted = [
        (item.uri, index, row)
        for item in objects
        for index, rows in enumerate(item.row_group_rows)
        for row in range(rows)
    ]
    assert planned == wanted
    assert all(1 <= shard.rows <= shard_rows for shard in shards)
    assert len({shard.shard_id for shard in shards}) == len(shards)


def test_small_row_groups_are_combined_across_objects_and_large_ones_divided_evenly() -> None:
    shards = make_shards((_object("a", (10, 20)), _object("b", (30, 250)), _object("c", (5,))), 100)
    assert [shard.rows for shard in shards] == [60, 83, 83, 84, 5]


def test_an_object_with_a_bad_footer_is_in_the_plan_but_in_no_shard() -> None:
    objects = (_object("a", (10,)), _object("bad", (), "no footer"))
    stored = StoredPlan(Plan("f" * 16, objects, make_shards(objects, 100)), Identity({}))
    again = parse_plan(render_plan(stored), source="plan")
    assert again.plan.objects[1].unreadable == "no footer"
    assert again.plan.rows == 10


@given(OBJECTS, st.integers(1, 200))
def test_a_plan_reads_back_as_it_was_written(objects: tuple[InputObject, ...], shard_rows: int) -> None:
    stored = StoredPlan(Plan("0" * 16, objects, make_shards(objects, shard_rows)), Identity({"a.b": 1, "c": ["x"]}))
    assert parse_plan(render_plan(stored), source="plan") == stored


def test_a_plan_of_100_000_row_groups_takes_few_megabytes() -> None:
    objects = tuple(_object(str(index), (1000,) * 100) for index in range(1000))
    stored = StoredPlan(Plan("0" * 16, objects, make_shards(objects, 2000)), Identity({}))
    assert len(render_plan(stored)) < 4_000_000
    assert parse_plan(render_plan(stored), source="plan").plan.rows == 100_000_000


@pytest.mark.parametrize("spoil", [lambda d: d[:-40], lambda d: d.replace(b'"rows":30', b'"rows":31'), lambda d: b"{}"])
def test_a_spoilt_plan_is_refused(spoil: object) -> None:
    objects = (_object("a", (10, 20)),)
    data = render_plan(StoredPlan(Plan("0" * 16, objects, make_shards(objects, 100)), Identity({})))
    with pytest.raises(VerificationError, match=r"plan\.json"):
        parse_plan(spoil(data), source="plan.json")  # type: ignore[operator]


def test_a_second_driver_gets_the_first_ones_plan() -> None:
    store, layout = MemoryStore(), RunLayout("s3://b/run/")
    objects = (_object("a", (10, 20)),)
    first = StoredPlan(Plan("0" * 16, objects, make_shards(objects, 100)), Identity({}))
    second = StoredPlan(Plan("1" * 16, objects, make_shards(objects, 5)), Identity({}))
    assert write_plan(store, layout, first, attempt="one") == first
    assert write_plan(store, layout, second, attempt="two") == first


def test_shards_with_the_most_text_come_first_and_equal_ones_in_the_plans_order() -> None:
    """Rows say nothing of it: the middle shard has the fewest, and a divided row group's text goes with its rows."""
    objects = (
        InputObject("s3://b/a", "a", 1, (100, 5), (2000, 9000)),
        InputObject("s3://b/b", "b", 1, (150, 100, 20), (3000, 700, 0)),
    )
    shards = make_shards(objects, 100)
    assert [shard.rows for shard in shards] == [100, 5, 75, 75, 100, 20]
    plan = Plan("f" * 16, objects, shards)
    pending = {shard.shard_id: shard for shard in shards}
    assert list(longest_first(pending, text_bytes(plan, pending)).values()) == [
        shards[index] for index in (1, 0, 2, 3, 4, 5)
    ]
    del pending[shards[2].shard_id]
    again = parse_plan(render_plan(StoredPlan(plan, Identity({}))), source="plan").plan
    assert list(longest_first(pending, text_bytes(again, pending)).values()) == [
        shards[index] for index in (1, 0, 3, 4, 5)
    ]


@given(OBJECTS, st.integers(1, 200), st.integers(1, 2000))
def test_a_spread_sample_holds_enough_documents_or_all(
    objects: tuple[InputObject, ...], shard_rows: int, documents: int
) -> None:
    shards = {shard.shard_id: shard for shard in make_shards(objects, shard_rows)}
    sample = spread(shards, documents)
    assert sample.items() <= shards.items()
    assert sum(shard.rows for shard in sample.values()) >= documents or sample == shards


def test_a_spread_sample_has_long_and_short_shards_as_the_whole_has() -> None:
    """Fails when it is the first shards, or every one."""
    shards = make_shards((_object("a", (10,) * 90),), 10)
    names = {shard.shard_id: number for number, shard in enumerate(shards)}
    ordered = {shard.shard_id: shard for shard in shards}
    assert [names[name] for name in spread(ordered, 30)] == [15, 45, 75]
    assert [names[name] for name in spread(ordered, 1)] == [45]


def test_parts_of_one_row_group_stay_together_in_the_order_of_their_rows() -> None:
    """Their rows differ by one, and so do their sizes; fails when the larger ones come before the others."""
    objects = (_object("a", (248,)), _object("b", (250,)))
    shards = make_shards(objects, 100)
    assert [shard.rows for shard in shards] == [82, 83, 83, 83, 83, 84]
    pending = {shard.shard_id: shard for shard in shards}
    order = list(longest_first(pending, text_bytes(Plan("f" * 16, objects, shards), pending)).values())
    assert order == [*shards[3:], *shards[:3]]
