"""One attempt at one shard: its documents share the engine's slots, and what is owed comes whole or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from pipeline.core.document import Document, Piece, Shard
from pipeline.core.errors import EngineDeadError, EngineError, StorageError, UnreadableError, VerificationError
from pipeline.core.outcome import Cause
from pipeline.core.sections import PromptSpec
from pipeline.core.spec import parse_spec
from pipeline.engine.base import Completion, EngineMetrics, Request
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.prompts import PromptBuilder, PromptResult
from pipeline.run.attempt import Lanes, ShardWork, Work
from pipeline.run.commit import Commit
from pipeline.run.extract import Extractor
from pipeline.run.guidance import Guidance
from pipeline.run.ledger import Tally
from pipeline.run.messages import Summary
from pipeline.run.task import Task
from pipeline.run.worker import Worker

SPEC = parse_spec(
    {
        "name": "n",
        "input": {"uri": "/in/"},
        "record": "m:R",
        "model": {"name": "scripted"},
        "decoding": {"guide": "none"},
        "truncation": {"policy": "reject"},
        "output": {"uri": "/out/"},
    },
    source="test",
)


class Thing(BaseModel):
    name: str


class Slow:
    """Completions that wait until they are let go; counts how many are in flight.

    `fails` says which error, if any, takes the place of the completion of a text.
    """

    name = "slow"
    max_model_len = 1000

    def __init__(self, fails: Callable[[str], BaseException | None] = lambda text: None) -> None:
        self.in_flight = 0
        self.most = 0
        self.seen: list[str] = []
        self.go = asyncio.Event()
        self.fails = fails

    async def generate(self, request: Request) -> Completion:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        asked = bytes(request.prompt_ids).decode().strip()
        self.seen.append(asked)
        await self.go.wait()
        self.in_flight -= 1
        if (error := self.fails(asked)) is not None:
            raise error
        text = json.dumps({"name": asked})
        return Completion(tuple(text.encode()), text, "stop")

    def metrics(self) -> EngineMetrics:
        return EngineMetrics()

    async def close(self) -> None:
        return None


def _work(engine: Slow, concurrency: int, read: Any = None) -> tuple[ShardWork, Lanes]:
    prompts = PromptBuilder(ByteTokenizer(), PromptSpec(), "{{ text }}", {})
    extractor = Extractor(SPEC, Thing, engine, Guidance(None), prompts, ThreadPoolExecutor(1))
    lanes = Lanes(concurrency)
    reading = ThreadPoolExecutor(1)
    work = ShardWork(extractor, read or _documents, lanes, reading, document_bytes=1000, known=_folder)
    return work, lanes


def _folder(piece: Piece) -> dict[str, Any]:
    return {"day": piece.uri}


def _documents(piece: Piece) -> Iterator[Document]:
    for row in range(piece.row_start, piece.row_stop):
        yield Document(f"{piece.uri}{row}", f"{piece.uri}{row}")


def _shard(name: str, rows: int) -> Shard:
    return Shard((Piece(name, "e", 0, 0, rows),))


async def _settled(engine: Slow, count: int) -> None:
    async with asyncio.timeout(30):
        while engine.in_flight < count:
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)


async def test_rows_that_cannot_be_read_pass_through_what_their_folder_says() -> None:
    def read(piece: Piece) -> Iterator[Document]:
        raise UnreadableError("a bad page")

    work, _ = _work(Slow(), 2, read)
    done = await work.run(_shard("a", 2), "a", 60)
    assert [(outcome.cause, outcome.extra) for outcome in done.outcomes] == [(Cause.UNREADABLE, {"day": "a"})] * 2


async def test_the_next_shard_enters_while_the_last_documents_of_this_one_finish() -> None:
    engine = Slow()
    work, _ = _work(engine, 3)
    tasks = [asyncio.create_task(work.run(_shard(name, 3), name, 60)) for name in ("a", "b")]
    await _settled(engine, 4)
    assert sorted(engine.seen) == ["a0", "a1", "a2", "b0"]
    engine.go.set()
    done: list[Work] = await asyncio.gather(*tasks)
    assert [[outcome.document_id for outcome in item.outcomes] for item in done] == [
        ["a0", "a1", "a2"],
        ["b0", "b1", "b2"],
    ]
    assert engine.most == 4


async def test_prompts_are_built_a_few_ahead_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a slot that comes free waits for a prompt, or the prompts of a whole batch are kept."""
    built: list[str] = []
    build = PromptBuilder.build

    def counted(self: PromptBuilder, text: str, *args: Any) -> PromptResult:
        built.append(text)
        return build(self, text, *args)

    monkeypatch.setattr(PromptBuilder, "build", counted)
    engine = Slow()
    work, _ = _work(engine, 1)
    task = asyncio.create_task(work.run(_shard("a", 50), "a", 60))
    await _settled(engine, 2)
    assert len(built) == 2 + 16 + 16
    engine.go.set()
    assert len((await task).outcomes) == len(built) == 50


async def test_the_longest_of_the_rows_at_hand_enters_first_and_outcomes_keep_the_order_of_the_rows() -> None:
    """Fails when rows enter as they stand: the engine would wait for the last one alone."""
    words = [3, 1, 40, 0, 7]

    def read(piece: Piece) -> Iterator[Document]:
        for row, count in enumerate(words):
            yield Document(f"d{row}", " ".join([f"{row}"] * count))

    engine = Slow()
    engine.go.set()
    work, _ = _work(engine, 1, read)
    done = await work.run(_shard("a", 5), "a", 60)
    assert [seen[0] for seen in engine.seen] == ["2", "4", "0", "1"]
    assert [outcome.document_id for outcome in done.outcomes] == [f"d{row}" for row in range(5)]
    assert done.outcomes[3].cause is Cause.EMPTY


@pytest.mark.parametrize(("concurrency", "in_flight"), [(1, 2), (3, 4), (8, 9), (9, 11)])
async def test_the_slots_and_an_eighth_more_are_in_flight_and_all_are_given_back_when_the_engine_dies(
    concurrency: int, in_flight: int
) -> None:
    engine = Slow(lambda text: EngineDeadError("gone"))
    work, lanes = _work(engine, concurrency)
    task = asyncio.create_task(work.run(_shard("a", 20), "a", 60))
    await _settled(engine, in_flight)
    engine.go.set()
    with pytest.raises(EngineDeadError):
        await task
    assert engine.most == in_flight
    for _ in range(in_flight):
        await asyncio.wait_for(lanes.slots.acquire(), 1)


async def test_what_a_shard_came_to_is_told_until_its_commit_has_ended() -> None:
    engine = Slow()
    engine.go.set()
    setup: Any = SimpleNamespace(spec=SPEC, submission_id="s")
    worker = Worker(setup, 3)
    worker._work, worker._lanes = _work(engine, 3)
    told: list[dict[str, int]] = []

    def commit(task: Task, work: Work, attempt: str) -> Commit:
        told.append(asyncio.run(worker.documents_working()))
        return Commit(Tally(), is_ours=True, encode_s=0.0, put_s=0.0)

    held: Any = SimpleNamespace(standing=lambda task: None, commit=commit)
    metrics: Any = SimpleNamespace(shard_committed=lambda wall_s: None)
    worker._committer, worker._metrics = held, metrics
    shard = _shard("a", 5)
    assert isinstance(await worker.attempt(Task(shard.shard_id, shard, shard.shard_id), 1), Summary)
    assert told == [{shard.shard_id: 5}]
    assert await worker.documents_working() == {}


async def test_of_an_error_that_is_not_ours_its_place_is_told_and_not_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Fails when the message, which may quote a document, comes to the driver or into a log."""
    setup: Any = SimpleNamespace(spec=SPEC, submission_id="s")
    worker = Worker(setup, 3)
    words = "text of a document"

    def fail(task: Task) -> None:
        raise ValueError(words)

    held: Any = SimpleNamespace(standing=fail)
    worker._committer = held
    shard = _shard("a", 1)
    answer = await worker.attempt(Task(shard.shard_id, shard, shard.shard_id), 1)
    assert isinstance(answer, EngineError)
    assert "ValueError in fail" in answer.message
    assert words not in answer.message + caplog.text
    assert "ValueError" in caplog.text


async def test_a_shard_that_takes_too_long_counts_as_a_dead_engine() -> None:
    work, _ = _work(Slow(), 3)
    with pytest.raises(EngineDeadError, match="more than"):
        await work.run(_shard("a", 2), "a", 0.05)


async def test_a_store_that_gives_out_ends_the_attempt_and_nothing_is_committed_half() -> None:
    def read(piece: Piece) -> Iterator[Document]:
        yield Document("a", "a")
        raise StorageError("503")

    engine = Slow()
    engine.go.set()
    work, _ = _work(engine, 3, read)
    with pytest.raises(StorageError):
        await work.run(_shard("a", 2), "a", 60)


async def test_a_shard_that_waits_for_its_turn_does_not_use_up_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the time begins before the turn: a worker that prefetches would be taken for dead."""
    loop, late_s = asyncio.get_running_loop(), 0.0
    real_time = loop.time
    monkeypatch.setattr(loop, "time", lambda: real_time() + late_s)
    engine = Slow()
    work, _ = _work(engine, 1)
    first = asyncio.create_task(work.run(_shard("a", 9), "a", 1e6))
    await _settled(engine, 2)
    second = asyncio.create_task(work.run(_shard("b", 1), "b", 60))
    await asyncio.sleep(0)
    late_s = 1000.0
    await asyncio.sleep(0.01)
    engine.go.set()
    await first
    assert [outcome.document_id for outcome in (await second).outcomes] == ["b0"]


async def test_outcomes_that_are_owed_fail_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when what came is not counted against what was planned."""
    engine = Slow()
    engine.go.set()
    work, _ = _work(engine, 3)
    rows = list(work.rows(_shard("a", 3), None))
    monkeypatch.setattr(work, "rows", lambda shard, before: iter(rows[:2]))
    with pytest.raises(VerificationError, match="2 outcomes for 3 documents"):
        await work.run(_shard("a", 3), "a", 60)


@pytest.mark.parametrize("bad", ["a0", "a2"])
async def test_a_fault_of_ours_is_told_before_the_death_of_the_engine(bad: str) -> None:
    """Fails when the first of several errors is told, and a fault of ours passes for a document that kills engines."""
    engine = Slow(lambda text: KeyError(text) if text == bad else EngineDeadError("gone"))
    work, _ = _work(engine, 3)
    task = asyncio.create_task(work.run(_shard("a", 3), "a", 60))
    await _settled(engine, 3)
    engine.go.set()
    with pytest.raises(KeyError):
        await task
