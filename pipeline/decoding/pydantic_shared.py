"""Types that several fields share: under whose configuration pydantic-core reads their strings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

__all__ = ["is_read_otherwise", "text_settings"]

_LIMITS = frozenset({"str_min_length", "str_max_length", "val_json_bytes"})
_CHANGES = frozenset({"str_strip_whitespace", "str_to_lower", "str_to_upper"})
"""Settings that refuse nothing by themselves, but change what a bound or a pattern is held against."""
_BOUNDS = frozenset({"min_length", "max_length", "pattern"})


def _parts(core: Any, shared: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A core schema, all that stands in it, and what it refers to."""
    waiting: list[Any] = [core]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if not isinstance(each, Mapping | list | tuple) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Mapping):
            yield each
            waiting.extend(each.values())
            if each.get("type") == "definition-ref":
                waiting.append(shared.get(each["schema_ref"]))
        else:
            waiting.extend(each)


def text_settings(core: Any) -> frozenset[str]:
    """The settings of strings and bytes that any configuration in a core schema has."""
    found = (part["config"] for part in _parts(core, {}) if isinstance(part.get("config"), Mapping))
    return frozenset(key for config in found for key in _LIMITS | _CHANGES if config.get(key))


def is_read_otherwise(
    ref: str, shared: Mapping[str, Any], *, around: Mapping[str, Any], anywhere: Collection[str]
) -> bool:
    """Whether a model around a shared type may have its strings read in another way than they are by themselves.

    Args:
        ref: what the type is named by.
        shared: core schemas by such names.
        around: the configuration of the class that the type stands in.
        anywhere: the settings of all configurations at hand: one without a class of its own may be read by any of them.
    """
    core = shared[ref]
    if hasattr(core.get("cls"), "model_config") or hasattr(core.get("cls"), "__pydantic_config__"):
        return False
    if core["type"] in ("dataclass", "typed-dict"):
        own = core.get("config", {})  # of the class in which it was first met
        anywhere = [key for key in _LIMITS | _CHANGES if around.get(key) and own.get(key) != around[key]]
    if not anywhere:
        return False
    texts = [part for part in _parts(core, shared) if part.get("type") in ("str", "bytes")]
    is_bounded = any(not _BOUNDS.isdisjoint(part) for part in texts)
    return bool(texts) and not (_LIMITS | _CHANGES if is_bounded else _LIMITS).isdisjoint(anywhere)
