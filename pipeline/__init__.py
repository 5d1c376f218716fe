"""Batch extraction: documents in Parquet on S3, guided vLLM engines on Ray, one honest outcome for each document.

    from pipeline import parse_spec, run_job, read_records  # a whole job, and its rows
    from pipeline import VllmGuide, vllm_arguments          # its guides in a vLLM engine of your own
    from pipeline import compile_grammar, compile_guide     # the guide alone, for any other

Importing this loads neither Ray, vLLM nor torch; names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.core.errors import RecordmillError
    from pipeline.core.outcome import Cause, Outcome, Status
    from pipeline.core.span import Span
    from pipeline.core.spec import JobSpec, parse_spec
    from pipeline.decoding import (
        Cursor,
        Grammar,
        Guide,
        NoSpanError,
        Vocabulary,
        compile_grammar,
        compile_guide,
        lint_fields,
    )
    from pipeline.engine.own_vllm import VllmGuide, vllm_arguments
    from pipeline.run.job import RunResult
    from pipeline.run.job import run as run_job
    from pipeline.storage.reader import read_records

_HOMES = {
    # `run` alone would be the package of that name.
    "Cause": "pipeline.core.outcome",
    "Cursor": "pipeline.decoding",
    "Grammar": "pipeline.decoding",
    "Guide": "pipeline.decoding",
    "JobSpec": "pipeline.core.spec",
    "NoSpanError": "pipeline.decoding",
    "Outcome": "pipeline.core.outcome",
    "RecordmillError": "pipeline.core.errors",
    "RunResult": "pipeline.run.job",
    "Span": "pipeline.core.span",
    "Status": "pipeline.core.outcome",
    "VllmGuide": "pipeline.engine.own_vllm",
    "Vocabulary": "pipeline.decoding",
    "compile_grammar": "pipeline.decoding",
    "compile_guide": "pipeline.decoding",
    "lint_fields": "pipeline.decoding",
    "parse_spec": "pipeline.core.spec",
    "read_records": "pipeline.storage.reader",
    "run_job": "pipeline.run.job:run",
    "vllm_arguments": "pipeline.engine.own_vllm",
}

__all__ = [
    "Cause",
    "Cursor",
    "Grammar",
    "Guide",
    "JobSpec",
    "NoSpanError",
    "Outcome",
    "RecordmillError",
    "RunResult",
    "Span",
    "Status",
    "VllmGuide",
    "Vocabulary",
    "compile_grammar",
    "compile_guide",
    "lint_fields",
    "parse_spec",
    "read_records",
    "run_job",
    "vllm_arguments",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute or name)
