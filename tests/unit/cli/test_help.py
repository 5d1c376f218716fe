"""Every command says what it does and shows how it is used; every mistake is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main

from pipeline.cli.app import app
from tests.unit.cli.conftest import Say

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_commands_of_a_users_day_are_all_there() -> None:
    day = "init lint preview plan run status report verify rerun export trace"
    assert set(day.split()) <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_that_names_only_options_there_are(command: str, say: Say) -> None:
    shown = say(command, "--help")
    assert shown.code == 0
    text = " ".join(shown.out.replace("│", " ").split())
    assert f"Example: recordmill {command}" in text
    written = _command(command).help or ""
    assert written.count("\n\nExample:") == written.count("Example:"), "an example is a line of its own"
    known = {option for parameter in _command(command).params for option in parameter.opts}
    example = written.partition("Example:")[2].strip().strip("`").split()
    assert {word for word in example if word.startswith("-")} <= known


def _command(name: str) -> Any:
    return typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "words",
    [
        ("lint", "missing.yaml"),
        ("preview", "missing.yaml"),
        ("plan", "missing.yaml"),
        ("run", "missing.yaml"),
        ("trace", "missing.yaml", "--document", "d1"),
        ("status", "nowhere/"),
        ("report", "nowhere/"),
        ("verify", "nowhere/"),
        ("export", "nowhere/"),
        ("rerun", "nowhere/", "--output", "new/"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    words: tuple[str, ...], say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answered = say(*words)
    assert answered.code == 2
    assert answered.out == ""
    assert answered.err.startswith("recordmill: ")
    assert answered.err.count("\n") == 1


def test_an_unknown_option_is_a_usage_error(say: Say) -> None:
    answered = say("lint", "job.yaml", "--colour")
    assert answered.code == 2
    assert answered.err == "recordmill: No such option: --colour\n"


@pytest.mark.parametrize(
    ("words", "target", "said"),
    [
        (("plan", "job.yaml"), "pipeline.cli.plan.estimate", "recordmill: interrupted\n"),
        (
            ("run", "job.yaml"),
            "pipeline.run.job.prepare",
            "recordmill: run notes was interrupted (run the same command again to resume)\n",
        ),
    ],
)
def test_an_interrupted_command_says_so(
    words: tuple[str, ...], target: str, said: str, folder: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(target, interrupted)
    answered = say(*words)
    assert answered.code == 130
    assert answered.err.endswith(said)
