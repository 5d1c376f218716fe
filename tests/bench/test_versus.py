"""The side-by-side harness: what a start costs is told from what a document costs, and every benchmark can be asked."""

from __future__ import annotations

import argparse
import importlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bench import gpu
from tests.bench.__main__ import BENCHMARKS, Benchmark
from tests.bench.versus.__main__ import Pair
from tests.bench.versus.measure import ContenderFailedError, Measured, measure
from tests.bench.versus.note import Note, notes
from tests.bench.versus.task import Result, Task, judged


def _task(documents: int, contender: str = "ours") -> Task:
    return Task(contender, "notes", "/none", documents, "s3://none/in/", "s3://none/out/", "http://127.0.0.1:1", "r")


def test_the_start_is_what_a_few_documents_take_beyond_their_share() -> None:
    few = Measured(_task(10), Result(10, 10, 0, [5] * 10), 25.0, 0)
    whole = Measured(_task(110), Result(110, 60, 0, [5] * 110), 75.0, 0)
    pair = Pair(few, whole)
    assert (pair.rate, pair.start_s, pair.tokens_rate, pair.valid_rate) == (2.0, 20.0, 10.0, 1.0)


def test_whole_and_valid_are_told_apart() -> None:
    good = '{"kind":"order","urgent":true,"priority":1,"subject":"a","tags":[]}'
    texts = [good, f"```json\n{good}\n```", good.replace("1", "12"), good[:-3], ""]
    assert judged(texts, Note) == (3, 2)


def test_a_contender_that_ends_without_a_result_says_how(tmp_path: Path) -> None:
    with pytest.raises(ContenderFailedError, match="KeyError: 'nobody'"):
        measure(_task(1, "nobody"), tmp_path / "run", {})


def test_notes_do_not_depend_on_how_many_there_are() -> None:
    assert notes(30).slice(0, 10).equals(notes(10))


class _ParsedError(Exception):
    """The arguments were taken; nothing else shall happen."""


@pytest.mark.parametrize("item", BENCHMARKS, ids=lambda item: item.name)
def test_every_benchmark_of_the_page_takes_its_arguments(item: Benchmark, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an option of a command is renamed and the list is not."""
    parse = argparse.ArgumentParser.parse_args

    def only_parse(parser: argparse.ArgumentParser, *given: Any, **named: Any) -> None:
        parse(parser, *given, **named)
        raise _ParsedError

    name = f"tests.bench.{item.module}"
    module = importlib.import_module(f"{name}.__main__" if item.module == "versus" else name)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    with pytest.raises(_ParsedError):
        module.main([*item.arguments])


def test_what_a_gpu_can_show_is_all_run_and_the_first_failure_is_the_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run: list[str] = []

    def failing(command: list[str], **_: Any) -> Any:
        run.append(command[2])
        return subprocess.CompletedProcess(command, len(run) + 2 if len(run) > 1 else 0)

    monkeypatch.setattr(gpu, "_has_gpu", lambda: True)
    monkeypatch.setattr(subprocess, "run", failing)
    assert gpu.main(["--model-folder", str(tmp_path)]) == 4
    assert run == ["tests.bench.versus", "tests.bench.versus", "tests.bench.masks"]
