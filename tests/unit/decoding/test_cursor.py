"""Cursors: what is legal under a budget, and that giving back and looking ahead leave no trace."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from pipeline.decoding import Cursor, Guide, Vocabulary, compile_grammar, compile_guide, review
from pipeline.decoding.costs import TEXT_TOKENS, optional_text
from tests.unit.decoding.support import EOS, legal_ids, vocabulary


class Person(BaseModel):
    name: str
    nick: str | None
    tags: list[str] = Field(max_length=3)


@cache
def guide() -> Guide:
    return compile_guide(compile_grammar(Person), vocabulary())


def _walk(cursor: Cursor, choices: list[int]) -> list[int]:
    taken: list[int] = []
    for choice in choices:
        legal = legal_ids(cursor.row().words, guide().vocab_size)
        if cursor.is_terminated or not legal:
            break
        taken.append(legal[choice % len(legal)])
        assert cursor.advance(taken[-1])
    return taken


choices = st.lists(st.integers(0, 10**6), min_size=1, max_size=40)


@settings(max_examples=150)
@given(choices=choices, extra=st.integers(0, 25), reserve=st.integers(0, 5), back=st.integers(0, 40))
def test_giving_back_ids_is_the_same_as_not_having_taken_them(
    choices: list[int], extra: int, reserve: int, back: int
) -> None:
    budget = guide().least_tokens + extra
    kept = (reserve,) * len(guide().fields)
    cursor = guide().cursor(budget, kept)
    taken = _walk(cursor, choices)
    back = min(back, len(taken))
    cursor.rollback(back)
    replay = guide().cursor(budget, kept)
    for token_id in taken[: len(taken) - back]:
        assert replay.advance(token_id)
    assert (cursor.state, cursor.emitted, cursor.is_terminated) == (replay.state, replay.emitted, replay.is_terminated)
    assert np.array_equal(cursor.row().words, replay.row().words)


@settings(max_examples=100)
@given(choices=choices)
def test_what_is_forced_is_what_every_legal_token_begins_and_no_more_of_it_is(choices: list[int]) -> None:
    """Held against the mask: a legal token spells a part of it, or all of it and more; after it there is a choice."""
    cursor = guide().cursor()
    _walk(cursor, choices)
    forced = cursor.forced()
    spelt = [guide().decode((i,)) for i in legal_ids(cursor.row().words, guide().vocab_size) if i != EOS]
    if cursor.is_accepting:
        assert not forced
        return
    for token in spelt:
        assert token.startswith(forced) or forced.startswith(token)
    assert cursor.validate([4 + byte for byte in forced]) == [4 + byte for byte in forced]
    for byte in forced:
        cursor.advance(4 + byte)
    ends = {guide().decode((i,))[:1] for i in legal_ids(cursor.row().words, guide().vocab_size)}
    assert len(ends) > 1 or cursor.is_accepting


@settings(max_examples=150)
@given(choices=choices, extra=st.integers(0, 25), drafts=st.lists(st.integers(0, 290), max_size=6))
def test_validate_finds_the_longest_legal_prefix_and_stays_where_it_is(
    choices: list[int], extra: int, drafts: list[int]
) -> None:
    cursor = guide().cursor(guide().least_tokens + extra)
    _walk(cursor, choices[:10])
    before = (cursor.state, cursor.emitted)
    legal = cursor.validate(drafts)
    assert (cursor.state, cursor.emitted) == before
    for token_id in legal:
        assert token_id in legal_ids(cursor.row().words, guide().vocab_size) or token_id == EOS
        assert cursor.advance(token_id)
    assert legal == drafts[: len(legal)]
    if len(legal) < len(drafts):
        assert not cursor.advance(drafts[len(legal)])


@settings(max_examples=200)
@given(choices=st.lists(st.integers(0, 10**6), min_size=60, max_size=60), extra=st.integers(0, 30))
def test_every_walk_within_a_budget_ends_in_a_whole_record(choices: list[int], extra: int) -> None:
    budget = guide().least_tokens + extra
    cursor = guide().cursor(budget)
    taken = _walk(cursor, choices[:budget])
    record = [token_id for token_id in taken if token_id != EOS]
    assert len(record) <= budget
    Person.model_validate_json(guide().decode(record))
    marks = review(guide(), record, budget)
    assert marks.is_complete
    assert marks.slack_tokens == budget - len(record)


def test_an_id_beyond_the_vocabulary_changes_nothing_for_others() -> None:
    """Steps are remembered by state and id, and the last id of one state is the one before the next state's first."""
    fresh = compile_guide(compile_grammar(Person), vocabulary())
    cursor = fresh.cursor()
    for byte in b'{"name":"a':
        assert cursor.advance(4 + byte)
    inside = cursor.state
    last, legal = fresh.vocab_size - 1, 4 + ord("a")
    for state, token_id in ((inside + 1, -1), (inside - 1, fresh.vocab_size + legal)):
        cursor.state = state
        assert cursor.validate([token_id]) == []
    cursor.state = inside
    assert cursor.validate([last]) == [last]
    assert cursor.validate([legal]) == [legal]


def test_a_reserve_keeps_the_first_string_from_eating_the_record() -> None:
    longest = {}
    for reserve in (0, 6):
        cursor = guide().cursor(guide().least_tokens + 12, (reserve,) * len(guide().fields))
        while (path := cursor.path) in (None, "name") and not cursor.is_accepting:
            legal = legal_ids(cursor.row().words, guide().vocab_size)
            letter = 4 + ord("x")
            assert cursor.advance(letter if path == "name" and letter in legal else legal[0])
        longest[reserve] = cursor.emitted
    assert longest[6] < longest[0]


class Address(BaseModel):
    street: str
    town: str
    land: Literal["ch", "li"]


class Company(BaseModel):
    kind: Literal["company"]
    name: str
    seat: Address


class Private(BaseModel):
    kind: Literal["private"]
    first: str
    last: str
    born: str | None
    notes: list[Address]


class Order(BaseModel):
    title: str
    by: Annotated[Company | Private, Field(discriminator="kind")]
    total: int


def test_a_reserve_counts_each_field_that_a_record_must_have_once() -> None:
    """Neither again for each member of what it stands in, nor those of another variant, nor those of no item."""
    orders = compile_guide(compile_grammar(Order), vocabulary())
    fields = dict.fromkeys(orders.fields, 1)
    way = ["title", "by", "by.kind", "by.first", "by.last", "by.born", "by.notes", "total"]
    for name in orders.fields:
        alone = tuple(int(field == name) for field in fields)
        assert orders.closing.kept_back(alone)[0] == (name in way), name


def test_a_budget_below_the_least_record_is_refused() -> None:
    with pytest.raises(ValueError, match=str(guide().least_tokens)):
        guide().cursor(guide().least_tokens - 1)


def test_an_end_is_legal_only_where_a_record_is_whole_and_nothing_is_legal_after_it() -> None:
    cursor = guide().cursor(guide().least_tokens)
    assert not cursor.advance(EOS)
    while not cursor.is_accepting:
        assert cursor.advance(legal_ids(cursor.row().words, guide().vocab_size)[0])
    assert cursor.advance(EOS)
    assert cursor.is_terminated
    assert not cursor.advance(4 + ord(" "))


def test_a_mask_is_written_where_it_is_asked_for() -> None:
    cursor = guide().cursor()
    target = np.full(guide().words + 2, 7, np.uint32)
    cursor.write_mask(target[1:].ctypes.data)
    assert (target[1:-1] == cursor.row().words).all()
    assert target[0] == target[-1] == 7


def _wished(cursor: Cursor, *wishes: bytes) -> dict[str, Any]:
    """The record of a model that follows the first of its wishes as long as it may, then the next."""
    text, taken = b"", cursor.validate(())
    while text not in wishes:
        legal = legal_ids(cursor.row().words, guide().vocab_size)
        steps = ((wish, token_id, guide().decode((token_id,))) for wish in wishes for token_id in legal)
        fits = [(wish, token_id) for wish, token_id, spelt in steps if spelt and wish.startswith(text + spelt)]
        wish = fits[0][0]
        token_id = max(
            (token_id for other, token_id in fits if other == wish), key=lambda each: guide().decode((each,))
        )
        assert cursor.advance(token_id)
        taken.append(token_id)
        text = guide().decode(taken)
    return Person.model_validate_json(text).model_dump()


def test_a_text_without_room_is_null_rather_than_empty() -> None:
    """Fails when `Costs.has_gate` is never true, or `fill_tight_row` looks at the state after an id alone."""
    wishes = (b'{"name":"","nick":"","tags":[]}', b'{"name":"","nick":null,"tags":[]}')
    kept = (1,) * len(guide().fields)
    # With this vocabulary null takes a token more than an empty string, so the least budget has no choice.
    budgets = range(guide().least_tokens + 1, guide().least_tokens + 12)
    nicks = [_wished(guide().cursor(budget, kept), *wishes)["nick"] for budget in budgets]
    assert nicks == [None] * nicks.count(None) + [""] * nicks.count("")
    assert TEXT_TOKENS <= nicks.count(None) < len(nicks)
    assert _wished(guide().cursor(budgets[0]), *wishes)["nick"] == ""


def test_only_free_text_that_could_be_null_has_to_wait_for_room() -> None:
    class Other(BaseModel):
        title: str
        kind: Literal["a", "b"] | None
        note: str | None

    other = compile_guide(compile_grammar(Other), vocabulary())
    inside = optional_text(np.asarray(other.table), np.asarray(other.class_of_byte))
    assert {other.field_of(int(state)) for state in np.flatnonzero(inside)} == {"note"}
    cursor = other.cursor()
    for byte in b'{"title":"x","kind":"a","note":"':
        assert not inside[cursor.state]
        assert cursor.advance(4 + byte)
    for byte in b'a\\"\\n b':
        assert inside[cursor.state]
        assert cursor.advance(4 + byte)
    assert cursor.advance(4 + ord('"'))
    assert not inside[cursor.state]


class Shop(BaseModel):
    name: Annotated[str, Field(max_length=20)]
    total: Annotated[int, Field(ge=0, le=999)]


def test_a_value_that_one_token_ended_is_shaped_too() -> None:
    """Real vocabularies have tokens that end a value and begin the next key."""
    shops = compile_guide(compile_grammar(Shop), vocabulary())
    ends = next(index for index, token in enumerate(vocabulary().tokens) if token == b'","')
    ids = [*(4 + byte for byte in b'{"name":"ab'), ends, *(4 + byte for byte in b'total":12}')]
    marks = review(shops, ids, None)
    assert marks.shaped_fields(11) == ("name", "total")
    assert marks.shaped_fields(12) == ("total",)
    assert marks.shaped_fields(len(ids) - 1) == ("total",)
    assert marks.shaped_fields(len(ids)) == ()


def test_a_value_that_one_token_holds_whole_is_shaped_too() -> None:
    """What a tight budget leaves of a text is often an empty one, and that is a single token of most vocabularies."""
    words = Vocabulary([*vocabulary().tokens, b'"","'], {EOS})
    shops = compile_guide(compile_grammar(Shop), words)
    ids = [*(4 + byte for byte in b'{"name":'), words.size - 1, *(4 + byte for byte in b'total":12}')]
    marks = review(shops, ids, None)
    assert marks.shaped_fields(8) == ("name", "total")
    assert marks.shaped_fields(9) == ("total",)
