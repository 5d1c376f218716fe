"""How the report writes text and numbers for people: hostile text made visible, counts, shares and durations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from pipeline.core.outcome import Cause, Status

__all__ = [
    "CAUSE_MEANINGS",
    "STATUS_MEANINGS",
    "compact",
    "count",
    "duration",
    "json_values",
    "moment",
    "passed_columns",
    "percent",
    "plural",
    "record_text",
    "visible",
]

COLUMN_CHARS = 200
"""Characters of a passed-through value that are shown."""

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_KEPT = {0x09: 0x09, 0x0A: 0x0A, 0x0D: 0x20}
_UNSHOWN = [*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
_VISIBLE = _PICTURES | dict.fromkeys(_UNSHOWN, 0xFFFD) | _KEPT

_SPELLED = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code, shown in _VISIBLE.items()
    if code not in _KEPT and shown != code
} | {0x0D: ""}

STATUS_MEANINGS = {
    Status.VALID: "satisfies the model; no budget bent it",
    Status.CLOSED: "satisfies the model, but the token budget shaped it",
    Status.TRUNCATED: "ran out of tokens before it was complete",
    Status.INVALID: "complete, but refused by the model’s own checks",
    Status.FAILED: "no completion",
}

CAUSE_MEANINGS = {
    Cause.BUDGET: "more to say than max_tokens holds: raise it, or set truncation.escalate",
    Cause.RUNAWAY: "repeated itself and was ended: look at the prompt, bound the list or string",
    Cause.SALVAGED: "only the whole items of a cut-off generation were kept: raise max_tokens",
    Cause.NOT_JSON: "not JSON: turn a guide on",
    Cause.VALIDATOR: "a validator of the model said no: see the detail",
    Cause.NOT_STORABLE: "a value its column cannot hold: bound the field",
    Cause.NULL_TEXT: "the text is null",
    Cause.EMPTY: "the text is empty or white space",
    Cause.TOO_LONG: "longer than the context: raise max_model_len, or set truncation.long_documents",
    Cause.NULL_ID: "the document id is null",
    Cause.DUPLICATE_ID: "another document of the shard has this id; the first one was kept",
    Cause.UNREADABLE: "its row group cannot be read: restore the input object",
    Cause.NO_SPAN: "nothing in the document can fill a required extractive field",
    Cause.REFUSED: "the engine refused the request: see the detail",
    Cause.ENGINE_CRASH: "brought the engine down each time it was tried, alone at the end",
}
"""What each cause means and what to do, in one line."""


def visible(text: str) -> str:
    """Text that can neither steer a terminal nor hide or reorder itself, one character for each character.

    Control characters become their pictures (U+2400 and on); C1 controls, bidirectional overrides and lone surrogates
    become U+FFFD.  Line feeds and tabs stay, carriage returns become spaces.
    """
    return text.translate(_VISIBLE)


def spelled(text: str) -> str:
    """As `visible`, but each such character is spelled out, as `\\x1b` or `\\u202e`, which needs no special font."""
    return text.translate(_SPELLED)


def count(value: float) -> str:
    """`1234567` as `1,234,567`."""
    return f"{value:,.0f}"


def compact(value: float) -> str:
    """`1234567` as `1.23M`: three digits that mean something; two of what is less than a tenth, as `0.0042`."""
    for limit, scale, unit in ((9.995e8, 1e9, "B"), (9.995e5, 1e6, "M"), (9_999.5, 1e3, "k")):
        if value >= limit:
            scaled = value / scale
            written = f"{scaled:.{max(0, 3 - len(f'{scaled:.0f}'))}f}"
            return (written.rstrip("0").rstrip(".") if "." in written else written) + unit
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    if 0 < value < 0.0001:
        return "<0.0001"
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.{2 if value < 10 else 1}f}"


def percent(share: float | None) -> str:
    """A share as `96.1%`; only none is `0%` and only all is `100%`."""
    if share is None:
        return "–"
    if share in (0, 1):
        return f"{share:.0%}"
    if abs(share) < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.1%}"


def duration(seconds: float) -> str:
    """Seconds as `820 ms`, `3.2 s`, `4 min 5 s`, `2 h 10 min` or `3 d 4 h`."""
    if seconds < 0.9995:
        return "0 s" if not seconds else "<1 ms" if seconds < 0.0005 else f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, smaller_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    return f"{whole} s"


def moment(at: datetime) -> str:
    """A time to the second, with its zone, as `2026-11-29 19:30:05 UTC`."""
    return f"{at:%Y-%m-%d %H:%M:%S} {at.tzname() or ''}".rstrip()


def json_values(value: Any) -> Any:
    """The value in what JSON has: an enum's value, lists, base64 for bytes, strings for NaN and what else there is."""
    return json.loads(to_json(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings"))


def record_text(record: Mapping[str, Any]) -> str:
    """A record as JSON for people."""
    return json.dumps(json_values(dict(record)), ensure_ascii=False, indent=2)


def passed_columns(extra: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each input column that is passed through; a long value is cut."""
    found = []
    for name, value in extra.items():
        is_nested = value is None or isinstance(value, bool | list | dict)
        written = json.dumps(value, ensure_ascii=False, default=str) if is_nested else str(value)
        found.append((name, written if len(written) <= COLUMN_CHARS else f"{written[:COLUMN_CHARS]} …"))
    return found


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """`1 shard`, `2 shards`, `1,024 bodies`."""
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"
