"""Log-probabilities of the scripted engine: under the mask for what it writes, under none for what it scores."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from pipeline.engine.base import Request
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import Script
from tests.unit.engine.guides import RECORD, guide_of, saved
from tests.unit.engine.test_scripted_engine import guided, request

WISH = '{"name":"a rather","total":420}'


@pytest_asyncio.fixture
async def engine(tmp_path: Path) -> AsyncIterator[ScriptedEngine]:
    guide = guide_of(RECORD)
    made = ScriptedEngine(Script(), guides={guide.fingerprint: saved(guide, tmp_path)}, answer=lambda _: WISH)
    yield made
    await made.close()


async def test_each_written_token_has_its_own_log_probability_and_only_legal_ones_beside_it(
    engine: ScriptedEngine,
) -> None:
    guide = guide_of(RECORD)
    done = await engine.generate(request("doc", 100, guided(guide.fingerprint), logprobs=5))
    assert len(done.logprobs) == len(done.token_ids)
    cursor = guide.cursor()
    for token_id, step in zip(done.token_ids, done.logprobs, strict=True):
        assert max(step, key=lambda other: step[other]) == token_id
        assert all(cursor.validate([other]) for other in step)
        assert sum(map(math.exp, step.values())) <= 1 + 1e-9
        cursor.advance(token_id)


async def test_scores_are_of_the_free_model_for_exactly_the_last_ids(engine: ScriptedEngine) -> None:
    said = list(WISH.encode())
    prompt = [*b"doc", *said]
    done = await engine.generate(Request("s", prompt, 1, None, logprobs=5, scored_tokens=len(said)))
    assert done.token_ids == ()
    assert len(done.scores) == len(said)
    assert all(token_id in step for token_id, step in zip(said, done.scores, strict=True))
    guide = guide_of(RECORD)
    written = await engine.generate(request("doc", 100, guided(guide.fingerprint), logprobs=5))
    for token_id, free, masked in zip(said, done.scores, written.logprobs, strict=False):
        assert free[token_id] <= masked[token_id] + 1e-9


async def test_nothing_is_told_where_nothing_is_asked(engine: ScriptedEngine) -> None:
    guide = guide_of(RECORD)
    done = await engine.generate(request("doc", 100, guided(guide.fingerprint)))
    assert done.logprobs == ()
    assert done.scores == ()
