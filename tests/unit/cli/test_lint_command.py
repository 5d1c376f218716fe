"""`lint`: verdicts, tokens and advice, with a tokenizer and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Say, put_job

MODULE = """
from collections.abc import Callable
from typing import Annotated, Literal
from pydantic import BaseModel, Field, RootModel

class Loose(BaseModel):
    answer: Literal["yes", "no"]
    reasoning: str
    value: list[str]

class Odd(BaseModel):
    act: Callable[[], int]

class Numbers(RootModel[list[int]]):
    pass
"""


@pytest.fixture
def module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"linted_{folder.name}".replace("-", "_")
    (folder / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(folder))
    return name


def test_the_shares_of_the_least_record_add_up_to_the_guides_own_number(folder: Path, say: Say) -> None:
    found = say("lint", "job.yaml", "--json").json
    assert sum(field["least_tokens"] for field in found["fields"]) == found["least_tokens"]
    assert found["least_tokens"] == len(found["least_record"].encode())
    assert found["likely_tokens"] == sum(field["likely_tokens"] for field in found["fields"])


def test_a_budget_that_holds_no_record_is_refused_with_one_that_would_do(folder: Path, say: Say) -> None:
    answered = say("lint", "job.yaml", "--json", "--set", "decoding.max_tokens=5")
    assert answered.code == 2
    assert answered.json["is_refused"]
    advice = answered.json["advice"][0]
    assert advice["rule"] == "budget_below_least"
    wanted = int(advice["message"].split()[-3])
    enough = say("lint", "job.yaml", "--json", "--set", f"decoding.max_tokens={wanted}")
    assert enough.code == 0
    assert not [item for item in enough.json["advice"] if item["rule"].startswith("budget")]


def test_what_hurts_is_said_once_with_the_fields_it_concerns(folder: Path, say: Say, module: str) -> None:
    put_job(folder, record=f"{module}:Loose")
    shown = say("lint", "job.yaml")
    assert shown.code == 0
    assert shown.out.count("a string without max_length can run on") == 1
    assert "reasoning, value[]  unbounded_string" in shown.out
    assert "declare it before 'answer'" in shown.out


def test_a_refused_field_is_shown_with_its_reason_and_exit_code_2(folder: Path, say: Say, module: str) -> None:
    put_job(folder, record=f"{module}:Odd")
    shown = say("lint", "job.yaml")
    assert shown.code == 2
    assert "refused" in shown.out


def test_a_type_whose_values_are_no_rows_is_refused_as_a_run_refuses_it(folder: Path, say: Say, module: str) -> None:
    put_job(folder, record=f"{module}:Numbers")
    for command in ("lint", "plan"):
        answered = say(command, "job.yaml")
        assert answered.code == 2
        assert (
            answered.err == "recordmill: Numbers is not an object with fields, so its values are not rows of a table\n"
        )


def test_without_the_models_tokenizer_lint_says_so_and_goes_on(
    folder: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_job(folder, model={"name": "nobody/no-such-model", "engine": {}})
    shown = say("lint", "job.yaml")
    assert shown.code == 0
    said = " ".join(shown.out.split())
    assert "Least and likely tokens are not known: the tokenizer of nobody/no-such-model cannot be loaded: " in said
    assert "there is no copy on this machine, and HF_HUB_OFFLINE=0 would fetch it" in said
    assert say("lint", "job.yaml", "--json").json["least_tokens"] is None


@pytest.mark.parametrize(
    ("name", "said", "code"),
    [
        ("{here}/no-model", "model folder {here}/no-model does not exist\n", 0),
        ("~/no-such-model", "model folder ~/no-such-model does not exist\n", 0),
        ("in/no-model", "; the folder in is here, without it", 0),
        ("no-model", "does not exist; a model of the hub is named owner/name", 2),
        ("./in/a.jsonl", "model.name ./in/a.jsonl is a file", 2),
        ("./in", "model folder ./in has no config.json", 2),
    ],
)
def test_a_path_without_a_model_is_shown_beside_the_fields_and_refused_where_it_is_relative(
    name: str, said: str, code: int, folder: Path, say: Say
) -> None:
    put_job(folder, model={"name": name.format(here=folder), "engine": {}})
    shown = say("lint", "job.yaml")
    assert shown.code == code
    assert said.format(here=folder) in shown.out
    assert "enforced" in shown.out
    assert say("lint", "job.yaml", "--json").json["is_refused"] == (code == 2)
