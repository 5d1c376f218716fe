"""The job spec: the YAML a user writes, parsed once into a frozen `JobSpec`.

Unknown keys are refused; every default is written into the stored effective spec.  This module does no I/O.
"""

from __future__ import annotations

import re
from typing import Any, Self

from pydantic import ValidationError, field_validator, model_validator

from pipeline.core.errors import SpecError
from pipeline.core.globs import glob_matcher, glob_root, is_glob
from pipeline.core.places import absolute, placed
from pipeline.core.problems import problems
from pipeline.core.sections import (
    ClusterSpec,
    DecodingSpec,
    InputSpec,
    LimitsSpec,
    ModelSpec,
    OutputSpec,
    PromptSpec,
    RerunSpec,
    S3Spec,
    Section,
    TruncationSpec,
)

__all__ = ["JobSpec", "check_input_apart", "parse_spec"]


class JobSpec(Section):
    """One job, whole.  Frozen: what a run does follows from this and the code alone."""

    name: str
    """The job's name, for logs, reports and metrics."""
    input: InputSpec
    record: str
    """The record type as `package.module:ClassName`, importable from the job's folder."""
    prompt: PromptSpec = PromptSpec()
    model: ModelSpec
    decoding: DecodingSpec = DecodingSpec()
    truncation: TruncationSpec = TruncationSpec()
    limits: LimitsSpec = LimitsSpec()
    output: OutputSpec
    cluster: ClusterSpec = ClusterSpec()
    s3: S3Spec = S3Spec()
    rerun: RerunSpec | None = None
    """Written by `recordmill rerun`: the run is over documents of another one."""

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", value):
            raise ValueError(f"{value!r}: up to 100 letters, digits, '_', '.' and '-', a letter or digit first")
        return value

    @field_validator("record")
    @classmethod
    def _record(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
            raise ValueError(f"{value!r} is not `package.module:ClassName`")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        output = placed(self.output.uri)
        for uri in self.input.uris:
            if placed(uri).startswith(output):
                raise ValueError(f"output.uri {self.output.uri!r} contains the input {uri!r}")
            if is_glob(uri):
                glob_matcher(placed(uri))  # raises where it is no pattern
            if output.startswith(placed(glob_root(uri))):
                raise ValueError(f"output.uri {self.output.uri!r} lies inside the input {uri!r}")
        if self.rerun is not None and placed(self.rerun.of) == output:
            raise ValueError(f"output.uri {self.output.uri!r} is the run that is to be run again; choose another")
        if self.truncation.escalate and self.truncation.escalate[0] <= self.decoding.max_tokens:
            raise ValueError(
                f"truncation.escalate starts at {self.truncation.escalate[0]}, "
                f"which is not above decoding.max_tokens {self.decoding.max_tokens}"
            )
        if self.decoding.guide != "recordmill" and self.decoding.drafts:
            raise ValueError(f"decoding.drafts needs decoding.guide recordmill, not {self.decoding.guide}")
        if self.decoding.guide != "recordmill" and self.truncation.policy == "close":
            raise ValueError(
                f"truncation.policy close needs decoding.guide recordmill; with {self.decoding.guide} "
                "use reject or salvage"
            )
        return self

    def with_absolute_uris(self) -> Self:
        """The same job, whose local input and output are the same places in every process of a run."""
        uri = self.input.uri
        places = absolute(uri) if isinstance(uri, str) else tuple(map(absolute, uri))
        return self.model_copy(
            update={
                "input": self.input.model_copy(update={"uri": places}),
                "output": self.output.model_copy(update={"uri": absolute(self.output.uri)}),
            }
        )

    def effective(self) -> dict[str, Any]:
        """The whole spec with its defaults, as JSON values.  It holds no secret: none can be written into a spec."""
        return self.model_dump(mode="json")


def check_input_apart(spec: JobSpec) -> None:
    """A pattern of the input must not take what the run writes, as `receipts*` would that of `receipts-out/`.

    Not part of `parse_spec`, so that a run that began so can be read.

    Raises:
        SpecError: it does.
    """
    output = placed(spec.output.uri)
    for uri in spec.input.uris:
        if is_glob(uri) and glob_matcher(placed(uri))(f"{output}parts/part-0.parquet"):
            raise SpecError(f"output.uri {spec.output.uri!r} lies inside the input {uri!r}")


def parse_spec(raw: object, *, source: str) -> JobSpec:
    """A `JobSpec` from parsed YAML.

    Args:
        raw: what the YAML holds.
        source: the file's name, for the message.

    Raises:
        SpecError: one line that names every key that is wrong, and why.
    """
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else type(raw).__name__
        raise SpecError(f"{source}: a job spec is a mapping of keys, not {found}")
    try:
        return JobSpec.model_validate(raw)
    except ValidationError as error:
        raise SpecError(f"{source}: {problems(error, JobSpec)}") from error
