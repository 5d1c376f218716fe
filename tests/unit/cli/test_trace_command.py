"""`trace`: what is shown of each step is what happened."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

from tests.unit.cli.conftest import Say, put_job


def steps_of(say: Say, *options: str) -> list[dict[str, Any]]:
    answered = say("trace", "job.yaml", "--document", "d007", "--json", *options)
    assert answered.code == 0
    found: list[dict[str, Any]] = answered.json["steps"]
    return found


def test_the_steps_spell_the_record_and_end(folder: Path, say: Say) -> None:
    steps = steps_of(say)
    assert "".join(step["text"] for step in steps[:-1]) == '{"title":"note 7","number":7}'
    assert steps[-1]["text"] == "⟨end⟩"
    assert [step["before"] for step in steps[:3]] == ["", "{", '{"']
    assert steps[12]["field"] == "title"
    forced = [step["text"] for step in steps if step["legal_tokens"] == 1]
    assert "".join(forced).startswith('{"title":"')


def test_the_budgets_slack_falls_only_where_the_model_chooses_more_than_is_needed(folder: Path, say: Say) -> None:
    steps = steps_of(say)
    assert steps[0]["slack_tokens"] == 100 - len('{"title":"","number":0}')
    for before, after in itertools.pairwise(steps):
        assert 0 <= before["slack_tokens"] - after["slack_tokens"] <= 1
        if before["legal_tokens"] == 1:
            assert before["slack_tokens"] == after["slack_tokens"]
    assert not any(step["is_tightened"] for step in steps)


def test_a_tight_budget_is_shown_where_it_bends_the_record(folder: Path, say: Say) -> None:
    steps = steps_of(say, "--set", "decoding.max_tokens=26")
    bent = [step for step in steps if step["is_bent"]]
    assert bent
    assert all(step["is_tightened"] for step in bent)
    for step in bent:
        wanted = max(step["candidates"], key=lambda candidate: candidate["free"])
        assert not wanted["is_legal"]
        assert not wanted["is_chosen"]


def test_probabilities_are_those_of_the_free_model_and_the_masked_ones_follow_from_them(folder: Path, say: Say) -> None:
    for step in steps_of(say, "--set", "decoding.max_tokens=26"):
        assert 0 < step["free"] <= step["legal_mass"] <= 1
        if step["masked"] is not None:
            assert math.isclose(step["masked"] * step["legal_mass"], step["free"], rel_tol=1e-6)
        chosen = [candidate for candidate in step["candidates"] if candidate["is_chosen"]]
        assert [(candidate["text"], candidate["is_legal"]) for candidate in chosen] == [(step["text"], True)]


def test_the_unguided_answer_stands_beside_it_only_where_it_is_asked_for(folder: Path, say: Say) -> None:
    put_job(folder, model={"engine": {"answers": "tests.unit.cli.answers:chatter"}})
    assert say("trace", "job.yaml", "--document", "d007", "-o", "t.html").code == 0
    page = (folder / "t.html").read_text()
    assert "Sure! &lt;b&gt;" in page
    assert "It would have been invalid (not_json)" in page
    assert 'type="checkbox"' in page
    assert "<script" not in page
    say("trace", "job.yaml", "--document", "d007", "-o", "t.html", "--no-unguided")
    assert 'type="checkbox"' not in (folder / "t.html").read_text()


def test_a_job_without_our_guide_has_nothing_to_trace(folder: Path, say: Say) -> None:
    answered = say(
        "trace", "job.yaml", "--document", "d007", "--set", "decoding.guide=none", "--set", "truncation.policy=reject"
    )
    assert answered.code == 2
    assert "guide recordmill" in answered.err


def test_a_document_that_never_reaches_the_engine_is_shown_with_its_cause(folder: Path, say: Say) -> None:
    put_job(folder, model={"engine": {"refuse_on": "note 7 "}})
    answered = say("trace", "job.yaml", "--document", "d007", "--json")
    assert answered.code == 0
    assert answered.json["steps"] == []
    assert answered.json["outcome"]["cause"] == "refused"
