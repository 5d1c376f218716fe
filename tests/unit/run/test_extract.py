"""From a document to its outcome, with the scripted engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, field_validator

from pipeline.core.document import Document, Piece, Shard
from pipeline.core.errors import EngineDeadError, StorageError, UnreadableError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.core.sections import PromptSpec
from pipeline.core.span import Span
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.decoding import Vocabulary, compile_grammar, compile_guide
from pipeline.engine.base import Completion, EngineMetrics, Request
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.prompts import PromptBuilder
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import Script
from pipeline.run.attempt import Lanes, ShardWork, Work
from pipeline.run.commit import Commit
from pipeline.run.extract import Extractor
from pipeline.run.grounding import misplaced
from pipeline.run.guidance import Guidance, guidance_of
from pipeline.run.intake import Row
from pipeline.run.ledger import Tally
from pipeline.run.messages import Summary
from pipeline.run.task import Task
from pipeline.run.worker import Worker
from pipeline.storage.arrow import outcomes_table, record_schema, storable


class Thing(BaseModel):
    name: Annotated[str, Field(max_length=30)]
    tags: Annotated[list[Annotated[str, Field(max_length=10)]], Field(max_length=8)]

    @field_validator("name")
    @classmethod
    def _no_bad_names(cls, value: str) -> str:
        if value.startswith("bad"):
            raise ValueError("a bad name")
        return value


def _spec(guide: str = "recordmill", policy: str = "close", **more: Any) -> JobSpec:
    raw = {
        "name": "n",
        "input": {"uri": "/in/"},
        "record": "m:R",
        "model": {"name": "scripted"},
        "decoding": {"guide": guide, "max_tokens": more.pop("max_tokens", 200)},
        "truncation": {"policy": policy, **more},
        "output": {"uri": "/out/"},
    }
    return parse_spec(raw, source="test")


def _wish(name: str, tags: int) -> str:
    return json.dumps({"name": name, "tags": [f"t{index}" for index in range(tags)]}, separators=(",", ":"))


class Bench:
    """An extractor over a scripted engine."""

    def __init__(self, folder: Path, spec: JobSpec, answer: str | None, **script: Any) -> None:
        tokenizer = ByteTokenizer()
        guide = None
        guides: dict[str, str] = {}
        if spec.decoding.guide == "recordmill":
            guide = compile_guide(compile_grammar(Thing), Vocabulary.from_tokenizer(tokenizer))
            guides[guide.fingerprint] = str(folder / f"guide-{guide.fingerprint}.bin")
            guide.save(guides[guide.fingerprint])
        schema = Thing.model_json_schema()
        self.guidance: Guidance = guidance_of(spec, guide, schema)
        self.engine = ScriptedEngine(
            Script(**script), guides=guides, answer=None if answer is None else lambda _: answer
        )
        prompts = PromptBuilder(tokenizer, PromptSpec(), "{{ text }}", schema)
        self.extractor = Extractor(spec, Thing, self.engine, self.guidance, prompts, ThreadPoolExecutor(1))

    async def outcome(self, text: str) -> Outcome:
        row = Row(0, Document("d", text, {"source": "x"}), "a note")
        outcome = (await self.extractor.extract(row, "r")).outcome
        assert outcome.document_id == "d"
        assert outcome.extra == {"source": "x"}
        return outcome


async def test_a_record_that_fits_is_valid(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(), _wish("chair", 2)).outcome("a chair")
    assert outcome.status is Status.VALID
    assert outcome.record == {"name": "chair", "tags": ["t0", "t1"]}
    assert outcome.budget_tokens == 200
    assert outcome.slack_tokens == 200 - len(_wish("chair", 2))
    assert outcome.prompt_tokens == len(b"a chair") + 1
    assert outcome.detail == "a note"


async def test_a_record_that_the_budget_bent_is_closed_and_names_the_fields(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(max_tokens=40), _wish("chair", 8)).outcome("a chair")
    assert outcome.status is Status.CLOSED
    assert outcome.cause is Cause.BUDGET
    assert any(name.startswith("tags") for name in outcome.shaped_fields)
    assert outcome.record is not None
    assert outcome.record["name"] == "chair"


async def test_reject_keeps_the_text_of_what_was_cut_off(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(policy="reject", max_tokens=40), _wish("chair", 8)).outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.TRUNCATED, Cause.BUDGET)
    assert outcome.raw == _wish("chair", 8)[:40]


async def test_salvage_keeps_whole_items(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(policy="salvage", max_tokens=40), _wish("chair", 8)).outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.CLOSED, Cause.SALVAGED)
    assert outcome.record == {"name": "chair", "tags": ["t0", "t1", "t2"]}
    assert outcome.shaped_fields == ("tags",)


async def test_what_the_models_validators_refuse_is_invalid(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(), _wish("bad chair", 1)).outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.INVALID, Cause.VALIDATOR)
    assert outcome.raw == _wish("bad chair", 1)


@pytest.mark.parametrize(
    ("answer", "status", "cause"),
    [
        ('{"name":"a","tags":[]}', Status.VALID, None),
        ('```json\n{"name": "a", "tags": []}\n```', Status.VALID, None),
        ("I would say it is a chair.", Status.INVALID, Cause.NOT_JSON),
        ('{"name":"a"}', Status.INVALID, Cause.VALIDATOR),
        (_wish("a", 8) + " " * 200, Status.VALID, None),
        (_wish("a", 8)[:-1] + " " * 300, Status.TRUNCATED, Cause.RUNAWAY),
    ],
)
async def test_without_a_guide_the_parser_decides(
    tmp_path: Path, answer: str, status: Status, cause: Cause | None
) -> None:
    outcome = await Bench(tmp_path, _spec("none", "reject"), answer).outcome("a chair")
    assert (outcome.status, outcome.cause) == (status, cause)


async def test_an_engine_that_leaves_its_guide_is_not_believed(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(), None, garbage_on="chair").outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.INVALID, Cause.NOT_JSON)
    assert "did not follow its guide" in (outcome.detail or "")


async def test_a_refused_request_is_an_outcome(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(), None, refuse_on="chair").outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.FAILED, Cause.REFUSED)


async def test_a_document_that_leaves_no_room_is_too_long(tmp_path: Path) -> None:
    bench = Bench(tmp_path, _spec(), None, max_model_len=100)
    outcome = await bench.outcome("x" * 90)
    assert (outcome.status, outcome.cause) == (Status.FAILED, Cause.TOO_LONG)
    assert "100" in (outcome.detail or "")


@pytest.mark.parametrize(("where", "seen"), [("head", "first"), ("tail", "last")])
async def test_a_long_document_is_cut_with_a_mark(tmp_path: Path, where: str, seen: str) -> None:
    bench = Bench(tmp_path, _spec(long_documents=where, max_tokens=60), None, max_model_len=100, refuse_on=seen)
    outcome = await bench.outcome("first" + "x" * 90 + "last")
    assert outcome.cause is Cause.REFUSED
    other = Bench(tmp_path, _spec(long_documents=where, max_tokens=60), _wish("a", 0), max_model_len=100)
    outcome = await other.outcome("first" + "x" * 90 + "last")
    assert outcome.status is Status.VALID
    assert f"only the {where} was read: " in (outcome.detail or "")


class Slow:
    """Completions that wait until they are let go; counts how many are in flight."""

    name = "slow"
    max_model_len = 1000

    def __init__(self, dies: bool = False) -> None:
        self.in_flight = 0
        self.most = 0
        self.seen: list[str] = []
        self.go = asyncio.Event()
        self.dies = dies

    async def generate(self, request: Request) -> Completion:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.seen.append(bytes(request.prompt_ids).decode().strip())
        await self.go.wait()
        self.in_flight -= 1
        if self.dies:
            raise EngineDeadError("gone")
        text = _wish(self.seen[-1], 0)
        return Completion(tuple(text.encode()), text, "stop")

    def metrics(self) -> EngineMetrics:
        return EngineMetrics()

    async def close(self) -> None:
        return None


def _work(engine: Slow, concurrency: int, read: Any = None) -> tuple[ShardWork, Lanes]:
    spec = _spec("none", "reject")
    prompts = PromptBuilder(ByteTokenizer(), PromptSpec(), "{{ text }}", {})
    extractor = Extractor(spec, Thing, engine, Guidance(None), prompts, ThreadPoolExecutor(1))
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
    engine = Slow(dies=True)
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
    setup: Any = SimpleNamespace(spec=_spec("none", "reject"), submission_id="s")
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


class Found(BaseModel):
    company: Annotated[str, Span()]
    amount: Annotated[Decimal | None, Span()] = None


class Priced(BaseModel):
    amount: Annotated[Decimal, Span()]


def _copying(tmp_path: Path, answer: str | None, model: type[BaseModel] = Found, **changes: Any) -> Extractor:
    spec = _spec(**changes)
    tokenizer = ByteTokenizer()
    guide = compile_guide(compile_grammar(model), Vocabulary.from_tokenizer(tokenizer))
    path = tmp_path / f"guide-{guide.fingerprint}.bin"
    guide.save(path)
    schema = model.model_json_schema()
    engine = ScriptedEngine(
        Script(), guides={guide.fingerprint: str(path)}, answer=None if answer is None else lambda _: answer
    )
    prompts = PromptBuilder(tokenizer, PromptSpec(), "{{ text }}", schema)
    return Extractor(spec, model, engine, guidance_of(spec, guide, schema), prompts, ThreadPoolExecutor(1))


async def _found(extractor: Extractor, text: str) -> Outcome:
    return (await extractor.extract(Row(0, Document("d", text)), "r")).outcome


async def test_an_extractive_value_is_copied_and_its_place_is_told(tmp_path: Path) -> None:
    text = "Receipt\nBlue Door Ltd\nTotal 12.50"
    outcome = await _found(_copying(tmp_path, '{"company":"Blue Door Ltd","amount":12.50}'), text)
    assert outcome.status is Status.VALID
    assert outcome.record == {"company": "Blue Door Ltd", "amount": Decimal("12.50")}
    places = {span.field: text[span.start : span.end] for span in outcome.spans}
    assert places == {"company": "Blue Door Ltd", "amount": "12.50"}


async def test_what_is_not_in_the_document_cannot_be_said(tmp_path: Path) -> None:
    text = "Receipt\nBlue Door Ltd\nTotal 12.50"
    outcome = await _found(_copying(tmp_path, '{"company":"Red House Inc","amount":99.99}'), text)
    assert outcome.record is not None
    assert outcome.record["company"] in text
    assert outcome.record["amount"] in (None, Decimal("12.50"))


async def test_a_document_without_a_candidate_for_a_required_field_has_its_cause(tmp_path: Path) -> None:
    outcome = await _found(_copying(tmp_path, None, Priced), "no amount here")
    assert (outcome.status, outcome.cause) == (Status.FAILED, Cause.NO_SPAN)


async def test_a_budget_below_what_must_be_copied_is_said_without_a_request(tmp_path: Path) -> None:
    extractor = _copying(tmp_path, None, max_tokens=32)
    outcome = await _found(extractor, "Extraordinarilylongcompanyname")
    assert (outcome.status, outcome.cause) == (Status.TRUNCATED, Cause.BUDGET)
    assert outcome.output_tokens == 0


class Salvageable(BaseModel):
    company: Annotated[str, Span()]
    items: list[Annotated[str, Span()]] = []


async def test_a_salvaged_record_has_the_places_of_what_was_kept(tmp_path: Path) -> None:
    text = "Blue Door Ltd\nred tea\nblue tea"
    answer = '{"company":"Blue Door Ltd","items":["red tea","blue tea","red tea"]}'
    outcome = await _found(_copying(tmp_path, answer, Salvageable, policy="salvage", max_tokens=56), text)
    assert (outcome.status, outcome.cause) == (Status.CLOSED, Cause.SALVAGED)
    assert outcome.record == {"company": "Blue Door Ltd", "items": ["red tea", "blue tea"]}
    assert [(span.field, text[span.start : span.end]) for span in outcome.spans] == [
        ("company", "Blue Door Ltd"),
        ("items[0]", "red tea"),
        ("items[1]", "blue tea"),
    ]


class Tidied(BaseModel):
    company: Annotated[str, Span()]
    items: list[Annotated[str, Span()]] = []

    @field_validator("company")
    @classmethod
    def _short(cls, value: str) -> str:
        return value.removesuffix(" Ltd")

    @field_validator("items")
    @classmethod
    def _sorted(cls, value: list[str]) -> list[str]:
        return sorted(value)


async def test_what_was_copied_is_kept_beside_what_a_validator_made_of_it(tmp_path: Path) -> None:
    """Fails when the value of the record is looked for in the document, where it does not stand."""
    text = "Blue Door Ltd\nred tea\nblue tea"
    answer = '{"company":"Blue Door Ltd","items":["red tea","blue tea"]}'
    outcome = await _found(_copying(tmp_path, answer, Tidied), text)
    assert outcome.record == {"company": "Blue Door", "items": ["blue tea", "red tea"]}
    assert [(span.field, span.copied) for span in outcome.spans] == [
        ("company", "Blue Door Ltd"),
        ("items[0]", "red tea"),
        ("items[1]", "blue tea"),
    ]
    schema = record_schema(Tidied, {})
    (row,) = outcomes_table([storable(outcome, schema)], schema, attempt="a", engine="e").to_pylist()
    assert misplaced(row, text) == []
    assert misplaced(row, text.replace("Door", "Gate")) == ["company is not what stands at [0, 13)"]


async def test_what_no_validator_changes_is_not_kept_twice(tmp_path: Path) -> None:
    outcome = await _found(_copying(tmp_path, '{"company":"Blue Door Ltd","amount":12.50}'), "Blue Door Ltd\n12.50")
    assert [span.copied for span in outcome.spans] == [None, None]
