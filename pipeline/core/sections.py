"""The sections of a job spec, each a frozen value with its defaults and what it refuses.

What stands under a field's declaration is its text in the reference.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_core import to_jsonable_python

from pipeline.core.outcome import Cause, Status
from pipeline.core.places import checked_uri
from pipeline.core.span import DateOrder

__all__ = [
    "ClusterSpec",
    "DecodingSpec",
    "Example",
    "GuideName",
    "InputSpec",
    "LimitsSpec",
    "ModelSpec",
    "OutputSpec",
    "PromptSpec",
    "RerunSpec",
    "S3Spec",
    "Section",
    "TruncationSpec",
]

GuideName = Literal["recordmill", "outlines", "xgrammar", "guidance", "none"]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Uri = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """Frozen; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, hide_input_in_errors=True)


class InputSpec(Section):
    """Where the documents are: Parquet (also JSONL, or a text file a document) under a prefix, glob, or list."""

    uri: Uri | tuple[Uri, ...]
    """A prefix, a glob, one object, or a list of these; `s3://` or a path."""
    format: Literal["auto", "parquet", "jsonl", "text"] = "auto"
    """`auto` goes by the names' endings."""
    id: str = "document_id"
    """Column of the stable document id."""
    text: str = "text"
    """Column of the document's text."""
    columns: tuple[str, ...] = ()
    """Columns passed through to the output by name; a `name=value` folder of an object's URI is a column of text."""
    shard_rows: PositiveInt = 1024
    """Rows a shard holds at most; a row group is divided where it holds more."""

    @property
    def uris(self) -> tuple[str, ...]:
        return (self.uri,) if isinstance(self.uri, str) else self.uri

    @field_validator("uri")
    @classmethod
    def _uris(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(value, str):
            return checked_uri(value)
        if not value:
            raise ValueError("an empty list; name at least one URI")
        if len({uri.startswith("s3://") for uri in value}) > 1:
            raise ValueError("objects on S3 and local files; use one kind")
        return tuple(checked_uri(uri) for uri in value)


class Example(Section):
    """One worked example of the prompt: a document's text and the record it should give."""

    text: str
    """A document's text."""
    record: dict[str, Any]
    """What it should give; it must satisfy the record type."""

    @field_validator("record")
    @classmethod
    def _record(cls, value: dict[str, Any]) -> dict[str, Any]:
        """YAML makes dates of what looks like one."""
        plain: dict[str, Any] = to_jsonable_python(value)
        return plain


class PromptSpec(Section):
    """How a document becomes a prompt.  Instructions and examples come first, so that the prefix cache serves them."""

    template: str | None = None
    """Path of a Jinja template, relative to the job's folder; the variables are `text`, `schema`, `examples`, of which
    texts can be printed and nothing else."""
    system: str | None = None
    """The system message, where the model's chat template has one."""
    examples: tuple[Example, ...] = ()
    """Worked examples, shown in each prompt."""


class ModelSpec(Section):
    """The model: a local folder or a hub name with a pinned revision."""

    name: str = Field(min_length=1)
    """A name on the hub, or a folder; `scripted` is an engine without a model, for rehearsals."""
    revision: str | None = None
    """The commit of the hub's repository: pin it."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Passed to vLLM's `AsyncEngineArgs` as it is."""

    @field_validator("engine")
    @classmethod
    def _reserved(cls, value: dict[str, Any]) -> dict[str, Any]:
        reserved = {"model", "revision", "scheduler_cls", "trust_remote_code", "tokenizer", "skip_tokenizer_init"}
        # With one, vLLM masks nothing before a model's reasoning has ended; prompts here ask for none.
        reserved |= {"reasoning_parser"}
        if taken := sorted(reserved & value.keys()):
            raise ValueError(f"{', '.join(taken)} cannot be set here")
        outputs = value.get("structured_outputs_config", {})
        if not isinstance(outputs, dict):
            raise ValueError("structured_outputs_config is a mapping")
        if taken := sorted({"backend", "reasoning_parser"} & outputs.keys()):
            hint = "; decoding.guide says which backend" if "backend" in taken else ""
            raise ValueError(f"structured_outputs_config: {', '.join(taken)} cannot be set here{hint}")
        if value.get("data_parallel_size") not in (None, 1):
            raise ValueError("data_parallel_size is 1 for every engine; set cluster.engines for more of them")
        return value


class DecodingSpec(Section):
    """How a completion is decoded."""

    guide: GuideName = "recordmill"
    """What holds the generation to the schema; only `recordmill` knows budgets and extractive fields."""
    max_tokens: PositiveInt = 512
    """The most tokens a record may take."""
    whitespace: Literal["compact"] = "compact"
    """None between the parts of a record."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """0 takes the likeliest token."""
    seed: int | None = None
    """Of the sampling, with a temperature above 0; each document has its own, made from this and its id."""
    recursion_depth: Annotated[int, Field(ge=1, le=16)] = 3
    """How often a recursive model is unrolled."""
    extractive: bool = True
    """Whether fields marked with `Span` are copied from the document; if not, they are decoded as plain ones."""
    date_order: DateOrder = "any"
    """How numeric dates of a document are read for extractive fields."""
    drafts: Annotated[int, Field(ge=0, le=32)] = 0
    """An experiment: so many tokens of text that the schema leaves no choice about are proposed to the model at once,
    and not one a step; 0 for none.  Greedy records stay the same, but for rounding.  On a GPU, vLLM then uses its older
    runner and prepares no step while the last one runs, which may cost more than drafts save."""


class TruncationSpec(Section):
    """What happens to a record that does not fit its tokens."""

    policy: Literal["close", "reject", "salvage"] = "close"
    """`close` ends each record in time; `reject` lets it be cut off; `salvage` keeps what is whole of a cut-off one."""
    escalate: tuple[PositiveInt, ...] = ()
    """Budgets tried next, in tokens, for a record that the budget shaped (with `close`)."""
    reserve: bool = True
    """Keep tokens back for the required fields that are still to come, so that the first one cannot eat the record."""
    long_documents: Literal["reject", "head", "tail"] = "reject"
    """Documents longer than the context: `failed(too_long)`, or cut to what fits, with a mark."""

    @model_validator(mode="after")
    def _ladder(self) -> Self:
        if self.escalate and self.policy != "close":
            raise ValueError(f"escalate goes with policy close, not {self.policy}")
        if list(self.escalate) != sorted(set(self.escalate)):
            raise ValueError("escalate must rise from rung to rung")
        return self


class LimitsSpec(Section):
    """Bounds on what a run may spend on trouble."""

    stop_if_valid_below: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of documents with a record under which the run stops early."""
    after_documents: PositiveInt = 500
    """Documents seen before `stop_if_valid_below` is looked at."""
    attempts_per_shard: PositiveInt = 3
    """Attempts at one shard before it is given up."""
    engine_start_s: PositiveFloat = 900.0
    """The most an engine may take to start."""
    engine_silence_s: PositiveFloat = 120.0
    """With requests in flight and no token from any of them for so long, the engine is taken for frozen."""
    shard_s: PositiveFloat = 7200.0
    """The most one attempt at one shard may take."""
    document_bytes: PositiveInt = 16 * 1024 * 1024
    """A document with more bytes of text is `failed(too_long)` before it is tokenised."""
    row_group_bytes: PositiveInt = 2 * 1024**3
    """A row group with more bytes of text, uncompressed, is refused by name before the run."""


class OutputSpec(Section):
    """Where the run writes."""

    uri: Uri
    """A prefix of the run's own, which does not hold the input."""
    shown_documents: Annotated[int, Field(ge=0, le=100)] = 4
    """Documents that the report shows with their extractive values marked; 0 keeps their text out of the report."""

    @field_validator("uri")
    @classmethod
    def _uri(cls, value: str) -> str:
        return checked_uri(value)


class ClusterSpec(Section):
    """What the run takes from the cluster."""

    engines: PositiveInt | Literal["auto"] = "auto"
    """`auto` takes as many as the cluster has room for, and more when it grows."""
    gpus_per_engine: Annotated[float, Field(ge=0)] = 1
    """On one machine; 0 runs on CPU, with vLLM's CPU build; a fraction shares a GPU.  A model divided among more
    (`model.engine.tensor_parallel_size`) takes one GPU for each of its ranks, on as few machines as there are."""
    cpus_per_engine: Annotated[float, Field(gt=0)] = 1
    """CPUs that Ray keeps for one engine; without a GPU, vLLM computes with as many threads."""
    concurrency: PositiveInt = 64
    """Documents that one engine works on at once, with an eighth more waiting in it; vLLM's `max_num_seqs` is the same,
    unless `model.engine` sets it, and at most its `max_num_batched_tokens` or 2,048."""
    wait_s: PositiveFloat = 600.0
    """How long to wait for the cluster to offer room for one engine."""

    @field_validator("gpus_per_engine")
    @classmethod
    def _whole_gpus(cls, value: float) -> float:
        """As Ray counts them."""
        if value > 1 and not value.is_integer():
            raise ValueError(f"{value:g} is not a number of whole GPUs; only below 1 an engine takes a part of one")
        return value


class S3Spec(Section):
    """Where S3 is, if not where AWS says.  Credentials never stand here."""

    endpoint_url: str | None = None
    """Of another S3 server than AWS."""
    region: str | None = None
    """Of the buckets."""

    @field_validator("endpoint_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if "@" in parts.netloc:
            raise ValueError("credentials do not belong in a URL; use the environment, a role or a mounted secret")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("an endpoint is http:// or https:// and a host, as http://127.0.0.1:9000")
        return value

    def with_given(self, given: S3Spec) -> S3Spec:
        """These settings, and in place of them those that `given` says."""
        return self.model_copy(update=given.model_dump(exclude_none=True))


class RerunSpec(Section):
    """The documents of another run, chosen by what became of them there; this run has those and no others."""

    of: Uri
    """That run's output prefix."""
    status: Annotated[tuple[Status, ...], Field(min_length=1)]
    """With these statuses."""
    cause: tuple[Cause, ...] = ()
    """Of these causes only; empty for any."""

    @field_validator("of")
    @classmethod
    def _of(cls, value: str) -> str:
        return checked_uri(value)
