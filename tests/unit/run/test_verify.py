"""`verify`: what is missing or doubled is counted and named, from the parts and the input alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.document import Document, Piece, Plan
from pipeline.core.spec import parse_spec
from pipeline.report.model import Report
from pipeline.report.write import build_report, write_report
from pipeline.run import shared_ids
from pipeline.run.fingerprint import Identity
from pipeline.run.plan import StoredPlan, make_shards, write_plan
from pipeline.run.preflight import input_objects
from pipeline.run.shared_ids import SharedId, id_hashes
from pipeline.run.submission import write_spec
from pipeline.run.verify import Verification, verify, verify_parts
from pipeline.storage.layout import RunLayout
from tests.unit.report.runs import FINGERPRINT, Run, effective_spec, plan_of, valid

IDS = [["a", "b"], ["b", "c"], ["d", "b"], ["a", "e"]]


def _verified(folder: Path, ids: list[list[str]], *, parts: int) -> Verification:
    """A run of a shard for each list of ids, of which the first `parts` stand."""
    run, plan = Run(RunLayout(f"{folder}/run[1]/")), plan_of(*map(len, ids))
    for position in range(parts):
        outcomes = [replace(valid(document_id), spans=()) for document_id in ids[position]]
        run.put_part(plan, position, outcomes)
    write_report(run.store, run.layout, build_report(run.store, run.layout, plan))

    def read(piece: Piece) -> Iterator[Document]:
        return (Document(document_id, "text") for document_id in ids[piece.row_group])

    return verify_parts(run.store, run.layout, StoredPlan(plan, Identity({})), read, document_bytes=100)


def test_ids_in_several_shards_are_counted_and_named_and_are_no_problem(tmp_path: Path) -> None:
    found = _verified(tmp_path, IDS, parts=4)
    assert found.is_sound, found.problems
    assert found.shared_ids.count == 2
    shard_ids = [shard.shard_id for shard in plan_of(2, 2, 2, 2).shards]
    assert sorted(found.shared_ids.examples, key=lambda example: example.document_id) == [
        SharedId("a", (shard_ids[0], shard_ids[3])),
        SharedId("b", (shard_ids[0], shard_ids[1], shard_ids[2])),
    ]


def _verified_after(change: Callable[[Run, Plan], None], folder: Path) -> Verification:
    """A sound run of two shards, verified after something was done to it."""
    run, plan = Run(RunLayout(f"{folder}/run/")), plan_of(2, 2)
    for position, ids in enumerate(IDS[:2]):
        run.put_part(plan, position, [replace(valid(document_id), spans=()) for document_id in ids])
    write_report(run.store, run.layout, build_report(run.store, run.layout, plan))
    change(run, plan)

    def read(piece: Piece) -> Iterator[Document]:
        return (Document(document_id, "text") for document_id in IDS[piece.row_group])

    return verify_parts(run.store, run.layout, StoredPlan(plan, Identity({})), read, document_bytes=100)


def _add_foreign(run: Run, plan: Plan) -> None:
    run.store.put(run.layout.part("0" * 16), b"of a run before")


def _swap_parts(run: Run, plan: Plan) -> None:
    first, second = (run.layout.part(shard.shard_id) for shard in plan.shards)
    data = run.store.get(first)
    run.store.put(first, run.store.get(second))
    run.store.put(second, data)


def _alter_the_report(run: Run, plan: Plan) -> None:
    said = Report.model_validate_json(run.store.get(run.layout.report_json))
    tokens = said.tokens.model_copy(update={"output_tokens": said.tokens.output_tokens + 1})
    altered = said.model_copy(update={"tokens": tokens})
    run.store.put(run.layout.report_json, altered.model_dump_json().encode())


def _lose_the_report(run: Run, plan: Plan) -> None:
    Path(run.layout.report_json).unlink()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_add_foreign, f"{'0' * 16} under .* belongs to no planned shard"),
        (_swap_parts, "says that it is shard"),
        (_alter_the_report, "does not say what the parts say"),
        (_lose_the_report, "there is no .*report.json"),
    ],
)
def test_what_does_not_hold_is_named(change: Callable[[Run, Plan], None], said: str, tmp_path: Path) -> None:
    found = _verified_after(change, tmp_path)
    assert not found.is_sound
    assert any(re.search(said, problem) for problem in found.wrong), found.wrong


def test_missing_shards_are_told_from_what_is_wrong(tmp_path: Path) -> None:
    found = _verified(tmp_path, IDS, parts=1)
    assert not found.is_sound
    assert len(found.missing) == 3
    assert found.wrong == ()
    assert found.problems == found.missing
    assert found.shared_ids.count == 0


@given(st.lists(st.lists(st.sampled_from([*"abcdefghij", None, "unreadable:s3://b/x#0:1"]), max_size=12), max_size=9))
def test_the_count_is_that_of_whole_sets(ids: list[list[str | None]]) -> None:
    shards = {str(number): names for number, names in enumerate(ids)}
    found = shared_ids.shared_ids({name: id_hashes(names) for name, names in shards.items()}, shards.__getitem__)
    places = Counter(name for names in ids for name in set(names) if name is not None and ":" not in name)
    expected = {name for name, number in places.items() if number > 1}
    assert found.count == len(expected)
    assert len(found.examples) == min(5, len(expected))
    assert {example.document_id for example in found.examples} <= expected
    for example in found.examples:
        assert [name for name, names in shards.items() if example.document_id in names][:5] == list(example.shard_ids)


def test_two_ids_of_one_hash_are_not_one_shared_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_ids, "_digest", lambda document_id: document_id[:1].encode() * 8)
    shards: dict[str, Any] = {"1": ["ax", "b"], "2": ["ay", "b"]}
    found = shared_ids.shared_ids({name: id_hashes(names) for name, names in shards.items()}, shards.__getitem__)
    assert found.count == 1
    assert found.examples == (SharedId("b", ("1", "2")),)


def test_an_id_twice_within_one_shard_is_not_shared(tmp_path: Path) -> None:
    assert _verified(tmp_path, [["a", "a"], ["b"]], parts=2).shared_ids.count == 0


@pytest.mark.parametrize("is_rerun", [True, False])
def test_the_spans_of_equal_ids_are_looked_at_in_a_rerun(tmp_path: Path, is_rerun: bool) -> None:
    """Elsewhere the second one is a double, which nothing is extracted from."""
    (tmp_path / "in").mkdir()
    line = json.dumps({"document_id": "a", "text": "ACME owes 9.00"})
    (tmp_path / "in" / "a.jsonl").write_text(f"{line}\n{line}\n")
    raw = effective_spec() | {"input": {"uri": f"{tmp_path}/in/"}, "output": {"uri": f"{tmp_path}/run/"}}
    rerun = {"of": f"{tmp_path}/old/", "status": ["closed"]} if is_rerun else None
    spec = parse_spec(raw | {"rerun": rerun}, source="test")
    run = Run(RunLayout(spec.output.uri))
    objects = input_objects(run.store, spec)
    plan = Plan(FINGERPRINT, objects, make_shards(objects, 2))
    write_spec(run.store, run.layout, spec, attempt="a")
    write_plan(run.store, run.layout, StoredPlan(plan, Identity({})), attempt="a")
    run.put_part(plan, 0, [valid("a"), valid("a", vendor="OTHER")])
    found = verify(spec.output.uri, spec.s3)
    assert any("vendor is not what stands" in problem for problem in found.problems) == is_rerun
