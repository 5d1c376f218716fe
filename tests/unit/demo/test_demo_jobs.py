"""Tests of the example jobs: they parse, and their prompts and examples fit their record types."""

import ast
import importlib
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from pipeline.core.spec import JobSpec, parse_spec
from pipeline.engine.byte_tokenizer import ByteTokenizer
from pipeline.engine.prompts import PromptBuilder

CHECKOUT = Path(__file__).resolve().parents[3]
JOBS = sorted((CHECKOUT / "jobs").glob("*.yaml"))


def _job(path: Path) -> tuple[JobSpec, type[BaseModel]]:
    spec = parse_spec(yaml.safe_load(path.read_text()), source=path.name)
    module, _, name = spec.record.partition(":")
    record = getattr(importlib.import_module(module), name)
    assert issubclass(record, BaseModel)
    return spec, record


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_the_examples_of_a_job_are_records(path: Path) -> None:
    spec, record = _job(path)
    for example in spec.prompt.examples:
        record.model_validate(example.record)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_the_prompt_of_a_job_ends_with_the_document(path: Path) -> None:
    spec, record = _job(path)
    assert spec.prompt.template is not None
    template = (CHECKOUT / spec.prompt.template).read_text()
    tokenizer = ByteTokenizer()
    built = PromptBuilder(tokenizer, spec.prompt, template, record.model_json_schema()).build("THE DOCUMENT")
    text = tokenizer.decode(built.ids)
    assert text.index("THE DOCUMENT") > 0.8 * len(text)
    for example in spec.prompt.examples:
        assert example.text in text
    for name in record.model_fields:
        assert name in text


@pytest.mark.parametrize("path", sorted((CHECKOUT / "schemas").glob("*.py")), ids=lambda path: path.stem)
def test_a_record_type_imports_nothing_of_ours_but_the_mark_of_extractive_fields(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        ours = [name for name in names if name.split(".")[0] in ("pipeline", "demo", "tests")]
        assert set(ours) <= {"pipeline.Span"}


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_every_field_says_what_it_is(path: Path) -> None:
    _, record = _job(path)
    assert [name for name, field in record.model_fields.items() if not field.description] == []
