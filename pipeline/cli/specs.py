"""A job spec from a YAML file, with single keys overridden from the command line."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pydantic import ValidationError

from pipeline.core.errors import SpecError
from pipeline.core.sections import S3Spec
from pipeline.core.spec import JobSpec, parse_spec

__all__ = ["Endpoint", "Json", "Region", "Set", "SpecPath", "load_spec", "s3_settings", "spec_of"]

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="The job spec, a YAML file.", show_default=False)]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key, as `output.uri=s3://b/run/`. May be repeated."),
]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Endpoint = Annotated[str | None, typer.Option("--endpoint-url", help="Where S3 is, if not at AWS.")]
Region = Annotated[str | None, typer.Option("--region", help="Region of the bucket.")]


def load_spec(path: Path, overrides: Sequence[str] | None = None) -> JobSpec:
    """Reads and checks a job spec.

    Raises:
        SpecError: the file cannot be read, is no YAML, or holds keys or values that are wrong; or the environment names
            an S3 endpoint that is none.
    """
    try:
        raw: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)  # noqa: S506
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a date that is none, bytes that are no UTF-8
        problem = getattr(error, "problem", None) or error
        raise SpecError(f"{path}: not YAML{_place(getattr(error, 'problem_mark', None), problem)}") from error
    job = spec_of(raw, overrides, source=str(path))
    if job.s3.endpoint_url is None:
        s3_settings(None, None)  # the environment's endpoint is refused here, in one line
    return job


class _UniqueKeys(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys, so that a section that stands twice would be lost without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(
                        problem=f"the key {key.value!r} stands here a second time", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return node


def _place(mark: yaml.Mark | None, problem: object) -> str:
    """Where the problem is, what it is, and what to do about the two that happen most."""
    if mark is None:
        return f": {problem}"
    found = "" if mark.buffer is None else mark.buffer[mark.pointer : mark.pointer + 1]
    hint = f"; if the {found!r} belongs to a text, put that in quotes" if found in _QUOTED else ""
    hint = "; indent with spaces" if found == "\t" else hint
    return f" at line {mark.line + 1}, column {mark.column + 1}: {problem}{hint}"


_QUOTED = tuple(":@`%*&!")
"""Characters that mean something to YAML where a text may well have them."""


def spec_of(raw: Any, overrides: Sequence[str] | None, *, source: str) -> JobSpec:
    """A job spec from what YAML or JSON held, overrides applied.

    Raises:
        SpecError: it holds keys or values that are wrong.
    """
    for override in overrides or ():
        if isinstance(raw, dict):
            _override(raw, override)
    return parse_spec(raw, source=source)


def _override(raw: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise SpecError(f"--set {override!r}: write KEY=VALUE, as decoding.max_tokens=512")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"--set {override!r}: the value is not YAML") from error
    *parents, last = key.split(".")
    section = raw
    for parent in parents:
        section = section.setdefault(parent, {})
        if not isinstance(section, dict):
            raise SpecError(f"--set {override!r}: {parent} holds no keys")
    section[last] = value


def s3_settings(endpoint_url: str | None, region: str | None) -> S3Spec:
    """For commands that start from a run's prefix, not from a spec.

    The endpoint of the environment is written out, since not every library that is told of S3 looks for it there.
    """
    variables = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    source = "--endpoint-url" if endpoint_url else next((name for name in variables if os.environ.get(name)), None)
    named = endpoint_url or (os.environ[source] if source is not None else None)
    try:
        return S3Spec(endpoint_url=named, region=region)
    except ValidationError as error:
        # The message alone: the value may hold credentials.
        raise SpecError(f"{source}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None
