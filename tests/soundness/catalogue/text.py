"""Catalogue: strings by length and pattern, enumerations and literals."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Annotated, Literal

import annotated_types as at
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    Base64Bytes,
    Base64Str,
    Base64UrlStr,
    BeforeValidator,
    Field,
    SecretBytes,
    SecretStr,
    StringConstraints,
)

from tests.soundness.entry import Entry, entry

__all__ = ["ENTRIES"]


class Colour(enum.Enum):
    RED = "red"
    GREEN = 'gr"een'
    BLUE = "bl\\ue\n"
    WHITE = "weiß ☃ 🎨"


class Shade(enum.StrEnum):
    LIGHT = "light"
    DARK = "dark"


class Level(enum.IntEnum):
    LOW = 1
    MIDDLE = 20
    HIGH = -300


class Mixed(enum.Enum):
    NUMBER = 7
    TEXT = "seven"
    NONE = None
    RATIO = 0.5


def _text(**constraints: object) -> object:
    return Annotated[str, Field(**constraints)]  # type: ignore[arg-type]


def _is_palindrome(value: str) -> str:
    if value != value[::-1]:
        raise ValueError("not a palindrome")
    return value


PATTERNS: dict[str, str] = {
    "plain": r"^[a-z]+$",
    "top_level_alternatives": r"^a|b$",
    "grouped_alternatives": r"^(alpha|beta|gamma delta)$",
    "dot": r"^a.c$",
    "dot_star": r"^x.*y$",
    "no_anchors": r"[0-9]{3}-[0-9]{4}",
    "start_only": r"^AB",
    "end_only": r"\.pdf$",
    "digits_class": r"^\d{4}$",
    "word_class": r"^\w{1,6}$",
    "space_class": r"^\S+\s\S+$",
    "negated_class": r"^[^\x00-\x1f\"]{1,8}$",
    "quote_and_backslash": r'^["\\]{2}x$',
    "control_characters": r"^[\t\n]a$",
    "non_ascii": r"^[äöüß]{1,3}$",
    "astral": r"^[😀-😏]{1,2}$",
    "slash_and_dash": r"^[a-z/\-]+$",
    "lazy": r"^a+?b$",
    "non_capturing": r"^(?:ab|cd){2,3}$",
    "ignore_case": r"(?i)^total: [a-z]+$",
    "repeat_bounds": r"^[A-Z]{2}[0-9]{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?$",
    "empty_allowed": r"^(?:[0-9]+)?$",
    "unicode_property": r"^\p{Lu}\p{Ll}{1,5}$",
    "word_boundary": r"^\bab\b$",
    "nested": r"^((a|b)*c)+d?$",
    "dollar_then_nothing": r"^a$|^bc$",
}

_WIDENING_PATTERNS = {"word_boundary", "unicode_property"}
_INSTANCES = {"unicode_property": st.sampled_from(["Ab", "Éa", "Žluť", "Ωμέγα"])}
_ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=6)

ENTRIES: tuple[Entry, ...] = (
    entry("str", str, "str"),
    entry("str_max", _text(max_length=5), "str", "length"),
    entry("str_min", _text(min_length=3), "str", "length"),
    entry("str_min_max", _text(min_length=2, max_length=4), "str", "length"),
    entry("str_exact", _text(min_length=3, max_length=3), "str", "length"),
    entry("str_empty_only", _text(max_length=0), "str", "length"),
    entry("str_long", _text(max_length=300), "str", "length"),
    entry("str_len", Annotated[str, at.Len(1, 6)], "str", "length", "annotated_types"),
    entry("str_ascii", Annotated[str, at.IsAscii, Field(max_length=9)], "str", "annotated_types", may_widen=True),
    *(
        entry(
            f"pattern_{name}",
            _text(pattern=pattern),
            "str",
            "pattern",
            may_widen=name in _WIDENING_PATTERNS,
            instances=_INSTANCES.get(name),
        )
        for name, pattern in PATTERNS.items()
    ),
    entry("pattern_compiled", _text(pattern=re.compile(r"^[a-d]{2,4}$")), "str", "pattern"),
    entry(
        "pattern_compiled_ignore_case",
        _text(pattern=re.compile(r"^[a-d]{2,4}$", re.IGNORECASE)),
        *("str", "pattern"),
        instances=st.from_regex(re.compile("[a-dA-D]{2,4}"), fullmatch=True),
    ),
    entry(
        "pattern_compiled_verbose",
        _text(pattern=re.compile(r"^ [a-d]{2} # two $", re.VERBOSE), max_length=6),
        *("str", "pattern", "length"),
        may_widen=True,
        instances=st.from_regex(re.compile("[a-d]{2}"), fullmatch=True),
    ),
    entry("pattern_max", _text(pattern=r"^[a-z ]*$", max_length=6), "str", "pattern", "length"),
    entry("pattern_min_max", _text(pattern=r"^(?:ab)*c?$", min_length=3, max_length=7), "str", "pattern", "length"),
    entry("pattern_unanchored_max", _text(pattern=r"[0-9]", max_length=4), "str", "pattern", "length"),
    entry("pattern_dot_max", _text(pattern=r"^.+@.+$", max_length=12), "str", "pattern", "length"),
    entry(
        "str_strip",
        Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)],
        "str",
        may_widen=True,
        instances=_ASCII,
    ),
    entry(
        "str_strip_max",
        Annotated[str, StringConstraints(strip_whitespace=True, max_length=4)],
        "str",
        may_widen=True,
        instances=_ASCII,
    ),
    entry("str_lower", Annotated[str, StringConstraints(to_lower=True, pattern=r"^[a-z]+$")], "str", may_widen=True),
    entry("str_upper", Annotated[str, StringConstraints(to_upper=True, max_length=5)], "str", may_widen=True),
    entry("str_strict", Annotated[str, Field(strict=True, max_length=8)], "str", "strict"),
    entry("str_after_validator", Annotated[str, AfterValidator(_is_palindrome)], "str", "validator", may_widen=True),
    entry("str_before_validator", Annotated[str, BeforeValidator(_is_palindrome)], "str", "validator", may_widen=True),
    entry("secret_str", SecretStr, "str", "as_drawn"),
    entry("secret_str_length", Annotated[SecretStr, Field(min_length=8, max_length=10)], "str", "length", "as_drawn"),
    entry("secret_bytes", SecretBytes, "bytes", "as_drawn"),
    entry("bytes", bytes, "bytes"),
    entry(
        "bytes_length",
        Annotated[bytes, Field(min_length=2, max_length=5)],
        "bytes",
        "length",
        may_widen=True,
        instances=_ASCII,
    ),
    entry("base64_bytes", Base64Bytes, "bytes", may_widen=True),
    entry("base64_str", Base64Str, "bytes", may_widen=True),
    entry("base64_url_str", Base64UrlStr, "bytes", may_widen=True),
    entry("path", Path, "str", instances=_ASCII),
    entry("literal_str", Literal["paid", "open", 'with "quote"', "back\\slash", "ünï ☃ 🎉", ""], "literal"),
    entry("literal_mixed", Literal["a", 1, True, None, -20], "literal"),
    entry("literal_one", Literal["const"], "literal"),
    entry("literal_int", Literal[1, 10, 100], "literal"),
    entry(
        "literal_enum",
        Literal[Colour.RED, Colour.BLUE],
        "literal",
        "enum",
        "no_json",
        may_be_refused=True,
        may_widen=True,
    ),
    entry("literal_str_enum", Literal[Shade.LIGHT, "other"], "literal", "enum"),
    entry("enum_text", Colour, "enum"),
    entry("enum_str", Shade, "enum"),
    entry("enum_int", Level, "enum"),
    entry("enum_mixed", Mixed, "enum"),
)
