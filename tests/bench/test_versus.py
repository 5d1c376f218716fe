"""The side-by-side harness: what is counted, over what time, beside whom; and every benchmark can be asked."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pytest

from pipeline.core.errors import RequestRefusedError
from tests.bench import gpu
from tests.bench.catalogue import BENCHMARKS, Benchmark
from tests.bench.versus.__main__ import _order
from tests.bench.versus.figures import COLUMNS, Figures, ratios
from tests.bench.versus.judge import Answer, Judgement, judged
from tests.bench.versus.measure import ContenderFailedError, ContenderTimeoutError, Measured, measure
from tests.bench.versus.note import Note, notes
from tests.bench.versus.ours import MOMENTS_FILE, TimedEngine
from tests.bench.versus.table import Entry, compared, table_rows
from tests.bench.versus.task import Moments, Result, Task


def _task(documents: int, contender: str = "ours") -> Task:
    return Task(contender, "notes", "/none", documents, "s3://none/in/", "s3://none/out/", "http://127.0.0.1:1", "r")


def _figures(working_s: float = 50.0, valid: int = 60, **changed: Any) -> Figures:
    measured = Measured(
        _task(100),
        Result(Judgement(90, valid, 10), Moments(1020.0, 1020.0 + working_s, 1025.0), 1000, [5] * 100, 250),
        1000.0,
        90.0,
        0,
    )
    return replace(measured.figures(), **changed)


def test_rates_are_from_the_ready_engine_to_the_last_result() -> None:
    figures = _figures()
    assert (figures.start_s, figures.first_s, figures.working_s, figures.wall_s) == (20.0, 5.0, 50.0, 90.0)
    assert (figures.documents_rate, figures.valid_rate, figures.tokens_rate) == (2.0, 1.2, 10.0)
    assert figures.hit_rate == 0.25


def test_without_time_there_is_no_rate() -> None:
    assert _figures(working_s=0.0).documents_rate is None
    assert _figures(judgement=None).valid_rate is None


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = Result(Judgement(3, 2, 1), Moments(1.0, 2.0), 7, [1, 2], None, {"decode": 0.5})
    result.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json") == result
    entry = Entry("ours", 1, _figures())
    assert Entry.read(json.loads(json.dumps(asdict(entry)))) == entry


def test_one_is_compared_with_another_where_both_came_through() -> None:
    mine = {0: _figures(50.0), 1: _figures(100.0), 2: _figures(25.0)}
    others = {1: _figures(200.0), 2: _figures(100.0), 3: _figures(1.0)}
    assert ratios(mine, others, lambda run: run.documents_rate) == [2.0, 4.0]
    assert ratios(mine, {0: _figures(valid=0)}, lambda run: run.valid_rate) == []


def test_a_contender_that_failed_is_a_row_that_says_so() -> None:
    entries = [Entry("ours", 0, _figures()), Entry("slow", 0, failure="not done in 5 minutes")]
    entries += [Entry("ours", 1, _figures(25.0)), Entry("shaky", 0, failure="died"), Entry("shaky", 1, _figures())]
    ours, slow, shaky = table_rows(entries)
    assert ours[list(COLUMNS).index("documents/s") + 1] == "3.00 (2.00–4.00)"
    assert slow == ["slow", "not done in 5 minutes"]
    assert shaky[0] == "shaky (1 failed)"
    assert [row[0] for row in compared(entries, "ours")] == ["shaky"]


def test_each_round_begins_with_another_contender_and_the_ceiling_follows_ours() -> None:
    names = ["ours", "a", "b", "engine alone"]
    assert [_order(names, turn) for turn in range(3)] == [
        ["ours", "engine alone", "a", "b"],
        ["a", "b", "ours", "engine alone"],
        ["b", "ours", "engine alone", "a"],
    ]
    both = [*names, "engine alone, one process"]
    assert [_order(both, turn)[1:3] for turn in (0, 5)] == [
        ["engine alone, one process", "engine alone"],
        ["engine alone", "engine alone, one process"],
    ]


@pytest.mark.asyncio
async def test_the_last_moment_is_that_of_the_last_completion_even_of_one_that_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when a refusal leaves an earlier moment for the last: ours would look faster than it is."""
    noted = tmp_path / "moments"
    monkeypatch.setenv(MOMENTS_FILE, str(noted))
    gates = [asyncio.Event(), asyncio.Event()]

    class Gated:
        async def generate(self, request: Any) -> None:
            await gates[request].wait()
            if request:
                raise RequestRefusedError("too long")

    engine = TimedEngine(cast("Any", Gated()))
    asked = [asyncio.create_task(engine.generate(cast("Any", number))) for number in (0, 1)]
    await asyncio.sleep(0)  # both are asked before either is answered
    moments = []
    for gate, one in zip(gates, asked, strict=True):
        gate.set()
        await asyncio.wait([one])
        moments.append([json.loads(line)[0] for line in noted.read_text().splitlines()])
    assert moments == [["first"], ["first", "last"]]
    assert isinstance(asked[1].exception(), RequestRefusedError)


def test_whole_valid_and_closed_are_told_apart() -> None:
    good = '{"kind":"order","urgent":true,"priority":1,"subject":"a","tags":[]}'
    texts = [good, good.replace("1", "12"), good[:-3], ""]
    assert judged([*map(Answer, texts), Answer(good, is_marked=True)], Note) == Judgement(3, 1, 1)


def test_a_contender_that_ends_without_a_result_says_how(tmp_path: Path) -> None:
    with pytest.raises(ContenderFailedError, match="exit code 1: KeyError: 'nobody'"):
        measure(_task(1, "nobody"), tmp_path / "run", {})


def test_a_contender_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ContenderTimeoutError, match="not done in 0 minutes"):
        measure(_task(1, "nobody"), tmp_path / "run", {}, limit_s=0.01)


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

    module = importlib.import_module(f"tests.bench.{item.module}")
    if hasattr(module, "__path__"):
        module = importlib.import_module(f"tests.bench.{item.module}.__main__")
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    with pytest.raises(_ParsedError):
        module.main([*item.arguments, *(["--out", "figures.json"] if item.has_figures else [])])


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
