"""Hypothesis strategies for the part of JSON Schema that Pydantic writes.

Values drawn need not satisfy every constraint (a pattern together with a length, a version of UUID); whoever draws them
validates and drops those that do not.  They keep within what a grammar promises to hold; what it leaves out on purpose
is listed, text by text, in `test_complete.LEFT_OUT`.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

from hypothesis import strategies as st

__all__ = ["FORMATS", "decimals", "floats", "from_json_schema", "integers", "json_values"]

_MOST_ITEMS = 4
_MOST_INTEGER = 10**19 - 1
_MAGNITUDES = (1e-307, 1e307)
_RANGE_MAGNITUDES = (1e-5, 1e14)
_UNICODE_CLASSES = re.compile(r"\\[dwsDWSp]|\(\?i\)")


def json_values(*, most_leaves: int = 6) -> st.SearchStrategy[Any]:
    """Any JSON value."""
    numbers = integers(-(10**9), 10**9) | floats(min_value=-1e9, max_value=1e9)
    scalars = st.none() | st.booleans() | numbers | st.text()
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=most_leaves,
    )


def integers(low: int | None = None, high: int | None = None) -> st.SearchStrategy[int]:
    """Integers of at most 19 digits."""
    least, most = -_MOST_INTEGER if low is None else low, _MOST_INTEGER if high is None else high
    return st.integers(min(least, most), most)


def floats(**bounds: Any) -> st.SearchStrategy[float]:
    """Finite doubles without `-0.0`: any but the least and greatest; with bounds, those of 10 digits, not too small."""
    low, high = _RANGE_MAGNITUDES if any(value is not None for value in bounds.values()) else _MAGNITUDES
    free = st.floats(allow_nan=False, allow_infinity=False, **bounds)
    rounded = free if low == _MAGNITUDES[0] else free.map(lambda value: float(f"{value:.10g}"))
    return rounded.map(lambda value: value or 0.0).filter(lambda value: value == 0 or low <= abs(value) <= high)


def decimals(low: int, high: int, places: int) -> st.SearchStrategy[str]:
    """Plain decimal numbers as text, with at most `places` digits after the point."""
    scaled = st.tuples(st.integers(low * 10**places, high * 10**places), st.integers(0, places))
    exact = scaled.map(lambda pair: (Decimal(pair[0]) / 10**places).quantize(Decimal(1).scaleb(-pair[1])))
    return exact.map(lambda value: str(abs(value) if value == 0 else value))


def _texts(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return strategy.map(str)


def _emails() -> st.SearchStrategy[str]:
    local = st.from_regex(r"[a-z0-9](?:[a-z0-9+_-]{0,6}[a-z0-9])?", fullmatch=True)
    host = st.from_regex(r"[a-z](?:[a-z0-9-]{0,5}[a-z0-9])?\.(?:com|org|de|io)", fullmatch=True)
    return st.builds("{}@{}".format, local, host)


def _urls() -> st.SearchStrategy[str]:
    scheme = st.sampled_from(["http", "https", "ftp"])
    host = st.from_regex(r"(?:[a-z0-9]{1,8}\.){0,2}[a-z]{2,6}(?::[1-9][0-9]{0,3})?", fullmatch=True)
    path = st.from_regex(r"(?:/[A-Za-z0-9_.~-]{1,6}){0,3}/?", fullmatch=True)
    rest = st.from_regex(r"(?:\?[a-z]{1,4}=[a-z0-9+-]{0,5})?(?:#[a-z]{1,4})?", fullmatch=True)
    return st.builds("{}://{}{}{}".format, scheme, host, path, rest)


def _interfaces(version: int, most_prefix: int) -> st.SearchStrategy[str]:
    addresses = _texts(st.ip_addresses(v=cast(Any, version)))
    return st.builds("{}/{}".format, addresses, st.integers(0, most_prefix))


_UUIDS = {f"uuid{version}": _texts(st.uuids(version=cast(Any, version))) for version in (1, 3, 4, 5)}
FORMATS: dict[str, st.SearchStrategy[Any]] = {
    "date": st.dates().map(lambda value: value.isoformat()),
    "date-time": st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-3, minutes=-30))])).map(
        lambda value: value.isoformat()
    ),
    "time": st.times().map(lambda value: value.isoformat()),
    "duration": st.timedeltas(timedelta(days=-364), timedelta(days=364)),
    "uuid": _texts(st.uuids()),
    **_UUIDS,
    "email": _emails(),
    "name-email": st.builds("{} <{}>".format, st.from_regex(r"[A-Z][a-z]{1,8}", fullmatch=True), _emails()),
    "uri": _urls(),
    "ipv4": _texts(st.ip_addresses(v=4)),
    "ipv6": _texts(st.ip_addresses(v=6)),
    "ipv4network": st.sampled_from(["192.0.2.0/24", "10.0.0.0/8", "172.16.0.0/16", "192.0.2.7/32", "0.0.0.0/0"]),
    "ipv6network": _texts(st.ip_addresses(v=6)).map("{}/128".format),
    "ipv4interface": _interfaces(4, 32),
    "ipv6interface": _interfaces(6, 128),
    "ipvanyaddress": _texts(st.ip_addresses()),
    "ipvanynetwork": st.sampled_from(["192.0.2.0/24", "10.0.0.0/8", "2001:db8::1/128"]),
    "ipvanyinterface": _interfaces(4, 32) | _interfaces(6, 128),
    "multi-host-uri": st.sampled_from(["postgres://h.org:5432/db", "postgresql://localhost/x"]),
    "color": st.sampled_from(["red", "#fff", "#a0b1c2", "rgb(1, 2, 3)", "hsl(10, 20%, 30%)"]),
    "base64": st.binary(max_size=12).map(lambda data: base64.b64encode(data).decode()),
    "base64url": st.binary(max_size=12).map(lambda data: base64.urlsafe_b64encode(data).decode()),
    "json-string": st.sampled_from(["[1,2,3]", "[]", '"text"', "{}", "null", "0"]),
}


def from_json_schema(schema: Any, root: dict[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """JSON values for `schema`, whose local references are resolved in `root` (itself by default)."""
    if not isinstance(schema, dict):
        return json_values()
    root = schema if root is None else root
    if "$ref" in schema:
        return st.deferred(lambda: from_json_schema(_target(schema["$ref"], root), root))
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            if _is_decimal(schema[keyword]):
                return decimals(0, 100, 2) | decimals(-1000, 1000, 2)
            return st.one_of(*(from_json_schema(branch, root) for branch in schema[keyword]))
    named = schema.get("type")
    if isinstance(named, list):
        return st.one_of(*(from_json_schema({**schema, "type": one}, root) for one in named))
    maker = _MAKERS.get(cast(str, named))
    return json_values() if maker is None else maker(schema, root)


def _is_decimal(branches: list[Any]) -> bool:
    """Whether these are the number and the text that a decimal is in the schema; few floats have its digits."""
    kinds = [branch.get("type") for branch in branches if isinstance(branch, dict)]
    return kinds == ["number", "string"] and set(branches[1]) <= {"type", "pattern"}


def _target(reference: str, root: dict[str, Any]) -> Any:
    place: Any = root
    for step in reference.removeprefix("#/").split("/"):
        place = place[step.replace("~1", "/").replace("~0", "~")]
    return place


def _strings(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    if schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" in schema:
        # Hypothesis ends a match at `$` with an optional newline, as Python's re does; Pydantic's engine does not.
        pattern = re.sub(r"(?<!\\)\$$", r"\\Z", schema["pattern"])
        # A grammar reads \d, \w, \s and letters without case as ASCII.
        is_ascii = _UNICODE_CLASSES.search(pattern) is not None
        found = st.from_regex(
            pattern, alphabet=st.characters(min_codepoint=32, max_codepoint=126) if is_ascii else None
        )
        return found.filter(lambda text: shortest <= len(text) <= (math.inf if longest is None else longest))
    return st.text(min_size=shortest, max_size=longest)


def _integers(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    low, high = _bound(schema, "inimum", +1), _bound(schema, "aximum", -1)
    step = schema.get("multipleOf", 1)
    low = None if low is None else -(-low // step)
    high = None if high is None else high // step
    most = _MOST_INTEGER // step
    return integers(-most if low is None else low, most if high is None else high).map(lambda count: count * step)


def _bound(schema: dict[str, Any], ending: str, inward: int) -> int | None:
    closed, opened = schema.get(f"m{ending}"), schema.get(f"exclusiveM{ending}")
    found = [value for value in (closed, None if opened is None else opened + inward) if value is not None]
    if not found:
        return None
    return int(max(found) if inward > 0 else min(found))


def _numbers(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "multipleOf" in schema:
        return st.integers(-1000, 1000).map(lambda count: round(count * schema["multipleOf"], 9))
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return floats(min_value=above if low is None else low, max_value=below if high is None else high)


def _arrays(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    prefix = [from_json_schema(item, root) for item in schema.get("prefixItems", [])]
    shortest, longest = schema.get("minItems", 0), schema.get("maxItems")
    if prefix and longest is not None:
        most = max(len(prefix), shortest)
        return st.integers(max(shortest, 0), most).flatmap(lambda size: st.tuples(*prefix[:size]).map(list))
    most = shortest + _MOST_ITEMS if longest is None else min(longest, shortest + _MOST_ITEMS)
    items = from_json_schema(schema.get("items"), root)
    if schema.get("uniqueItems"):
        return st.lists(items, min_size=shortest, max_size=most, unique_by=repr)
    return st.lists(items, min_size=shortest, max_size=most)


def _objects(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    properties = {name: from_json_schema(part, root) for name, part in schema.get("properties", {}).items()}
    required = {name: part for name, part in properties.items() if name in schema.get("required", [])}
    optional = {name: part for name, part in properties.items() if name not in required}
    fixed = st.fixed_dictionaries(required, optional=optional)
    extra = _extra_properties(schema, root)
    if extra is None:
        return fixed
    return st.builds(lambda declared, more: {**more, **declared}, fixed, extra)


def _extra_properties(schema: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]] | None:
    shortest, longest = schema.get("minProperties", 0), schema.get("maxProperties")
    most = shortest + 3 if longest is None else longest
    patterns = schema.get("patternProperties")
    if patterns:
        one = [
            st.dictionaries(
                _strings({"pattern": pattern}, root), from_json_schema(part, root), min_size=shortest, max_size=most
            )
            for pattern, part in patterns.items()
        ]
        return st.one_of(*one)
    values = schema.get("additionalProperties")
    if values is None or values is False:
        return None
    names = from_json_schema({"type": "string", **schema.get("propertyNames", {})}, root).map(str)
    return st.dictionaries(names, from_json_schema(values, root), min_size=shortest, max_size=most)


_Maker = Callable[[dict[str, Any], dict[str, Any]], st.SearchStrategy[Any]]
_MAKERS: dict[str, _Maker] = {
    "null": lambda schema, root: st.none(),
    "boolean": lambda schema, root: st.booleans(),
    "integer": _integers,
    "number": _numbers,
    "string": _strings,
    "array": _arrays,
    "object": _objects,
}
