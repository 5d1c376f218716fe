"""Owns everything that can be found wrong before an engine starts.  Needs no GPU, and starts no Ray.

What it makes on the way (record class, guide, prompt, input objects) is handed on, so nothing is done twice.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from pipeline.core.document import InputObject, Plan
from pipeline.core.errors import BudgetError, FingerprintError, InputError, SchemaRefusedError, SpecError
from pipeline.core.spec import JobSpec, check_input_apart
from pipeline.decoding import Guide, Vocabulary, compile_grammar, compile_guide
from pipeline.engine.prompts import PromptBuilder, load_tokenizer
from pipeline.run.fingerprint import Identity, differences, fingerprint_of, identity_of
from pipeline.run.parse import Refusal, parse_record
from pipeline.run.plan import StoredPlan, etags_of, load_plan, make_shards
from pipeline.run.record import load_record
from pipeline.run.rerun import select_rows
from pipeline.storage.arrow import record_schema
from pipeline.storage.documents import format_of, list_input, list_objects
from pipeline.storage.input_columns import check_columns, passed_columns
from pipeline.storage.layout import RunLayout
from pipeline.storage.parquet_input import too_large
from pipeline.storage.store import Store, open_store, probe

__all__ = ["Job", "Prepared", "input_objects", "prepare", "prepare_job"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """What a job spec means, input and output apart."""

    spec: JobSpec
    record: type[BaseModel]
    schema: Mapping[str, Any]
    """The record model's JSON Schema, as prompts print it."""
    template: str | None
    tokenizer: Any
    prompts: PromptBuilder
    guide: Guide | None
    identity: Identity


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that may run."""

    job: Job
    store: Store
    layout: RunLayout
    stored: StoredPlan
    """The plan that stands, or the one to be written."""
    is_new: bool
    """Whether no plan stood under the prefix."""
    columns: Mapping[str, pa.DataType]
    """Types of the input columns that are passed through."""
    is_conditional: bool
    """Whether the store honours a conditional put."""

    def with_plan(self, standing: StoredPlan) -> Prepared:
        """The same with the plan that stands now."""
        return replace(self, stored=standing, is_new=False)

    @property
    def schema(self) -> pa.Schema:
        """Of every part."""
        return record_schema(self.job.record, self.columns)


def prepare(spec: JobSpec, base: Path) -> Prepared:
    """Checks a job whole: itself first, then where it writes, then what it reads.

    Args:
        spec: the job.
        base: the job's folder; `record` and `prompt.template` are looked for there.

    Raises:
        RecordmillError: with exit code 2 and one line that says what is wrong, where, and what to do.
    """
    if find_spec("ray") is None:
        raise SpecError("Ray is not installed here, and a run needs it: README.md, Installing, says how")
    check_input_apart(spec)
    job = prepare_job(spec, base)
    store = open_store(spec.output.uri, spec.s3)
    layout = RunLayout(spec.output.uri)
    is_conditional = probe(store, layout.prefix)
    if not is_conditional:
        logger.warning("%s ignores conditional puts: two attempts at one shard may overwrite each other", layout.prefix)
    source = open_store(spec.input.uris[0], spec.s3)
    found = load_plan(store, layout)
    if found is None:
        stored = _new_plan(source, spec, job.identity)
    else:
        check_same_run(found, job.identity, _etags(source, spec, found), layout.prefix)
        stored = found
    columns = passed_columns(source, stored.plan.objects, spec.input)
    prepared = Prepared(job, store, layout, stored, found is None, columns, is_conditional)
    _ = prepared.schema
    return prepared


def prepare_job(spec: JobSpec, base: Path) -> Job:
    """The part of `prepare` that looks at neither input nor output.

    Raises:
        RecordImportError, SchemaRefusedError, BudgetError, SpecError, EngineStartError: what is wrong.
    """
    record = load_record(spec.record, base)
    schema = _json_schema(record)
    grammar = None
    if spec.decoding.guide == "recordmill":
        grammar = compile_grammar(
            record, recursion_depth=spec.decoding.recursion_depth, extractive=spec.decoding.extractive
        )
    template = _template(spec, base)
    _check_examples(spec, record)
    tokenizer = load_tokenizer(spec.model)
    prompts = PromptBuilder(tokenizer, spec.prompt, template, schema)
    vocabulary = Vocabulary.from_tokenizer(tokenizer) if grammar is not None else None
    guide = None
    if grammar is not None and vocabulary is not None:
        guide = compile_guide(grammar, vocabulary)
        _check_budget(spec, guide, prompts)
    identity = identity_of(
        spec,
        schema=schema,
        template=template,
        prompt=prompts.fingerprint,
        guide=None if guide is None else guide.fingerprint,
    )
    return Job(spec, record, schema, template, tokenizer, prompts, guide, identity)


def _json_schema(record: type[BaseModel]) -> dict[str, Any]:
    try:
        return record.model_json_schema()
    except PydanticUserError as error:
        raise SchemaRefusedError(f"{record.__name__}: {str(error).splitlines()[0]}") from error


def _template(spec: JobSpec, base: Path) -> str | None:
    if spec.prompt.template is None:
        return None
    path = (base / spec.prompt.template).resolve()
    if not path.is_relative_to(base.resolve()):
        raise SpecError(f"prompt.template {spec.prompt.template!r} lies outside of the job's folder {base}")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"prompt.template {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def _check_examples(spec: JobSpec, record: type[BaseModel]) -> None:
    for number, example in enumerate(spec.prompt.examples):
        parsed = parse_record(json.dumps(example.record, default=str), record)
        if isinstance(parsed, Refusal):
            raise SpecError(f"prompt.examples.{number}.record is no {record.__name__}: {parsed.detail}")


def _check_budget(spec: JobSpec, guide: Guide, prompts: PromptBuilder) -> None:
    least = guide.least_tokens
    if spec.decoding.max_tokens < least:
        raise BudgetError(
            f"decoding.max_tokens is {spec.decoding.max_tokens}; the least record of {spec.record} takes {least} "
            f"tokens: set it to {least} or more, and to {4 * least} or more for records that say something"
        )
    context = spec.model.engine.get("max_model_len")
    if not isinstance(context, int):
        return
    is_cut = spec.truncation.long_documents != "reject"
    if is_cut and context <= prompts.fixed_tokens + spec.decoding.max_tokens:
        raise BudgetError(
            f"model.engine.max_model_len is {context}; the prompt without a document takes {prompts.fixed_tokens} "
            f"tokens and decoding.max_tokens is {spec.decoding.max_tokens}: truncation.long_documents "
            f"{spec.truncation.long_documents} has no room for a document"
        )
    if context < prompts.fixed_tokens + least + 1:
        raise BudgetError(
            f"model.engine.max_model_len is {context}; the prompt without a document takes {prompts.fixed_tokens} "
            f"tokens and the least record {least}: set it to {prompts.fixed_tokens + least + 1} or more"
        )


def input_objects(source: Store, spec: JobSpec) -> tuple[InputObject, ...]:
    """The input's objects with their row groups, those that cannot be read among them.

    Raises:
        InputError: there are none, none can be read or has the columns asked for, or a row group is too large.
    """
    objects = list_input(source, spec.input)
    where = ", ".join(spec.input.uris)
    if not objects:
        raise InputError(f"input.uri {where}: there are no objects of format {spec.input.format}")
    readable = [item for item in objects if item.unreadable is None]
    if not readable:
        raise InputError(f"input.uri {where}: no object can be read; {objects[0].unreadable}")
    if not sum(item.rows for item in readable):
        raise InputError(f"input.uri {where}: {len(readable)} objects, and not one document in them")
    for item in objects:
        if item.unreadable is not None:
            logger.warning("an input object is left out: %s", item.unreadable)
    _check_row_groups(readable, spec)
    check_columns(source, tuple(readable), spec.input)
    return objects


def _check_row_groups(objects: Sequence[InputObject], spec: JobSpec) -> None:
    """What a reader would refuse is known from the footers: a run would fail each of its documents."""
    limits = spec.limits
    for item in objects:
        size, index = max(((size, index) for index, size in enumerate(item.row_group_bytes)), default=(0, 0))
        if size > limits.row_group_bytes and format_of(item.uri, spec.input) == "parquet":
            raise InputError(too_large(f"row group {index} of {item.uri}", size, limits))


def _new_plan(source: Store, spec: JobSpec, identity: Identity) -> StoredPlan:
    if spec.rerun is not None:
        objects, shards = select_rows(spec, spec.rerun, identity)
    else:
        objects = input_objects(source, spec)
        shards = make_shards(objects, spec.input.shard_rows)
    return StoredPlan(Plan(fingerprint_of(identity, etags_of(objects)), objects, shards), identity)


def _etags(source: Store, spec: JobSpec, stored: StoredPlan) -> dict[str, str]:
    """Of the input as it is now; what came to it since is nothing to a run over documents of another one."""
    listed = {item.uri: item.etag for item in list_objects(source, spec.input)}
    return listed if spec.rerun is None else {uri: listed[uri] for uri in stored.etags if uri in listed}


def check_same_run(stored: StoredPlan, identity: Identity, etags: Mapping[str, str], prefix: str) -> None:
    """Whether a job is the run whose plan stands under its prefix.

    Raises:
        FingerprintError: it is not; names every difference.
    """
    if fingerprint_of(identity, etags) == stored.plan.fingerprint:
        return
    found = differences(stored.identity, identity, stored.etags, etags)
    raise FingerprintError(
        f"{prefix} holds another run: " + "; ".join(found or ("its plan was made by another version",))
    )
