"""The scripted engine: deterministic, bound by its guide as a real one, with each of its faults."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pipeline.core.errors import EngineDeadError, EngineStartError, RequestRefusedError
from pipeline.core.sections import ModelSpec
from pipeline.decoding.review import review
from pipeline.engine.base import GuideRequest, Request
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import Script
from tests.unit.engine.guides import LIST, OTHER, RECORD, guide_of, saved

WISH = '{"name":"a rather","total":420}'


@pytest_asyncio.fixture
async def engine_of() -> AsyncIterator[Callable[..., ScriptedEngine]]:
    engines: list[ScriptedEngine] = []

    def make(guides: dict[str, str] | None = None, **script: Any) -> ScriptedEngine:
        answer, silence_s = script.pop("answer", None), script.pop("silence_s", 60.0)
        engines.append(ScriptedEngine(Script(**script), guides=guides, answer=answer, silence_s=silence_s))
        return engines[-1]

    yield make
    for engine in engines:
        await engine.close()


def request(text: str, max_tokens: int = 100, guide: GuideRequest | None = None, **rest: Any) -> Request:
    return Request("r-0", list(text.encode()), max_tokens, guide, **rest)


def guided(fingerprint: str, budget: int | None = None, prefix: int = 0) -> GuideRequest:
    return GuideRequest("recordmill", fingerprint, budget, prefix)


async def test_completions_follow_the_guide_and_end_within_the_budget(engine_of: Any, tmp_path: Path) -> None:
    guides = [guide_of(pattern) for pattern in (RECORD, OTHER, LIST)]
    engine = engine_of({guide.fingerprint: saved(guide, tmp_path) for guide in guides})
    for number in range(30):
        guide = guides[number % 3]
        budget = guide.least_tokens + number % 7
        done = await engine.generate(request(f"document {number}", budget, guided(guide.fingerprint, budget)))
        assert review(guide, done.token_ids, budget).is_complete
        assert bytes(done.token_ids).decode() == done.text


async def test_the_same_request_has_the_same_completion_in_every_engine(engine_of: Any, tmp_path: Path) -> None:
    guide = guide_of(LIST)
    files = {guide.fingerprint: saved(guide, tmp_path)}
    ask = request("document", 100, guided(guide.fingerprint))
    first, second, other = engine_of(files), engine_of(files), engine_of(files, seed=1)
    assert (await first.generate(ask)).text == (await second.generate(ask)).text
    assert (await first.generate(ask)).text != (await other.generate(ask)).text


async def test_an_answer_is_given_where_the_budget_allows_it_and_bent_where_not(engine_of: Any, tmp_path: Path) -> None:
    guide = guide_of(RECORD)
    engine = engine_of({guide.fingerprint: saved(guide, tmp_path)}, answer=lambda prompt: WISH)
    whole = await engine.generate(request("x", 60, guided(guide.fingerprint, 60)))
    assert (whole.text, whole.finish) == (WISH, "stop")
    tight = len(WISH) - 4
    bent = await engine.generate(request("x", tight, guided(guide.fingerprint, tight)))
    first = review(guide, bent.token_ids, tight).first_tightened
    assert first is not None
    assert bent.text[:first] == WISH[:first]
    assert bent.text != WISH
    assert review(guide, bent.token_ids, tight).is_complete


async def test_a_continuation_says_what_the_whole_would_have_said(engine_of: Any, tmp_path: Path) -> None:
    guide = guide_of(RECORD)
    files = {guide.fingerprint: saved(guide, tmp_path)}
    for answer in (None, lambda prompt: WISH if prompt == "x" else "{}"):
        engine = engine_of(files, answer=answer)
        whole = await engine.generate(request("x", 60, guided(guide.fingerprint, 60)))
        for kept in (1, 9, 12):
            prefix = bytes(whole.token_ids[:kept]).decode()
            rest = await engine.generate(request("x" + prefix, 60 - kept, guided(guide.fingerprint, 60, kept)))
            assert prefix + rest.text == whole.text


async def test_an_answer_that_repeats_itself_is_stopped(engine_of: Any, tmp_path: Path) -> None:
    guide = guide_of(LIST)
    engine = engine_of({guide.fingerprint: saved(guide, tmp_path)}, answer=lambda _: '{"items":[' + '"ab",' * 40)
    done = await engine.generate(request("x", 400, guided(guide.fingerprint)))
    assert done.finish == "repetition"
    assert len(done.text) < 150


async def test_without_a_guide_the_answer_is_cut_at_max_tokens(engine_of: Any) -> None:
    engine = engine_of(answer=lambda _: WISH)
    done = await engine.generate(request("x", 10))
    assert (done.text, done.finish) == (WISH[:10], "length")


async def test_a_budget_without_room_is_refused(engine_of: Any, tmp_path: Path) -> None:
    guide = guide_of(RECORD)
    engine = engine_of({guide.fingerprint: saved(guide, tmp_path)})
    with pytest.raises(RequestRefusedError, match="room for 10"):
        await engine.generate(request("x", 10, guided(guide.fingerprint, 60)))
    with pytest.raises(RequestRefusedError, match="least record"):
        await engine.generate(request("x", 10, guided(guide.fingerprint, 5)))


async def test_a_guide_that_was_added_to_the_folder_later_is_found(engine_of: Any, tmp_path: Path) -> None:
    first, later = guide_of(RECORD), guide_of(OTHER)
    engine = engine_of({first.fingerprint: saved(first, tmp_path)})
    with pytest.raises(RequestRefusedError, match="no guide"):
        await engine.generate(request("x", 60, guided(later.fingerprint)))
    saved(later, tmp_path)
    assert (await engine.generate(request("x", 60, guided(later.fingerprint)))).text.startswith('{"day":')
    with pytest.raises(RequestRefusedError, match="no guide"):
        await engine.generate(request("x", 60, guided("../" + first.fingerprint)))


async def test_faults_strike_the_documents_that_hold_their_marker(engine_of: Any) -> None:
    engine = engine_of(answer=lambda _: WISH, refuse_on="REFUSE", garbage_on="GARBAGE", cut_on="CUT")
    with pytest.raises(RequestRefusedError):
        await engine.generate(request("REFUSE"))
    assert not (await engine.generate(request("GARBAGE"))).text.startswith("{")
    cut = await engine.generate(request("CUT"))
    assert (cut.text, cut.finish) == (WISH[: len(WISH) // 2], "length")
    assert (await engine.generate(request("plain"))).text == WISH


async def test_a_frozen_engine_answers_nobody_and_is_given_up(engine_of: Any) -> None:
    engine = engine_of(answer=lambda _: WISH, freeze_on="FREEZE", silence_s=0.2)
    results = await asyncio.gather(
        *(engine.generate(request(text)) for text in ("FREEZE", "b", "c")), return_exceptions=True
    )
    assert [type(result) for result in results] == [EngineDeadError] * 3
    with pytest.raises(EngineDeadError):
        await engine.generate(request("after"))


async def test_the_log_counts_every_request(engine_of: Any, tmp_path: Path) -> None:
    engine = engine_of(answer=lambda _: WISH, refuse_on="REFUSE", log=str(tmp_path / "log"))
    await asyncio.gather(*(engine.generate(request(str(n))) for n in range(5)))
    with pytest.raises(RequestRefusedError):
        await engine.generate(request("REFUSE"))
    events = Counter(json.loads(line)["event"] for line in (tmp_path / "log").read_text().splitlines())
    assert events == {"request": 6, "completion": 5}
    assert engine.metrics().values["requests"] == 6


CRASH = """
import asyncio, sys
from pipeline.core.sections import ModelSpec
from pipeline.engine.base import Request
from pipeline.engine.scripted import ScriptedEngine

async def main():
    model = ModelSpec(name="scripted", engine={"crash_on": "CRASH", "crash_times": 2, "log": sys.argv[1]})
    engine = await ScriptedEngine.start(model, guides={}, guide_backend="none", silence_s=9, start_s=9)
    print((await engine.generate(Request("r", list(b"a CRASH"), 10))).text)

asyncio.run(main())
"""


def test_a_crash_ends_the_process_as_often_as_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CRASH, str(tmp_path / "log")]
    codes = [subprocess.run(command, capture_output=True, check=False).returncode for _ in range(3)]
    assert codes == [13, 13, 0]


@pytest.mark.parametrize(
    "engine", [{"crash": "x"}, {"token_s": -1}, {"crash_times": 1}, {"answers": "no colon"}, {"answers": "nowhere:f"}]
)
async def test_a_script_that_cannot_be_played_stops_the_start(engine: dict[str, Any]) -> None:
    with pytest.raises(EngineStartError, match=r"model\.engine"):
        await ScriptedEngine.start(
            ModelSpec(name="scripted", engine=engine), guides={}, guide_backend="none", silence_s=1, start_s=1
        )


async def test_a_named_function_gives_the_answers(engine_of: Any) -> None:
    engine = engine_of(answers="tests.unit.engine.test_scripted_engine:shout")
    assert (await engine.generate(request("abc"))).text == "ABC"


def shout(prompt: str) -> str:
    return prompt.upper()


async def test_a_closed_engine_is_dead(engine_of: Any) -> None:
    engine = engine_of(answer=lambda _: WISH)
    await engine.close()
    with pytest.raises(EngineDeadError):
        await engine.generate(request("x"))
