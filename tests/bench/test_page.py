"""The page of benchmarks: goals are held against stored figures, and a result is lost neither to a failure nor to a
part of a run."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench import __main__ as bench
from tests.bench.catalogue import BENCHMARKS, Benchmark
from tests.bench.data import DATA_VARIABLE, receipts_file
from tests.bench.goals import GOALS, Goal
from tests.bench.heading import command_of
from tests.bench.job import CHECKOUT
from tests.bench.page import page
from tests.bench.results import Ran, read_failures, read_results, run_benchmark, scrubbed, store
from tests.bench.tables import Sheet, write_sheets
from tests.bench.versus.figures import Figures
from tests.bench.versus.judge import Judgement
from tests.bench.versus.table import Entry


def _ran(name: str, **changed: Any) -> Ran:
    ran = Ran(name, f"python -m {name}", "abc", "2 cores", "2026-11-30", 1.0, 0, "printed")
    return replace(ran, **changed)


def _run(working_s: float, valid: int = 100) -> Figures:
    return Figures(100, Judgement(100, valid, 0), 1.0, None, working_s, 9.0, 10, 5, 1000, 0, {"decode": 2.0})


def _versus() -> Any:
    runs = [Entry("ours", 0, _run(10.0)), Entry("ours", 1, _run(20.0)), Entry("ours", 2, _run(10.0))]
    runs += [Entry("Ray Data LLM", 1, _run(40.0, 50)), Entry("Ray Data LLM", 2, _run(30.0, 50))]
    runs += [Entry("engine alone", 0, failure="ours wrote nothing")]
    return {"title": "100 notes", "runs": [asdict(entry) for entry in runs]}


def _goal(text: str) -> Goal:
    return next(goal for goal in GOALS if goal.text == text)


def test_every_goal_is_of_a_benchmark_with_figures() -> None:
    assert {goal.benchmark for goal in GOALS} <= {item.name for item in BENCHMARKS if item.has_figures}


def test_a_goal_without_figures_is_neither_met_nor_missed() -> None:
    assert _goal("Mask and advance, rows made, median").reached({}).is_met is None


def test_masks_have_to_meet_a_goal_for_each_record_type() -> None:
    def masks(second: float) -> Any:
        results = {"a": {"both_us": [1.0, 2.0]}, "b": {"both_us": [second, 9.0]}}
        return {"masks": {"vocabularies": {"v": {"ours": results, "xgrammar": {}}}}}

    goal = _goal("Mask and advance, rows made, median")
    assert goal.reached(masks(2.9)).is_met is True
    assert goal.reached(masks(3.1)).is_met is False
    assert goal.reached(masks(3.0)).shown(1) == "2.0 (1.0–3.0)"
    failed = masks(1.0)
    failed["masks"]["vocabularies"]["v"]["ours"]["b"] = {"error": "timeout"}
    assert goal.reached(failed).is_met is False


def test_whole_jobs_are_compared_within_rounds() -> None:
    stored = {"versus-notes": _versus()}
    reached = _goal("Valid records/s to Ray Data LLM, notes").reached(stored)
    assert (reached.values, reached.is_met) == ((4.0, 6.0), True)
    assert _goal("Tokens/s to the engine alone, notes").reached(stored).is_met is None


def test_growth_that_is_not_linear_is_a_goal_missed() -> None:
    def sizes(last_s: float) -> Any:
        growth = [
            {"documents": size, "plan_s": seconds, "resume_s": seconds, "driver_cpu_s": seconds}
            for size, seconds in ((10, 1.0), (100, last_s))
        ]
        return {"growth": growth, "order": []}

    goal = _goal("Growth, as a power of the documents")
    assert goal.reached({"simulation": sizes(10.0)}).is_met is True
    assert goal.reached({"simulation": sizes(20.0)}).is_met is False


def test_a_result_with_figures_is_a_table_and_one_without_is_what_was_printed() -> None:
    shown = page({"versus-notes": _ran("versus-notes", figures=_versus()), "spans": _ran("spans", text="kinds")}, {})
    assert "| ours | 100 | 100 | 0 | 1.0 | 10.00 (5.00–10.00) |" in shown
    assert "engine alone: ours wrote nothing." in shown
    assert "<details><summary>As printed</summary>" in shown
    assert "```text\nkinds\n```" in shown


def test_a_sheet_is_printed_stored_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = Sheet("Times", ("kind", "ms"))
    sheet.add("line", 0.5)
    sheet.print()
    assert "Times" in capsys.readouterr().out
    write_sheets([sheet], tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert "Times\n\n| kind | ms |\n| --- | ---: |\n| line | 0.5 |" in page(
        {"spans": _ran("spans", figures=figures)}, {}
    )


def test_a_failed_run_replaces_no_good_one_and_is_told_until_the_next_good_one(tmp_path: Path) -> None:
    store(_ran("spans", text="good"), tmp_path)
    store(_ran("spans", text="bad", exit_code=1, error="Traceback"), tmp_path)
    store(_ran("masks"), tmp_path)
    shown = page(read_results(tmp_path), read_failures(tmp_path))
    assert "good" in shown
    assert "Traceback" in shown
    store(_ran("spans", text="better"), tmp_path)
    assert {name: ran.text for name, ran in read_results(tmp_path).items()} == {"masks": "printed", "spans": "better"}
    assert not read_failures(tmp_path)


def test_a_benchmark_that_fails_keeps_the_end_of_its_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run_benchmark(Benchmark("m", "M", "maskbench", ("--no-such-option",)))
    assert ran.exit_code == 2
    assert "--no-such-option" in ran.error


def test_a_benchmark_past_its_time_is_ended() -> None:
    ran = run_benchmark(Benchmark("m", "M", "maskbench", limit_minutes=0))
    assert ran.exit_code == 124
    assert "not done in 0 minutes" in ran.error


def test_no_path_of_a_machine_is_kept(tmp_path: Path) -> None:
    text = f'--data {receipts_file()} in "{CHECKOUT}/x", "/tmp/recordmill-1/y"\nnext /tmp/recordmill-1\nlast'
    store(_ran("spans", text=text, figures={"lines": [text]}), tmp_path)
    read = read_results(tmp_path)["spans"]
    assert read.text.endswith('"/tmp/..."\nnext /tmp/...\nlast')
    assert read.figures == {"lines": [read.text]}
    stored = (tmp_path / "spans.json").read_text()
    assert str(CHECKOUT) not in stored
    assert str(receipts_file().parent) not in stored
    assert "recordmill-1" not in stored
    assert scrubbed("python -m tests.bench.masks") == "python -m tests.bench.masks"


def test_without_its_data_a_benchmark_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    monkeypatch.setattr(bench, "_write_page", lambda: None)
    assert bench.main(["--only", "budgets", "--allow-dirty"]) == 0
    assert "budgets: skipped: no data" in capsys.readouterr().out


def test_nothing_is_run_from_files_that_no_commit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "commit", lambda: "abc+")
    monkeypatch.setattr(bench, "run_benchmark", lambda item: pytest.fail("it ran"))
    with pytest.raises(SystemExit):
        bench.main(["--only", "spans"])


def test_a_command_is_told_with_its_defaults_and_can_be_typed() -> None:
    options = argparse.Namespace(contenders="ours;a, b", repeats=3, gpu=False, list=True, out=None, sizes=[1, 2])
    told = command_of("versus", options)
    assert told == "python -m tests.bench.versus --contenders 'ours;a, b' --repeats 3 --list --sizes 1 2"
