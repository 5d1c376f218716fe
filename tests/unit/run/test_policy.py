"""What `close` promises, against the scripted engine: marks are exact, records complete, requests never repeated.

The oracle is the same engine without a budget: at temperature 0 a record is unbent if and only if it is the one that
no budget at all would have given.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from pipeline.core.errors import RequestRefusedError
from pipeline.decoding import Guide, Vocabulary, compile_grammar, compile_guide
from pipeline.engine.base import Completion, EngineMetrics, GuideRequest, Request
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import Script
from pipeline.run.generation import Ended, Generation, Sampling, Usage
from pipeline.run.guidance import GuideReviewer
from pipeline.run.policy import decode_closed, decode_plain
from pipeline.run.repetition import repetition_start


class Item(BaseModel):
    name: Annotated[str, Field(max_length=12)]
    price: Annotated[int, Field(ge=0, le=99_999)]


class Receipt(BaseModel):
    shop: Annotated[str, Field(max_length=20)]
    items: Annotated[list[Item], Field(max_length=6)]
    total: Annotated[int, Field(ge=0, le=999_999)]


class Tags(BaseModel):
    tags: list[str]
    total: int


class Day(BaseModel):
    rain_by_hour: Annotated[list[int], Field(min_length=24, max_length=24)]
    total: int


LONG = Receipt(shop="corner shop", items=[Item(name="tea", price=3)] * 4, total=12).model_dump_json()


@cache
def _guide(model: type[BaseModel]) -> tuple[Guide, str]:
    guide = compile_guide(compile_grammar(model), Vocabulary.from_tokenizer(ByteTokenizer()))
    path = Path(tempfile.mkdtemp()) / f"guide-{guide.fingerprint}.bin"
    guide.save(path)
    return guide, str(path)


class Recorded:
    """An engine that remembers what it was asked."""

    def __init__(self, engine: ScriptedEngine, refuse_from: int | None = None) -> None:
        self._engine = engine
        self._refuse_from = refuse_from
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def max_model_len(self) -> int:
        return self._engine.max_model_len

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        if self._refuse_from is not None and len(self.requests) > self._refuse_from:
            raise RequestRefusedError("no more")
        return await self._engine.generate(request)

    def metrics(self) -> EngineMetrics:
        return self._engine.metrics()

    async def close(self) -> None:
        await self._engine.close()


def _decode(
    wish: str | None,
    ladder: list[int],
    *,
    model: type[BaseModel] = Receipt,
    reserve: int = 0,
    temperature: float = 0.0,
    seed: int = 0,
    refuse_from: int | None = None,
) -> tuple[Generation, tuple[int, ...], Recorded]:
    """The generation under a ladder, the tokens without any budget, and the engine that was asked."""

    async def run() -> tuple[Generation, tuple[int, ...], Recorded]:
        guide, path = _guide(model)
        engine = ScriptedEngine(
            Script(seed=seed), guides={guide.fingerprint: path}, answer=None if wish is None else lambda _: wish
        )
        recorded = Recorded(engine, refuse_from)
        reserves = (reserve,) * len(guide.fields)
        sampling = Sampling("r", tuple(b"prompt"), "recordmill", guide.fingerprint, temperature, 7, reserves)
        generation = await decode_closed(recorded, sampling, ladder, GuideReviewer(guide))
        free = await engine.generate(
            Request("free", list(b"prompt"), 4000, GuideRequest("recordmill", guide.fingerprint))
        )
        await engine.close()
        return generation, free.token_ids, recorded

    return asyncio.run(run())


def _least(model: type[BaseModel] = Receipt) -> int:
    return _guide(model)[0].least_tokens


RECEIPTS = st.builds(
    Receipt,
    shop=st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20),
    items=st.lists(
        st.builds(Item, name=st.text("abc é", max_size=12), price=st.integers(0, 99_999)),
        max_size=6,
    ),
    total=st.integers(0, 999_999),
).map(lambda receipt: receipt.model_dump_json())

LADDERS = st.lists(st.integers(0, 150), min_size=1, max_size=4, unique=True).map(
    lambda extra: [_least() + tokens for tokens in sorted(extra)]
)


@settings(max_examples=60, deadline=None)
@given(st.none() | RECEIPTS, LADDERS, st.sampled_from([0, 4]), st.integers(0, 50))
def test_a_record_is_marked_if_and_only_if_the_budget_bent_it(
    wish: str | None, ladder: list[int], reserve: int, seed: int
) -> None:
    generation, free, recorded = _decode(wish, ladder, reserve=reserve, seed=seed)
    Receipt.model_validate_json(bytes(generation.token_ids))
    assert len(generation.token_ids) <= generation.budget_tokens <= ladder[-1]
    assert generation.is_closed == (generation.token_ids != free)
    assert bool(generation.shaped_fields) == generation.is_closed
    asked = [(tuple(r.prompt_ids), r.max_tokens, r.guide) for r in recorded.requests]
    assert len(set(asked)) == len(asked) <= len(ladder) + 1


@settings(max_examples=30, deadline=None)
@given(RECEIPTS, LADDERS)
def test_the_fields_named_are_those_from_the_first_difference_on(wish: str, ladder: list[int]) -> None:
    generation, free, _ = _decode(wish, ladder)
    if not generation.is_closed or generation.ended is Ended.RUNAWAY:
        return
    ours = generation.token_ids
    same = next((i for i, (a, b) in enumerate(zip(ours, free, strict=False)) if a != b), min(len(ours), len(free)))
    fields = _guide(Receipt)[0].fields
    untouched = Receipt.model_validate_json(bytes(ours)).shop if same > len(b'{"shop":"') else None
    if "shop" not in generation.shaped_fields:
        assert untouched == Receipt.model_validate_json(bytes(free)).shop
    assert set(generation.shaped_fields) <= set(fields)
    assert "total" in generation.shaped_fields


def test_room_enough_takes_one_request() -> None:
    wish = Receipt(shop="corner", items=[Item(name="tea", price=3)], total=3).model_dump_json()
    generation, _, recorded = _decode(wish, [400])
    assert bytes(generation.token_ids).decode() == wish
    assert not generation.is_closed
    assert len(recorded.requests) == 1


def test_a_tightened_mask_that_changed_nothing_is_no_mark() -> None:
    wish = Receipt(shop="a", items=[], total=7).model_dump_json()
    generation, _, recorded = _decode(wish, [len(wish)])
    assert bytes(generation.token_ids).decode() == wish
    assert not generation.is_closed
    assert len(recorded.requests) == 2
    assert recorded.requests[1].guide is not None
    assert recorded.requests[1].guide.budget_tokens is None
    assert recorded.requests[1].max_tokens < len(wish)


def test_a_larger_rung_takes_up_where_the_budget_began_to_bend() -> None:
    wish = Receipt(shop="corner shop", items=[Item(name="tea", price=3)], total=3).model_dump_json()
    generation, _, recorded = _decode(wish, [_least() + 3, 300])
    assert bytes(generation.token_ids).decode() == wish
    assert not generation.is_closed
    assert generation.budget_tokens == 300
    first, second = recorded.requests
    assert second.guide is not None
    assert second.guide.prefix_tokens > 0
    assert list(second.prompt_ids) == [*first.prompt_ids, *wish.encode()[: second.guide.prefix_tokens]]


REPEATING = Tags(tags=["coffee"] * 8 + ["tea"], total=11).model_dump_json()


@pytest.mark.parametrize("ladder", [[90, 300], [len(REPEATING)]])
def test_what_repeats_itself_in_the_document_is_given_its_room(ladder: list[int]) -> None:
    """Fails when the budget's coming near in a run of like items is taken for proof that they would never end."""
    generation, _, _ = _decode(REPEATING, ladder, model=Tags)
    assert bytes(generation.token_ids).decode() == REPEATING
    assert not generation.is_closed


def test_a_repetition_that_the_budget_ended_is_told_as_one() -> None:
    generation, _, recorded = _decode(REPEATING, [80], model=Tags)
    assert generation.is_closed
    assert generation.ended is Ended.RUNAWAY
    assert len(recorded.requests) == 2


def test_a_sampled_record_without_a_ladder_is_marked_without_another_request() -> None:
    wish = Receipt(shop="corner shop", items=[], total=3).model_dump_json()
    generation, _, recorded = _decode(wish, [_least() + 3], temperature=0.5)
    assert generation.is_closed
    assert len(recorded.requests) == 1


def test_a_refused_comparison_leaves_the_record_marked() -> None:
    wish = Receipt(shop="corner shop", items=[], total=3).model_dump_json()
    generation, _, _ = _decode(wish, [_least() + 3], refuse_from=1)
    assert generation.is_closed
    assert "not compared" in (generation.detail or "")


def test_a_runaway_list_is_closed_after_one_copy_of_its_pattern() -> None:
    wish = json.dumps({"tags": ["round"] * 200, "total": 3}, separators=(",", ":"))
    generation, _, recorded = _decode(wish, [2000], model=Tags)
    assert generation.ended is Ended.RUNAWAY
    assert generation.is_closed
    record = Tags.model_validate_json(bytes(generation.token_ids))
    assert record.tags[:1] == ["round"]
    assert len(record.tags) <= 3
    assert "total" in generation.shaped_fields
    assert len(recorded.requests) == 2


def test_a_plain_mask_that_ran_out_is_cut() -> None:
    async def run(budget: int) -> Generation:
        guide, path = _guide(Receipt)
        wish = Receipt(shop="corner", items=[], total=12).model_dump_json()
        engine = ScriptedEngine(Script(), guides={guide.fingerprint: path}, answer=lambda _: wish)
        sampling = Sampling("r", tuple(b"prompt"), "recordmill", guide.fingerprint)
        return await decode_plain(engine, sampling, budget, GuideReviewer(guide))

    assert asyncio.run(run(20)).ended is Ended.CUT
    assert asyncio.run(run(200)).ended is Ended.COMPLETE


@pytest.mark.parametrize(
    ("tokens", "start"),
    [([1, 2, 3], None), ([9] + [1] * 60, 2), ([5, 6] + [1, 2, 3] * 20, 5), ([1, 2, 3] * 3, None), ([], None)],
)
def test_a_repetition_starts_with_the_second_copy(tokens: list[int], start: int | None) -> None:
    assert repetition_start(tokens) == start


def test_only_the_first_request_of_a_document_counts_what_was_cached() -> None:
    """Fails when the hit rate, a share of each document's one prompt, can pass 1."""
    usage = Usage()
    for cached in (400, 480, 490):
        usage = usage.plus(Completion((1,), "x", "stop", cached_tokens=cached))
    assert (usage.requests, usage.cached_tokens) == (3, 400)


def test_a_runaway_of_one_token_is_closed_after_one_copy() -> None:
    """Fails when a pattern has to be longer than what ended the completion."""
    wish = json.dumps({"tags": ["a" * 200], "total": 3}, separators=(",", ":"))
    generation, _, _ = _decode(wish, [2000], model=Tags)
    assert generation.ended is Ended.RUNAWAY
    assert Tags.model_validate_json(bytes(generation.token_ids)).tags[0] == "a"


def test_a_runaway_in_a_list_that_must_go_on_is_closed_however_often_the_engine_stops() -> None:
    """What closing needs is more copies than an engine lets stand."""
    wish = Day(rain_by_hour=[0] * 24, total=0).model_dump_json()
    generation, _, recorded = _decode(wish, [400], model=Day)
    assert generation.ended is Ended.RUNAWAY
    assert generation.is_closed
    assert Day.model_validate_json(bytes(generation.token_ids)).rain_by_hour == [0] * 24
    asked = [(tuple(r.prompt_ids), r.max_tokens) for r in recorded.requests]
    assert len(set(asked)) == len(asked) == generation.usage.requests == 3


def test_each_request_of_a_sampled_document_has_a_seed_of_its_own_and_the_same_in_every_submission() -> None:
    """Fails when a longer budget samples the same record again, so that a second attempt shows nothing."""
    ladder = [_least() + 3, _least() + 20, 300]
    asked = [[request.seed for request in _decode(LONG, ladder, temperature=1.0)[2].requests] for _ in range(2)]
    assert asked[0] == asked[1]
    assert len(asked[0]) == len(set(asked[0])) == 3


class _Stricter(GuideReviewer):
    """Under no larger budget may a record begin so, with tokens kept back."""

    def is_legal(self, token_ids: Sequence[int], budget_tokens: int, reserve_tokens: Sequence[int] = ()) -> bool:
        return False


def test_where_a_larger_budget_keeps_back_too_much_for_what_stands_it_keeps_back_nothing() -> None:
    """Fails when the engine is asked for what it has to refuse, and the ladder ends at its first rung."""

    async def run() -> list[Request]:
        guide, path = _guide(Receipt)
        engine = Recorded(ScriptedEngine(Script(), guides={guide.fingerprint: path}, answer=lambda _: LONG))
        reserves = (2,) * len(guide.fields)
        sampling = Sampling("r", tuple(b"prompt"), "recordmill", guide.fingerprint, reserve_tokens=reserves)
        await decode_closed(engine, sampling, [_least() + 8, 400], _Stricter(guide))
        await engine.close()
        return engine.requests

    kept_back = [any(request.guide.reserve_tokens) for request in asyncio.run(run()) if request.guide is not None]
    assert kept_back == [True, False]
