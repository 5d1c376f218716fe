"""`plan`: counts, rates and a table to choose a budget from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.conftest import Say, put_job, put_lines


def prompt_tokens(folder: Path) -> list[int]:
    """What the byte tokenizer makes of a prompt: the fixed part, and the document's bytes."""
    rows = [json.loads(line) for line in (folder / "in" / "a.jsonl").read_text().splitlines()]
    return [len(row["text"].encode()) for row in rows]


def test_prompts_are_counted_exactly_and_the_rest_is_said_to_be_a_guess(folder: Path, say: Say) -> None:
    found = say("plan", "job.yaml", "-n", "30", "--json").json
    assert (found["documents"], found["shards"]) == (30, 2)
    sizes = prompt_tokens(folder)
    assert found["prompt_tokens"] == sum(sizes) + 30 * found["fixed_tokens"]
    assert found["prompt"]["most"] == max(sizes) + found["fixed_tokens"]
    assert found["generated"] is None
    assert found["budgets"] == []
    assert found["cost"] is None
    shown = say("plan", "job.yaml")
    assert "a guess" in shown.out
    assert "give one engine's rate" in shown.out


def test_generations_show_what_each_budget_would_cut_short(folder: Path, say: Say) -> None:
    # 20 records of 29 tokens, 20 of 31.
    rows = [{"document_id": f"r{number}", "text": f"note {3 if number % 2 else 33} x"} for number in range(40)]
    put_lines(folder / "in" / "a.jsonl", rows)
    put_job(folder, decoding={"max_tokens": 30})
    found = say("plan", "job.yaml", "--sample-generations", "40", "--json").json
    shares = {row["max_tokens"]: row["cut_share"] for row in found["budgets"]}
    assert shares[30] == 0.5
    assert shares[60] == 0
    row = next(row for row in found["budgets"] if row["max_tokens"] == 30)
    assert row["low"] < 0.5 < row["high"]
    assert row["output_tokens"] == 29.5
    assert found["generated"]["by_status"] == {"valid": 40}


def test_a_given_rate_and_price_become_hours_and_cost(folder: Path, say: Say) -> None:
    put_job(folder, cluster={"gpus_per_engine": 2})
    found = say("plan", "job.yaml", "--rate", "0.5", "--price", "3", "--json").json
    cost = found["cost"]
    assert cost["engine_hours"] * 3600 == 60
    assert cost["gpu_hours"] == 2 * cost["engine_hours"]
    assert cost["total"] == 3 * cost["gpu_hours"]
    assert cost["rate_from"] == "given"


def test_a_price_without_gpus_is_of_an_engine_hour_and_that_is_said(folder: Path, say: Say) -> None:
    options = ("plan", "job.yaml", "--rate", "0.001", "--price", "3")
    cost = say(*options, "--json").json["cost"]
    assert cost["gpu_hours"] == 0
    assert cost["total"] == 3 * cost["engine_hours"] > 0
    assert "; 25.00 for 8.33 engine-hours, which take no GPU, at 3" in say(*options).out
    put_job(folder, cluster={"gpus_per_engine": 1})
    assert "; 25.00 for 8.33 GPU-hours at 3" in say(*options).out


@pytest.mark.parametrize("option", ["--rate=0", "--price=-1"])
def test_a_rate_or_price_that_means_nothing_is_a_usage_error(option: str, folder: Path, say: Say) -> None:
    answered = say("plan", "job.yaml", option)
    assert answered.code == 2
    assert answered.err.count("\n") == 1


def test_a_model_divided_among_gpus_costs_all_of_them(folder: Path, say: Say) -> None:
    put_job(folder, cluster={"gpus_per_engine": 1}, model={"engine": {"tensor_parallel_size": 4}})
    cost = say("plan", "job.yaml", "--rate", "0.5", "--price", "3", "--json").json["cost"]
    assert cost["gpu_hours"] == 4 * cost["engine_hours"]


def test_documents_without_a_text_and_too_long_ones_are_counted_apart(folder: Path, say: Say) -> None:
    put_lines(folder / "in" / "a.jsonl", [{"document_id": "e", "text": ""}, {"document_id": "l", "text": "x" * 9000}])
    put_job(folder, model={"engine": {"max_model_len": 4000}})
    found = say("plan", "job.yaml", "--json").json
    assert found["unextracted"] == 1
    assert found["too_long"] == 1
    assert found["prompt"]["most"] == found["fixed_tokens"]


def test_of_a_document_that_is_cut_what_stays_is_counted(folder: Path, say: Say) -> None:
    put_lines(folder / "in" / "a.jsonl", [{"document_id": "l", "text": "x" * 9000}])
    put_job(folder, model={"engine": {"max_model_len": 4000}}, truncation={"long_documents": "head"})
    found = say("plan", "job.yaml", "--json").json
    assert found["too_long"] == 0
    assert found["prompt"]["most"] == found["prompt_tokens"] == 4000 - found["max_tokens"]


@pytest.mark.parametrize("command", ["plan", "preview", "trace"])
def test_what_a_run_refuses_of_its_input_is_refused_before_it(command: str, folder: Path, say: Say) -> None:
    place, more = folder / "mixed", ["--document", "p0"] if command == "trace" else []
    place.mkdir()
    rows = [{"document_id": "p0", "text": "note 0 here", "source": "s", "title": "t"}]
    pq.write_table(pa.Table.from_pylist(rows), place / "a.parquet")
    (place / "README.md").write_text("what lies here")
    put_job(folder, input={"uri": str(place), "columns": ["source"]})
    stray = say(command, "job.yaml", *more)
    assert stray.code == 2
    assert "README.md, which would be one document of text" in stray.err
    assert f"input.uri: {place}/**/*.parquet" in stray.err
    put_job(folder, input={"uri": f"{place}/**/*.parquet", "columns": ["source"]})
    assert say(command, "job.yaml", *more).code == 0
    put_job(folder, input={"uri": f"{place}/**/*.parquet", "columns": ["title"]})
    doubled = say(command, "job.yaml", *more)
    assert doubled.code == 2
    assert "'title' names a field of Note as well as an input column; rename one of them" in doubled.err


def test_objects_of_several_formats_are_counted_by_format(folder: Path, say: Say) -> None:
    assert "jsonl" not in say("plan", "job.yaml").out
    pq.write_table(pa.table({"document_id": ["p"], "text": ["note here"]}), folder / "in" / "b.parquet")
    assert "31 documents in 2 objects: 1 jsonl, 1 parquet" in say("plan", "job.yaml").out


@pytest.mark.parametrize("option", ["--rate", "--price"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_a_rate_or_price_that_is_no_amount_is_refused(option: str, value: str, folder: Path, say: Say) -> None:
    shown = say("plan", "job.yaml", option, value)
    assert shown.code == 2
    assert option in shown.err


def test_a_sample_reads_what_the_run_would_where_long_documents_are_cut(folder: Path, say: Say) -> None:
    """Fails when the sample's larger budget leaves no room for the document."""
    fixed = say("plan", "job.yaml", "--json").json["fixed_tokens"]
    engine = {"answers": "tests.integration.scripted:answer", "max_model_len": fixed + 160}
    put_job(folder, truncation={"long_documents": "head"}, model={"engine": engine}, decoding={"max_tokens": 100})
    found = say("plan", "job.yaml", "--sample-generations", "10", "--json").json
    assert found["generated"]["by_status"] == {"valid": 10}
    assert max(row["max_tokens"] for row in found["budgets"]) == 100


def test_a_date_in_an_example_is_a_text_and_one_that_is_none_is_an_error(folder: Path, say: Say) -> None:
    path = put_job(folder, prompt={"examples": [{"text": "t", "record": {"title": "DAY", "number": 1}}]})
    path.write_text(path.read_text().replace("DAY", "2024-03-05"))
    assert say("plan", "job.yaml").code == 0
    path.write_text(path.read_text().replace("2024-03-05", "2024-31-12"))
    answered = say("plan", "job.yaml")
    assert answered.code == 2
    assert answered.err.count("\n") == 1
    assert "not YAML" in answered.err
