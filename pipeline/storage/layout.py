"""The names of a run's objects: the one place that forms and parses them.

Names are made of shard ids, fingerprints and submission ids only, never of anything that stands in a document.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["RunLayout", "half_id_of", "shard_id_of"]

_SHARD_ID = re.compile(r"[0-9a-f]{16}")
_FINGERPRINT = re.compile(r"[0-9a-f]{8,64}")
_SUBMISSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PART = re.compile(r"(?:.*/)?parts/part-([0-9a-f]{16})\.parquet")
_HALF = re.compile(r"(?:.*/)?_run/halves/part-([0-9a-f]{16})\.parquet")


@dataclass(frozen=True, slots=True)
class RunLayout:
    """Every object under one output prefix.  All values are URIs.

    Raises:
        ValueError: from the methods, for an id that is not of its kind.
    """

    prefix: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", self.prefix.rstrip("/") + "/")

    @property
    def spec(self) -> str:
        return f"{self.prefix}_run/spec.json"

    @property
    def plan(self) -> str:
        return f"{self.prefix}_run/plan.json"

    @property
    def probe(self) -> str:
        return f"{self.prefix}_run/probe"

    @property
    def submissions_prefix(self) -> str:
        return f"{self.prefix}_run/submissions/"

    @property
    def halves_prefix(self) -> str:
        return f"{self.prefix}_run/halves/"

    @property
    def parts_prefix(self) -> str:
        return f"{self.prefix}parts/"

    @property
    def report_json(self) -> str:
        return f"{self.prefix}report/report.json"

    @property
    def report_html(self) -> str:
        return f"{self.prefix}report/report.html"

    def guide(self, fingerprint: str) -> str:
        return f"{self.prefix}_run/guide-{_checked(fingerprint, _FINGERPRINT)}.bin"

    def submission(self, submission_id: str) -> str:
        return f"{self.submissions_prefix}{_checked(submission_id, _SUBMISSION_ID)}.json"

    def part(self, shard_id: str) -> str:
        return f"{self.parts_prefix}part-{_checked(shard_id, _SHARD_ID)}.parquet"

    def half(self, shard_id: str) -> str:
        """Half of a shard that is being bisected; its content ends in the shard's one part."""
        return f"{self.halves_prefix}part-{_checked(shard_id, _SHARD_ID)}.parquet"


def shard_id_of(uri: str) -> str | None:
    """The id of the shard whose part this is, or None where it is not the name of a part.

    Halves and leftovers are not parts.
    """
    return _id_in(uri, _PART)


def half_id_of(uri: str) -> str | None:
    """As `shard_id_of`, for the halves of shards that are being divided."""
    return _id_in(uri, _HALF)


def _id_in(uri: str, name: re.Pattern[str]) -> str | None:
    match = name.fullmatch(uri)
    return None if match is None else match.group(1)


def _checked(text: str, kind: re.Pattern[str]) -> str:
    if not kind.fullmatch(text):
        raise ValueError(f"{text!r} is not an id of the form {kind.pattern}")
    return text
