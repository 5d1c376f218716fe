"""The report as one HTML page that asks for nothing from anywhere: no script, no font, no image, no request.

Documents are hostile: everything is escaped, control characters are made visible, and the page forbids itself scripts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from pipeline.core.outcome import Status
from pipeline.report import charts, text, time_text
from pipeline.report.marked import segments
from pipeline.report.model import Report, ShardCounts
from pipeline.report.verdict import not_scored, verdict

__all__ = ["page_environment", "render_html"]

SHARDS_LISTED = 300
"""Shards in the page's whole table; report.json holds every one."""
LINES_LISTED = 50
"""Shards without a part, things that do not add up, and unreadable input objects on the page, of each."""


def render_html(report: Report) -> str:
    """The page, whole."""
    return page_environment().get_template("page.html.j2").render(_context(report))


@cache
def page_environment() -> Environment:
    """Where all our pages come from: everything escaped, nothing undefined, numbers and text written one way."""
    environment = Environment(
        loader=PackageLoader("pipeline.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        compact=text.compact,
        count=text.count,
        duration=text.duration,
        moment=text.moment,
        percent=text.percent,
        visible=text.spelled,
    )
    environment.globals.update(plural=text.plural)
    return environment


def _context(report: Report) -> dict[str, Any]:
    budget = _budget(report.spec)
    return {
        "report": report,
        "verdict": verdict(report),
        "statuses": tuple(Status),
        "status_meanings": text.STATUS_MEANINGS,
        "cause_meanings": text.CAUSE_MEANINGS,
        "causes": [entry for entry in report.counts if entry.cause is not None and entry.documents],
        "shard_chart": charts.shard_chart(report),
        "output_chart": charts.histogram(report.output_tokens, "output tokens", "tokens", budget),
        "slack_chart": charts.histogram(report.slack_tokens, "tokens of slack", "slack"),
        "rate_chart": charts.rate_chart(report, tokens=False),
        "token_rate_chart": charts.rate_chart(report, tokens=True),
        "worst": [report.shard(shard_id) for shard_id in report.worst_shards],
        "listed": _listed(report),
        "lines_listed": LINES_LISTED,
        "facts": _facts(report),
        "phases": [
            (phase, time_text.milliseconds(phase), time_text.measured_of(phase.documents, report))
            for phase in report.phases
        ],
        "left_line": time_text.left_line(report),
        "engines_line": time_text.engines_line(report),
        "overlap": time_text.OVERLAP,
        "not_scored": list(not_scored(report.known_answers)),
        "shown": [
            (item, list(segments(item.text, item.spans)), json.dumps(item.record, ensure_ascii=False, indent=2))
            for item in report.shown
        ],
        "spec_yaml": yaml.safe_dump(report.spec, sort_keys=False, allow_unicode=True, width=100) if report.spec else "",
        "submissions": [(entry.submission_id, _flat(entry.entries)) for entry in report.submissions],
    }


def _listed(report: Report) -> tuple[ShardCounts, ...]:
    return report.shards[:SHARDS_LISTED]


def _at(spec: Mapping[str, Any], *path: str) -> Any:
    """The value at a path of the effective spec, or None: a report of a later version must still render."""
    value: Any = spec
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _budget(spec: Mapping[str, Any]) -> int | None:
    budget = _at(spec, "decoding", "max_tokens")
    return budget if isinstance(budget, int) else None


def _facts(report: Report) -> list[tuple[str, str]]:
    """What the run was, in a few words: label and value, those known."""
    model, revision = _at(report.spec, "model", "name"), _at(report.spec, "model", "revision")
    guide, policy = _at(report.spec, "decoding", "guide"), _at(report.spec, "truncation", "policy")
    facts = [
        ("Record", _at(report.spec, "record")),
        ("Model", f"{model} @ {revision}" if revision else model),
        ("Guide", f"{guide}, policy {policy}" if policy else guide),
        ("Output", report.output_uri),
        ("Rerun of", _at(report.spec, "rerun", "of")),
        ("Fingerprint", report.fingerprint),
        ("Written", text.moment(report.generated_at)),
    ]
    return [(label, str(value)) for label, value in facts if value]


def _flat(entries: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested entries as dotted names and written values."""
    rows: list[tuple[str, str]] = []
    for key, value in entries.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return rows
