"""A real vLLM engine on a small model of random weights: nothing but the guide holds its completions together."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from pipeline.core.errors import EngineDeadError, EngineStartError, RequestRefusedError
from pipeline.core.sections import GuideName, ModelSpec, PromptSpec
from pipeline.decoding import Guide, Vocabulary, review
from pipeline.engine.base import GuideRequest, Request
from pipeline.engine.prompts import PromptBuilder, load_tokenizer
from pipeline.engine.vllm_engine import VllmEngine
from tests.unit.engine.guides import LIST, OTHER, RECORD, copying_guide, document_of, guide_of, saved

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

CONTEXT = 512
DEADLINE_S = 120
LATER = r'^\{"later":(true|false)\}$'
CHANT = r"^(ab, ){60}$"
PATTERNS = (RECORD, OTHER, LIST)


@pytest.fixture(scope="module")
def model(tiny_llama: Path) -> ModelSpec:
    engine = {"max_model_len": CONTEXT, "max_num_batched_tokens": CONTEXT, "max_num_seqs": 16, "enforce_eager": True}
    return ModelSpec(name=str(tiny_llama), engine=engine)


@pytest.fixture(scope="module")
def tokenizer(model: ModelSpec) -> Any:
    return load_tokenizer(model)


@pytest.fixture(scope="module")
def guides(tokenizer: Any) -> dict[str, Guide]:
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    return {pattern: guide_of(pattern, vocabulary) for pattern in (*PATTERNS, LATER, CHANT)}


@pytest.fixture(scope="module")
def folder(guides: dict[str, Guide], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guides")
    for pattern in (*PATTERNS, CHANT):
        saved(guides[pattern], folder)
    return folder


class SharedEngine:
    """The engine of this file's tests; whoever ends it says so, and the next test has another."""

    def __init__(self, model: ModelSpec, files: dict[str, str]) -> None:
        self._model = model
        self._files = files
        self._running: VllmEngine | None = None

    async def running(self) -> VllmEngine:
        if self._running is None:
            self._running = await VllmEngine.start(
                self._model, guides=self._files, guide_backend="recordmill", silence_s=60, start_s=300
            )
        return self._running

    async def close(self) -> None:
        ended, self._running = self._running, None
        if ended is not None:
            await ended.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(model: ModelSpec, guides: dict[str, Guide], folder: Path) -> AsyncIterator[SharedEngine]:
    files = {guides[pattern].fingerprint: _file(folder, guides[pattern]) for pattern in PATTERNS}
    engine = SharedEngine(model, files)
    yield engine
    await engine.close()


@pytest_asyncio.fixture(loop_scope="module")
async def engine(shared: SharedEngine) -> VllmEngine:
    return await shared.running()


@pytest_asyncio.fixture(loop_scope="module")
async def engine_to_end(shared: SharedEngine) -> AsyncIterator[VllmEngine]:
    yield await shared.running()
    await shared.close()


@pytest.fixture(scope="module")
def prompt(tokenizer: Any) -> Any:
    builder = PromptBuilder(tokenizer, PromptSpec(), "{{ text }}", {})
    return lambda text: builder.build(text).ids


async def has_begun(engine: VllmEngine, output_tokens: float) -> None:
    """Waits until the engine has made more tokens than so many."""
    async with asyncio.timeout(DEADLINE_S):
        while engine.metrics().values["output_tokens"] <= output_tokens:
            await asyncio.sleep(0.01)


def _file(folder: Path, guide: Guide) -> str:
    return str(folder / f"guide-{guide.fingerprint}.bin")


def asked(
    name: str, prompt_ids: list[int], guide: Guide | None, max_tokens: int, budget: int | None = None, **rest: Any
) -> Request:
    prefix = rest.pop("prefix", [])
    guided = None if guide is None else GuideRequest("recordmill", guide.fingerprint, budget, len(prefix))
    return Request(name, [*prompt_ids, *prefix], max_tokens, guided, **rest)


async def test_records_of_several_guides_are_whole_at_every_budget(
    engine: VllmEngine, guides: dict[str, Guide], prompt: Any
) -> None:
    async def one(number: int) -> None:
        pattern = PATTERNS[number % 3]
        guide = guides[pattern]
        budget = guide.least_tokens + number // 3 % 8
        request = asked(f"a{number}", prompt(f"document {number}"), guide, budget, budget, temperature=1.0, seed=number)
        done = await engine.generate(request)
        assert re.fullmatch(pattern, done.text)
        marks = review(guide, done.token_ids, budget)
        assert marks.is_complete
        assert len(done.token_ids) <= budget

    await asyncio.gather(*(one(number) for number in range(48)))


async def test_a_started_engine_leaves_the_environment_as_it_was(engine: VllmEngine) -> None:
    """Fails when the folder of its sockets stays named there: the next engine of the process would look into it."""
    assert engine.name
    assert "VLLM_RPC_BASE_PATH" not in os.environ


async def test_a_budget_changes_nothing_before_the_step_that_it_tightens(
    engine: VllmEngine, guides: dict[str, Guide], prompt: Any
) -> None:
    guide = guides[RECORD]
    for number in range(6):
        ids = prompt(f"document {number}")
        budget = guide.least_tokens + 4
        bent = await engine.generate(asked(f"b{number}", ids, guide, budget, budget))
        free = await engine.generate(asked(f"f{number}", ids, guide, 100))
        first = review(guide, bent.token_ids, budget).first_tightened
        assert bent.token_ids[:first] == free.token_ids[:first]
        assert re.fullmatch(RECORD, free.text)


async def test_a_continuation_is_bound_by_what_it_continues(
    engine: VllmEngine, guides: dict[str, Guide], tokenizer: Any, prompt: Any
) -> None:
    guide = guides[RECORD]
    budget = guide.least_tokens + 10
    prefix = tokenizer.encode('{"name":"ab', add_special_tokens=False)
    request = asked("c", prompt("x"), guide, budget - len(prefix), budget, prefix=prefix)
    done = await engine.generate(request)
    assert re.fullmatch(RECORD, '{"name":"ab' + done.text)
    assert review(guide, [*prefix, *done.token_ids], budget).is_complete


async def test_the_end_token_is_not_part_of_a_completion(
    engine: VllmEngine, guides: dict[str, Guide], tokenizer: Any, prompt: Any
) -> None:
    done = await engine.generate(asked("e", prompt("x"), guides[OTHER], 100, 100))
    assert done.finish == "stop"
    assert tokenizer.eos_token_id not in done.token_ids


async def test_an_extractive_field_says_only_what_its_document_holds(
    engine: VllmEngine, tokenizer: Any, folder: Path, prompt: Any
) -> None:
    guide = copying_guide(Vocabulary.from_tokenizer(tokenizer))
    saved(guide, folder)

    async def one(number: int) -> None:
        values = [f"Shop {number}", f"Total {number}.50", "Café 漢字"]
        document = document_of(*values)
        ask = GuideRequest("recordmill", guide.fingerprint, 60, document=document.to_bytes())
        done = await engine.generate(Request(f"d{number}", prompt("x"), 60, ask, temperature=1.0, seed=number))
        assert json.loads(done.text)["name"] in values
        marks = review(guide, done.token_ids, 60, document=document)
        assert marks.is_complete
        assert marks.spans

    await asyncio.gather(*(one(number) for number in range(24)))


async def test_a_document_without_a_candidate_is_refused_alone(
    engine: VllmEngine, tokenizer: Any, folder: Path, prompt: Any
) -> None:
    guide = copying_guide(Vocabulary.from_tokenizer(tokenizer))
    saved(guide, folder)
    ask = GuideRequest("recordmill", guide.fingerprint, 60, document=document_of().to_bytes())
    with pytest.raises(RequestRefusedError):
        await engine.generate(Request("n", prompt("x"), 60, ask))
    assert (await engine.generate(asked("m", prompt("x"), None, 5))).token_ids


async def test_a_guide_saved_after_the_start_is_found(
    engine: VllmEngine, guides: dict[str, Guide], folder: Path, prompt: Any
) -> None:
    request = asked("l", prompt("x"), guides[LATER], 40, 40)
    with pytest.raises(RequestRefusedError, match="no guide"):
        await engine.generate(request)
    saved(guides[LATER], folder)
    assert re.fullmatch(LATER, (await engine.generate(request)).text)


async def test_a_repetition_ends_a_completion_and_is_called_one(
    engine: VllmEngine, guides: dict[str, Guide], prompt: Any
) -> None:
    done = await engine.generate(asked("r", prompt("x"), guides[CHANT], 400))
    assert done.finish == "repetition"
    assert done.text.startswith("ab, ab, ")
    assert len(done.text) < 60 * 4


async def test_unguided_text_passes_through_a_guided_engine(engine: VllmEngine, prompt: Any) -> None:
    done = await engine.generate(asked("u", prompt("x"), None, 20, temperature=1.0, seed=1, logprobs=3))
    assert (done.finish, len(done.token_ids)) == ("length", 20)
    assert len(done.logprobs) == 20
    assert all(token_id in step for token_id, step in zip(done.token_ids, done.logprobs, strict=True))


async def test_what_cannot_be_served_is_refused_and_its_neighbours_live(
    engine: VllmEngine, guides: dict[str, Guide], tokenizer: Any, prompt: Any
) -> None:
    guide = guides[RECORD]
    illegal = tokenizer.encode("no record", add_special_tokens=False)
    requests = [
        asked("g", prompt("x"), guide, 60, 60),
        asked("illegal", prompt("x"), guide, 60, 60, prefix=illegal),
        asked("room", prompt("x"), guide, 10, 60),
        asked("least", prompt("x"), guide, 60, guide.least_tokens - 1),
        asked("long", prompt("x" * 4 * CONTEXT), guide, 60),
        asked("empty", [], guide, 60),
        asked("zero", prompt("x"), guide, 0),
        asked("unknown id", [10**6], guide, 60),
        Request("schema", prompt("x"), 60, GuideRequest("outlines", "no schema")),
        asked("h", prompt("x"), guide, 60, 60),
    ]
    results = await asyncio.gather(*(engine.generate(request) for request in requests), return_exceptions=True)
    assert [isinstance(result, RequestRefusedError) for result in results] == [False, *[True] * 8, False]
    assert all("\n" not in str(result) for result in results[1:-1])


async def test_the_prefix_cache_serves_and_the_times_add_up(
    engine: VllmEngine, guides: dict[str, Guide], prompt: Any
) -> None:
    ids = prompt("the same beginning " * 20)
    before = engine.metrics().values
    first = await engine.generate(asked("p", ids, guides[RECORD], 60, 60))
    again = await engine.generate(asked("q", ids, guides[RECORD], 60, 60))
    assert again.token_ids == first.token_ids
    assert again.cached_tokens >= 128
    assert min(again.queued_s, again.prefill_s, again.decode_s) >= 0
    after = engine.metrics().values
    assert after["prompt_tokens"] - before["prompt_tokens"] == 2 * len(ids)
    assert after["cached_tokens"] - before["cached_tokens"] == first.cached_tokens + again.cached_tokens
    assert after["output_tokens"] - before["output_tokens"] >= 2 * len(first.token_ids)
    assert after["in_flight"] == 0


async def test_what_masks_take_is_measured_and_a_part_of_decoding(
    engine: VllmEngine, guides: dict[str, Guide], prompt: Any
) -> None:
    """Fails when the engine core does not measure it, or what it measures does not come back."""
    before = engine.metrics().values["mask_s"]
    done = await engine.generate(asked("m", prompt("a document"), guides[RECORD], 60, 60))
    guided = engine.metrics().values["mask_s"]
    assert 0 < guided - before < done.prefill_s + done.decode_s
    await engine.generate(asked("n", prompt("a document"), None, 20))
    assert engine.metrics().values["mask_s"] == guided


async def test_seeded_requests_whose_prompts_do_not_fit_one_step_are_all_served(
    engine: VllmEngine, prompt: Any
) -> None:
    requests = [asked(f"s{n}", prompt(f"{n} " + "word " * 50), None, 5, temperature=1.0, seed=n) for n in range(16)]
    assert sum(len(request.prompt_ids) for request in requests) > 2 * CONTEXT
    done = await asyncio.gather(*(engine.generate(request) for request in requests))
    assert all(completion.token_ids for completion in done)


async def test_a_cancelled_request_leaves_the_engine_free(engine: VllmEngine, prompt: Any) -> None:
    """Fails when `Watchdog.guard` leaves the work of a cancelled request alone: vLLM then goes on to the last token."""
    before = engine.metrics().values["output_tokens"]
    waiting = asyncio.create_task(engine.generate(asked("x", prompt("x"), None, 400, temperature=1.0, seed=5)))
    await has_begun(engine, before)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(DEADLINE_S):
        while engine.metrics().values["running"]:
            await asyncio.sleep(0.01)
    assert engine.metrics().values["output_tokens"] - before < 300
    assert (await engine.generate(asked("y", prompt("y"), None, 5))).token_ids


@pytest.mark.usefixtures("engine")
async def test_the_model_runs_in_the_engine_core() -> None:
    """Fails when vLLM gives it a process of its own, for which the engine core then waits by spinning."""
    names = {_stat(pid).partition("(")[2].rpartition(")")[0] for pid in engine_processes(os.getpid())}
    assert names == {"VLLM::EngineCor"}


async def test_the_engine_says_what_it_is(engine: VllmEngine) -> None:
    assert re.fullmatch(r"vllm \d+\.\d+\.\d+\S* tiny-llama", engine.name)
    assert engine.max_model_len == CONTEXT


def descendants(pid: int) -> Iterator[int]:
    """Those of a process that is going away are left out."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in _children(task):
                yield child
                yield from descendants(child)


def _children(task: Path) -> list[int]:
    try:
        return [int(child) for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _stat(pid: int) -> str:
    """What the system says of a process; empty of one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    return _stat(pid).rpartition(")")[2].split()[:1] not in ([], ["Z"], ["X"])


def engine_processes(pid: int) -> list[int]:
    return [child for child in descendants(pid) if "VLLM" in _stat(child)]


def all_gone(pids: list[int]) -> bool:
    """Within a generous time; a test of the promise, not of the clock."""
    for _ in range(300):
        if not any(is_running(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


async def end(engine: VllmEngine, fault: signal.Signals, pids: list[int], prompt: Any) -> None:
    """Does this to the engine core among its processes: every request ends with it, and nothing is left."""
    try:
        before = engine.metrics().values["output_tokens"]
        waiting = [
            asyncio.create_task(engine.generate(asked(f"w{n}", prompt(str(n)), None, 400, temperature=1.0, seed=n)))
            for n in range(4)
        ]
        await has_begun(engine, before)
        os.kill(pids[0], fault)
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(result) for result in results] == [EngineDeadError] * 4
        with pytest.raises(EngineDeadError):
            await engine.generate(asked("after", prompt("x"), None, 5))
    finally:
        await engine.close()
    assert all_gone(pids)


async def test_nothing_outlives_a_killed_owner(model: ModelSpec) -> None:
    """Nor do processes of its processes: this engine's model has one of its own."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, model.name], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    try:
        assert owner.stdout is not None
        assert b"ready\n" in iter(owner.stdout.readline, b"")
        pids = [*descendants(owner.pid)]
        assert len(engine_processes(owner.pid)) >= 2
    finally:
        owner.kill()
        owner.wait()
    assert all_gone(pids)


OWNER = """
import asyncio, sys
from pipeline.core.sections import ModelSpec
from pipeline.engine.vllm_engine import VllmEngine

async def main():
    settings = {"max_model_len": 512, "max_num_seqs": 4, "enforce_eager": True, "distributed_executor_backend": "mp"}
    model = ModelSpec(name=sys.argv[1], engine=settings)
    engine = await VllmEngine.start(model, guides={}, guide_backend="none", silence_s=60, start_s=300)
    print("ready", flush=True)
    await asyncio.sleep(600)
    await engine.close()

if __name__ == "__main__":
    asyncio.run(main())
"""


class TestStart:
    async def test_an_engine_that_is_not_ready_in_time_is_given_up_and_leaves_nothing(
        self, model: ModelSpec, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pipeline.engine import vllm_start

        before = set(engine_processes(os.getpid()))
        seen: set[int] = set()

        def monotonic() -> float:
            """Time passes once there is an engine core to leave behind."""
            seen.update(set(engine_processes(os.getpid())) - before)
            return 9.0 if seen else 0.0

        monkeypatch.setattr(vllm_start, "time", SimpleNamespace(monotonic=monotonic))
        with pytest.raises(EngineStartError, match="not ready after 3 s"):
            await VllmEngine.start(model, guides={}, guide_backend="none", silence_s=60, start_s=3)
        assert seen
        assert all_gone([*seen, *(pid for pid in engine_processes(os.getpid()) if pid not in before)])

    @pytest.mark.parametrize(
        ("engine", "said"),
        [
            ({"max_model_len": 10**9}, "ModelConfig: Value error, User-specified max_model_len"),
            ({"dtype": "float7"}, "dtype: Input should be 'auto', "),
        ],
    )
    async def test_what_vllm_cannot_start_with_is_said_in_one_line(
        self, model: ModelSpec, engine: dict[str, Any], said: str
    ) -> None:
        spec = ModelSpec(name=model.name, engine=engine)
        with pytest.raises(EngineStartError, match=said) as caught:
            await VllmEngine.start(spec, guides={}, guide_backend="none", silence_s=60, start_s=300)
        assert "\n" not in str(caught.value)


SCHEMA = '{"type":"object","properties":{"b":{"type":"boolean"}},"required":["b"],"additionalProperties":false}'
ALLOWED = ('{"b":true}', '{"b":false}')
SILENCE_S = 15
"""More than a stock backend's first grammar takes, in which no token is made."""


@dataclass(frozen=True, slots=True)
class Stock:
    """An engine under one of vLLM's own backends."""

    backend: GuideName
    engine: VllmEngine
    pids: list[int]


class TestStock:
    """The tests of one engine, of which the last ends it."""

    @pytest_asyncio.fixture(
        scope="class",
        loop_scope="module",
        params=["xgrammar", *(pytest.param(name, marks=pytest.mark.soak) for name in ("guidance", "outlines"))],
    )
    async def stock(self, model: ModelSpec, request: pytest.FixtureRequest) -> AsyncIterator[Stock]:
        before = set(engine_processes(os.getpid()))
        engine = await VllmEngine.start(model, guides={}, guide_backend=request.param, silence_s=SILENCE_S, start_s=300)
        yield Stock(request.param, engine, [pid for pid in engine_processes(os.getpid()) if pid not in before])
        await engine.close()

    async def test_a_stock_backend_can_be_chosen_by_name(self, stock: Stock, prompt: Any) -> None:
        """The model may spend its tokens on white space, of which these backends allow any."""
        request = Request("s", prompt("x"), 60, GuideRequest(stock.backend, SCHEMA), temperature=1.0, seed=3)
        done = await stock.engine.generate(request)
        said = "".join(done.text.split())
        assert len(said) > 4
        assert any(allowed.startswith(said) for allowed in ALLOWED)

    async def test_a_frozen_engine_core_ends_every_request_and_leaves_nothing(self, stock: Stock, prompt: Any) -> None:
        """Nor the process that its model has beside it, which vLLM ends only while the engine core answers."""
        assert len(stock.pids) >= 2
        await end(stock.engine, signal.SIGSTOP, stock.pids, prompt)


async def test_a_dead_engine_core_ends_every_request_and_leaves_nothing(engine_to_end: VllmEngine, prompt: Any) -> None:
    """Stands last to spare the others a start; elsewhere the next one would have a new engine."""
    pids = [pid for pid in engine_processes(os.getpid()) if is_running(pid)]
    assert pids
    await end(engine_to_end, signal.SIGKILL, pids, prompt)
