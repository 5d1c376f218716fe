"""Owns what makes two submissions the same run: the identity of a job, its digest, and how two identities differ."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.core.spec import JobSpec

__all__ = [
    "REDACTED",
    "Identity",
    "differences",
    "fingerprint_of",
    "hidden_settings",
    "identity_of",
    "schema_digest",
    "without_secrets",
]

REDACTED = "redacted"
"""What stands in a stored spec for the value of a secret."""
_SECRET = re.compile(r"(hf|api|auth|access)_?(token|key)|secret|password|credential", re.IGNORECASE)

OPERATIONAL_ENGINE_KEYS = frozenset(
    {
        "cpu_offload_gb",
        "data_parallel_size",
        "disable_log_stats",
        "distributed_executor_backend",
        "enable_prefix_caching",
        "enforce_eager",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "max_num_batched_tokens",
        "max_num_seqs",
        "pipeline_parallel_size",
        "prefill_context_parallel_size",
        "swap_space",
        "tensor_parallel_size",
    }
)
"""Engine settings that say how a record is computed, not which one: they may change between submissions."""

_LONG_TEXT = 80
_NAMED_AT_MOST = 5


@dataclass(frozen=True, slots=True)
class Identity:
    """What a record follows from, input apart: dotted names to JSON scalars.  Long texts are held as digests."""

    fields: Mapping[str, Any]


def identity_of(
    spec: JobSpec, *, schema: Mapping[str, Any], template: str | None, prompt: str, guide: str | None
) -> Identity:
    """The identity of a job.

    Args:
        spec: the job.
        schema: the record model's JSON Schema.
        template: the prompt template's text, if the job names one.
        prompt: fingerprint of everything in a prompt but the document.
        guide: the guide's fingerprint, which follows from the schema and the tokenizer; None without one.
    """
    effective = spec.effective()
    engine = {
        key: value
        for key, value in without_secrets(effective["model"]["engine"]).items()
        if key not in OPERATIONAL_ENGINE_KEYS and value != REDACTED
    }
    chosen: dict[str, Any] = {
        "input": {key: effective["input"][key] for key in ("format", "id", "text", "columns", "shard_rows")},
        "prompt": {
            "system": spec.prompt.system,
            "examples": effective["prompt"]["examples"],
            "template": template,
            "rendered": prompt,
        },
        "model": {"name": spec.model.name, "revision": spec.model.revision, "engine": engine},
        "decoding": {**effective["decoding"], "compiled": guide},
        "truncation": effective["truncation"],
        "record": {"class": spec.record, "schema": schema_digest(schema), "fields": _field_digests(schema)},
    }
    if spec.rerun is not None:
        chosen["rerun"] = effective["rerun"]
    return Identity(dict(_flat("", chosen)))


def schema_digest(schema: Mapping[str, Any]) -> str:
    """Tells the JSON Schemas of two record models apart."""
    return _digest(schema)


def fingerprint_of(identity: Identity, etags: Mapping[str, str]) -> str:
    """16 hexadecimal digits over an identity and the input objects, URI to ETag."""
    return _digest([sorted(identity.fields.items()), sorted(etags.items())])[:16]


def differences(
    stored: Identity, current: Identity, stored_etags: Mapping[str, str], current_etags: Mapping[str, str]
) -> tuple[str, ...]:
    """What differs between a stored run and a job, one phrase a difference; empty when they are the same run."""
    found = []
    for name in sorted(stored.fields.keys() | current.fields.keys()):
        before, now = _shown(stored.fields, name), _shown(current.fields, name)
        if before != now:
            found.append(f"{name}: {before} there, {now} here")
    replaced = [uri for uri, etag in stored_etags.items() if current_etags.get(uri, etag) != etag]
    found += _objects("replaced since", replaced)
    found += _objects("gone", stored_etags.keys() - current_etags.keys())
    found += _objects("new", current_etags.keys() - stored_etags.keys())
    return tuple(found)


def without_secrets(settings: Any) -> Any:
    """Engine settings without the values whose names say that they may be secrets, such as `hf_token`, at any depth."""
    if isinstance(settings, Mapping):
        return {
            key: REDACTED if _SECRET.search(str(key)) else without_secrets(value) for key, value in settings.items()
        }
    return [without_secrets(item) for item in settings] if isinstance(settings, list | tuple) else settings


def hidden_settings(settings: Any, place: str) -> list[str]:
    """The places, with dots, where `without_secrets` hid a value; `place` is that of the settings."""
    if settings == REDACTED:
        return [place]
    inside = (
        settings.items()
        if isinstance(settings, Mapping)
        else enumerate(settings)
        if isinstance(settings, list | tuple)
        else ()
    )
    return [found for key, value in inside for found in hidden_settings(value, f"{place}.{key}")]


def _objects(what: str, uris: Iterable[str]) -> list[str]:
    named = sorted(uris)
    if not named:
        return []
    more = f" and {len(named) - _NAMED_AT_MOST} more" if len(named) > _NAMED_AT_MOST else ""
    return [f"input objects {what}: {', '.join(named[:_NAMED_AT_MOST])}{more}"]


def _shown(fields: Mapping[str, Any], name: str) -> str:
    return json.dumps(fields[name], ensure_ascii=False) if name in fields else "nothing"


def _field_digests(schema: Mapping[str, Any]) -> dict[str, str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: _digest(value)[:8] for name, value in properties.items()}


def _flat(prefix: str, value: object) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), item)
    elif isinstance(value, (list, tuple)):
        if value:
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            yield prefix, list(value) if len(text) <= _LONG_TEXT else f"sha256:{_digest(value)[:16]}"
        else:
            yield prefix, []
    elif isinstance(value, str) and len(value) > _LONG_TEXT:
        yield prefix, f"sha256:{_digest(value)[:16]}"
    else:
        yield prefix, value


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
