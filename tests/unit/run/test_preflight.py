"""Everything wrong is found before an engine starts, in one line, with exit code 2."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.core.errors import (
    BudgetError,
    EngineStartError,
    FingerprintError,
    InputError,
    RecordImportError,
    RecordmillError,
    SchemaRefusedError,
    SpecError,
    StorageAccessError,
)
from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run import preflight
from pipeline.run.plan import write_plan
from pipeline.run.preflight import Prepared, prepare

MODULE = """
from typing import Annotated
from collections.abc import Callable
from pydantic import BaseModel, Field

class Note(BaseModel):
    title: Annotated[str, Field(max_length=40)]
    number: Annotated[int, Field(ge=0, le=9999)]

class Odd(BaseModel):
    value: Callable[[], int]

not_a_model = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job's folder with a record module of its own and one input object."""
    (tmp_path / f"records_{tmp_path.name}.py").write_text(MODULE)
    (tmp_path / f"broken_{tmp_path.name}.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    _put(tmp_path / "in" / "a.parquet", [{"document_id": "a", "text": "one"}, {"document_id": "b", "text": "two"}])
    return tmp_path


def _put(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def _spec(folder: Path, **changes: Any) -> JobSpec:
    raw: dict[str, Any] = {
        "name": "n",
        "input": {"uri": str(folder / "in")},
        "record": f"records_{folder.name}:Note",
        "model": {"name": "scripted"},
        "output": {"uri": str(folder / "out")},
    }
    for name, value in changes.items():
        raw[name] = {**raw.get(name, {}), **value} if isinstance(value, dict) else value
    return parse_spec(raw, source="test")


def _refused(folder: Path, kind: type[RecordmillError], words: str, **changes: Any) -> None:
    with pytest.raises(kind, match=words) as caught:
        prepare(_spec(folder, **changes), folder)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_a_machine_without_ray_is_told_so_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `pip install .`, which is for reading results."""
    monkeypatch.setattr(preflight, "find_spec", {"numpy": "found"}.get)
    _refused(folder, SpecError, "^Ray is not installed here")
    assert not (folder / "out").exists()


def _planned(folder: Path) -> Prepared:
    prepared = prepare(_spec(folder), folder)
    write_plan(prepared.store, prepared.layout, prepared.stored, attempt="a")
    return prepared


def test_a_good_job_is_planned_and_writes_nothing_but_a_probe(folder: Path) -> None:
    prepared = prepare(_spec(folder), folder)
    assert prepared.is_new
    assert prepared.is_conditional
    assert prepared.stored.plan.rows == 2
    assert prepared.job.guide is not None
    assert sorted(path.name for path in (folder / "out").rglob("*") if path.is_file()) == ["probe"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module:Note", "no module 'no_such_module'"),
        ("records_{}:Nothing", "no class 'Nothing'; it has Note, Odd"),
        ("records_{}:not_a_model", "no pydantic.BaseModel"),
        ("broken_{}:Note", "ZeroDivisionError"),
    ],
)
def test_a_record_that_cannot_be_imported(folder: Path, name: str, words: str) -> None:
    _refused(folder, RecordImportError, words, record=name.format(folder.name))


def test_a_schema_that_no_guide_can_be_made_for(folder: Path) -> None:
    _refused(folder, SchemaRefusedError, "value|Odd", record=f"records_{folder.name}:Odd")


def test_a_template_that_is_missing_or_lies_elsewhere(folder: Path) -> None:
    _refused(folder, SpecError, r"missing\.j2 cannot be read: No such file", prompt={"template": "missing.j2"})
    _refused(folder, SpecError, "outside", prompt={"template": "../x.j2"})


def test_an_example_that_the_model_refuses(folder: Path) -> None:
    example = {"text": "t", "record": {"title": "x", "number": -1}}
    _refused(folder, SpecError, r"prompt\.examples\.0\.record", prompt={"examples": [example]})


def test_a_model_folder_that_is_missing(folder: Path) -> None:
    _refused(folder, EngineStartError, "does not exist", model={"name": str(folder / "no-model")})


def test_a_budget_below_the_least_record_says_the_number_that_would_do(folder: Path) -> None:
    least = prepare(_spec(folder), folder).job.guide.least_tokens  # type: ignore[union-attr]
    _refused(folder, BudgetError, f"set it to {least} or more", decoding={"max_tokens": least - 1})
    prepare(_spec(folder, decoding={"max_tokens": least}), folder)
    _refused(folder, BudgetError, "max_model_len", model={"engine": {"max_model_len": 50}})
    engine = {"max_model_len": 1024}
    cut = {"long_documents": "head"}
    _refused(
        folder,
        BudgetError,
        "no room for a document",
        model={"engine": engine},
        truncation=cut,
        decoding={"max_tokens": 1024},
    )


def test_an_input_that_is_missing_empty_or_has_other_columns(folder: Path) -> None:
    _refused(folder, InputError, "names no objects", input={"uri": str(folder / "nowhere")})
    _refused(
        folder,
        InputError,
        rf"in: no object can be read; {folder}/in/a\.parquet has no column 'body'; its columns are document_id, text$",
        input={"text": "body"},
    )
    pq.write_table(
        pa.table({"document_id": pa.array([], pa.string()), "text": pa.array([], pa.string())}), folder / "e"
    )
    _refused(folder, InputError, "not one document", input={"uri": str(folder / "e")})


def test_one_object_that_cannot_be_read_stops_nothing_and_is_kept_by_name(folder: Path) -> None:
    (folder / "in" / "bad.parquet").write_bytes(b"not parquet")
    plan = prepare(_spec(folder), folder).stored.plan
    assert plan.rows == 2
    assert [item.uri.rpartition("/")[2] for item in plan.objects if item.unreadable] == ["bad.parquet"]


def test_a_row_group_with_too_much_text_is_named_before_the_run(folder: Path) -> None:
    """Fails when columns that nobody reads count, or when each of its documents would fail in the run."""
    [item] = prepare(_spec(folder), folder).stored.plan.objects
    table = pq.read_table(item.uri).append_column("image", pa.array([b"i" * 5000] * 2))
    pq.write_table(table, item.uri, compression="none")
    [size] = prepare(_spec(folder), folder).stored.plan.objects[0].row_group_bytes
    assert prepare(_spec(folder, limits={"row_group_bytes": size}), folder).stored.plan.rows == 2
    words = (
        rf"row group 0 of {item.uri} has {size} bytes of text, more than limits\.row_group_bytes {size - 1}; raise it"
    )
    _refused(folder, InputError, words, limits={"row_group_bytes": size - 1})


def test_an_output_that_may_not_be_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = os.makedirs

    def guarded(path: str, **options: bool) -> None:
        if path.startswith(str(folder / "out")):
            raise PermissionError(13, "Permission denied", path)
        make(path, **options)

    monkeypatch.setattr(os, "makedirs", guarded)  # not by the folder's mode: nothing is forbidden to root
    _refused(folder, StorageAccessError, "out")


def test_an_input_in_two_kinds_of_store(folder: Path) -> None:
    _refused(folder, SpecError, "one kind", input={"uri": [str(folder / "in"), "s3://b/in/"]})


def test_an_output_column_that_the_record_has_too(folder: Path) -> None:
    _put(folder / "in" / "a.parquet", [{"document_id": "a", "text": "one", "title": "t"}])
    _refused(folder, SpecError, "title", input={"columns": ["title"]})


def test_the_same_job_finds_its_plan_and_another_one_is_told_what_differs(folder: Path) -> None:
    first = _planned(folder)
    again = prepare(_spec(folder, cluster={"engines": 5}), folder)
    assert not again.is_new
    assert again.stored == first.stored
    _refused(folder, FingerprintError, r"prompt\.system", prompt={"system": "x"})
    _put(folder / "in" / "b.parquet", [{"document_id": "c", "text": "three"}])
    _refused(folder, FingerprintError, r"input objects new: .*b\.parquet")


def test_a_replaced_input_object_is_another_run(folder: Path) -> None:
    _planned(folder)
    _put(folder / "in" / "a.parquet", [{"document_id": "a", "text": "another"}])
    _refused(folder, FingerprintError, r"replaced since: .*a\.parquet")


@pytest.mark.parametrize("guide", ["none", "outlines", "xgrammar", "guidance"])
def test_other_guides_compile_nothing_here(folder: Path, guide: str) -> None:
    prepared = prepare(_spec(folder, decoding={"guide": guide}, truncation={"policy": "reject"}), folder)
    assert prepared.job.guide is None
