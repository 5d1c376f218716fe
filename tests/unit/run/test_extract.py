"""From a document to its outcome, with the scripted engine."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, field_validator

from pipeline.core.document import Document
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.core.sections import PromptSpec
from pipeline.core.span import Span
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.decoding import Vocabulary, compile_grammar, compile_guide
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.prompts import PromptBuilder
from pipeline.engine.scripted import ScriptedEngine
from pipeline.engine.scripted_model import Script
from pipeline.run.extract import Extractor
from pipeline.run.grounding import misplaced
from pipeline.run.guidance import Guidance, guidance_of
from pipeline.run.intake import Row
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


async def test_a_record_that_was_ended_for_repeating_itself_says_so(tmp_path: Path) -> None:
    """Fails when it passes for one that ran out of its budget, which more tokens would mend."""
    outcome = await Bench(tmp_path, _spec(), _wish("a" * 30, 0)).outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.CLOSED, Cause.RUNAWAY)
    assert outcome.record == {"name": "a", "tags": []}


async def test_a_refused_request_is_an_outcome(tmp_path: Path) -> None:
    outcome = await Bench(tmp_path, _spec(), None, refuse_on="chair").outcome("a chair")
    assert (outcome.status, outcome.cause) == (Status.FAILED, Cause.REFUSED)
    assert outcome.prompt_tokens == len(b"a chair") + 1


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
