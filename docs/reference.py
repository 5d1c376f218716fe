"""Writes the pages of `docs/reference/` from the code: `python -m docs.reference`, or `make docs`.

Owns how they look.  What they say stands in the code: defaults, types and the docstrings beneath attributes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import enum
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, NaiveDatetime

from docs.markdown import attribute_docstrings, page, summary, table, type_in_words
from pipeline.core import errors
from pipeline.core.outcome import Cause, Status
from pipeline.core.spec import JobSpec
from pipeline.report.model import Report
from pipeline.run.metrics import METRICS
from pipeline.storage.arrow import AUDIT_FIELDS, record_schema

__all__ = ["main", "pages"]

FOLDER = Path(__file__).parent / "reference"

SPEC_HEAD = ("key", "type", "default", "meaning")

AUDIT_MEANINGS = {
    "_document_id": "The document's id; null where the input has none.",
    "_status": "What became of the document: see below.",
    "_cause": "Why it is not plainly `valid`; null for `valid`.",
    "_detail": "One line for people: which validator refused it, how much of a document was read, and the like.",
    "_raw": "The generation's text; kept for every status without a record.",
    "_prompt_tokens": "Tokens of the prompt; null where none was built.",
    "_output_tokens": "Tokens of the generation that was kept.",
    "_budget_tokens": "The most it could have taken.",
    "_slack_tokens": "Tokens left of the budget when it ended.",
    "_shaped_fields": "Paths of the fields that the budget shaped, as `items[].amount`.",
    "_spans": "Where each extractive value stands: characters `[start, end)` of the document's text; `copied` is the "
    "value as it was copied, where a validator changed it.",
    "_attempt": "The attempt that wrote the row: submission, shard and number.",
    "_engine": "What generated it, and in which version.",
}


def pages() -> dict[str, str]:
    """Every page's text by its file name."""
    return {
        "spec.md": _spec_page(),
        "report.md": _report_page(),
        "columns.md": _columns_page(),
        "errors.md": _errors_page(),
        "metrics.md": _metrics_page(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the pages; with `--check`, says which differ and exits with 1."""
    parser = argparse.ArgumentParser(prog="python -m docs.reference", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args(arguments).check
    made = pages()
    stale = [name for name, text in made.items() if not _is_current(FOLDER / name, text)]
    if is_check:
        for name in stale:
            sys.stderr.write(f"docs/reference/{name} differs from the code: make docs\n")
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(made[name], encoding="utf-8")
    return 0


def _is_current(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _spec_page() -> str:
    schema = JobSpec.model_json_schema()
    documented = attribute_docstrings(JobSpec)
    top: list[Sequence[str]] = []
    sections: list[str] = []
    for name, field in JobSpec.model_fields.items():
        section = _section_of(field.annotation)
        if section is None:
            top.append(
                (
                    f"`{name}`",
                    type_in_words(schema["properties"][name], schema),
                    _default(schema, name),
                    documented[name],
                )
            )
            continue
        top.append((f"[`{name}`](#{name})", "section", _default(schema, name), summary(section)))
        sections += [f"## {name}", summary(section), _section_table(schema, section)]
        for inner in _parts_of(section):
            sections += [f"### {inner.__name__}", summary(inner), _section_table(schema, inner)]
    intro = "A job spec is a YAML mapping. Unknown keys are refused; what is left out has the default shown here."
    return page("The job spec", intro, table(SPEC_HEAD, top), *sections)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, alone or beside None."""
    found = [
        kind for kind in (annotation, *get_args(annotation)) if inspect.isclass(kind) and issubclass(kind, BaseModel)
    ]
    return found[0] if found and get_origin(annotation) is not tuple else None


def _parts_of(section: type[BaseModel]) -> list[type[BaseModel]]:
    """Models that a section holds lists of."""
    kinds = (get_args(field.annotation)[0] for field in section.model_fields.values() if get_args(field.annotation))
    return [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel)]


def _section_table(schema: Mapping[str, Any], section: type[BaseModel]) -> str:
    return table(SPEC_HEAD, _rows(schema, schema["$defs"][section.__name__], attribute_docstrings(section)))


def _rows(
    schema: Mapping[str, Any], of: Mapping[str, Any], described: Mapping[str, str] | None = None
) -> Iterator[Sequence[str]]:
    for name in of["properties"]:
        meaning = (described or {}).get(name) or of["properties"][name].get("description", "")
        yield f"`{name}`", type_in_words(of["properties"][name], schema), _default(of, name), " ".join(meaning.split())


def _default(of: Mapping[str, Any], name: str) -> str:
    if name in of.get("required", ()):
        return "required"
    if "default" not in of["properties"][name]:
        return ""
    value = of["properties"][name]["default"]
    return "all defaults" if isinstance(value, dict) and value else f"`{json.dumps(value)}`"


def _report_page() -> str:
    schema = Report.model_json_schema()
    head = ("key", "type", "meaning")
    parts = [
        "`report/report.json` under a run's prefix. It is derived from the parts' footers, the plan and the "
        "submissions alone, and may be written anew at any time with `recordmill report`. `report_version` rises when "
        "a field changes its meaning or goes.",
        table(head, [(name, kind, meaning) for name, kind, _, meaning in _rows(schema, schema)]),
    ]
    for name, of in sorted(schema["$defs"].items()):
        if "properties" in of:
            rows = [(key, kind, meaning) for key, kind, _, meaning in _rows(schema, of)]
            parts += [f"## {name}", of.get("description", ""), table(head, rows)]
    return page("The report", *parts)


class _Colour(enum.StrEnum):
    RED = "red"


class _Inner(BaseModel):
    name: str


class _Sample(BaseModel):
    """A field of every kind; its columns are the table's right side."""

    text: str
    whole: int
    real: float
    truth: bool
    money: Annotated[Decimal, Field(max_digits=10, decimal_places=2)]
    exact: Decimal
    day: dt.date
    moment: dt.datetime
    wall: NaiveDatetime
    clock: dt.time
    span: dt.timedelta
    choice: _Colour
    word: Literal["a", "b"]
    many: list[int]
    inner: _Inner
    by_name: dict[str, float]
    either: int | str
    anything: Any


SAMPLE_TYPES = {
    "text": "`str`",
    "whole": "`int`",
    "real": "`float`",
    "truth": "`bool`",
    "money": "`Decimal` with `max_digits=10, decimal_places=2`",
    "exact": "`Decimal`",
    "day": "`date`",
    "moment": "`datetime`",
    "wall": "`NaiveDatetime`",
    "clock": "`time`",
    "span": "`timedelta`",
    "choice": "an enum of strings",
    "word": "`Literal` of strings",
    "many": "`list[int]`",
    "inner": "a model with one `str`",
    "by_name": "`dict[str, float]`",
    "either": "`int | str`",
    "anything": "`Any`",
}


def _columns_page() -> str:
    schema = record_schema(_Sample)
    types = [
        (SAMPLE_TYPES[name], f"`{schema.field(name).type}`" + (" holding JSON" if _is_json(schema.field(name)) else ""))
        for name in _Sample.model_fields
    ]
    audit = [
        (f"`{field.name}`", f"`{field.type}`", "yes" if field.nullable else "no", AUDIT_MEANINGS[field.name])
        for field in AUDIT_FIELDS
    ]
    return page(
        "The columns of a part",
        "A run's rows are the Parquet objects under `parts/`, one for each shard. Every part has the same columns and "
        "types, whatever it holds: the record's fields, then input columns that are passed through, then the audit "
        "columns. The fields are null unless the status is `valid` or `closed`.",
        "## Fields",
        "Each field of the record type is one column. A field that may be `None`, or that has a default, has the type "
        "of its value.",
        table(("in the model", "in Parquet"), types),
        "## Audit columns",
        table(("column", "type", "null", "meaning"), audit),
        "## Statuses",
        table(("status", "meaning"), _members(Status)),
        "## Causes",
        table(("cause", "meaning"), _members(Cause)),
    )


def _is_json(field: Any) -> bool:
    return (field.metadata or {}).get(b"recordmill.encoding") == b"json"


def _members(of: type[enum.StrEnum]) -> list[tuple[str, str]]:
    described = attribute_docstrings(of)
    return [(f"`{member.value}`", described.get(member.name, "")) for member in of]


def _errors_page() -> str:
    rows = []
    for name in errors.__all__:
        found: type[errors.RecordmillError] = getattr(errors, name)
        rows.append(
            (f"`{name}`", str(found.exit_code), "yes" if found.retryable else "no", summary(found), found.hint or "")
        )
    return page(
        "Errors and exit codes",
        "Everything this system raises on purpose is a `RecordmillError`. A document that cannot be extracted is an "
        "outcome, never an error.",
        table(
            ("exit code", "meaning"),
            [
                ("0", "Complete: every document has its outcome."),
                ("1", "It ran, but not every document has an outcome, or a limit stopped it."),
                ("2", "The job spec, a check before the start, or no engine could start with these settings. Mend it."),
                ("3", "The cluster or the storage gave out. Submit again to go on."),
                ("130", "It was interrupted. Submit again to go on."),
            ],
        ),
        table(("error", "exit code", "may pass", "meaning", "what to do"), rows),
    )


def _metrics_page() -> str:
    rows = [
        (
            f"`{metric.exported}`",
            metric.kind,
            ", ".join(f"`{tag}`" for tag in ("run", *metric.tags)),
            metric.description,
        )
        for metric in METRICS
    ]
    return page(
        "Metrics",
        "Ray serves them to Prometheus on every machine. `infra/prometheus.yml` finds the machines, and "
        "`infra/grafana/recordmill.json` is a dashboard. A histogram's name is followed by `_bucket`, `_count` or "
        "`_sum`; Ray makes `_sum` from the bins, so use quantiles.",
        table(("metric", "kind", "labels", "meaning"), rows),
    )


if __name__ == "__main__":
    sys.exit(main())
