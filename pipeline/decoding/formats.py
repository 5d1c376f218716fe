"""Strings with a language of their own: dates, times, durations, UUIDs, addresses, URLs, base64.

Each is a sub-language of what Pydantic (and the RFC behind the format) accepts, so that what is generated always reads
back; where it leaves out legal spellings, `RESTRICTIONS` says which.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from pipeline.decoding.automata import Dfa, Edge, intersect
from pipeline.decoding.nfa import Nfa, concat, union
from pipeline.decoding.regex import full_match
from pipeline.decoding.strings import any_string

__all__ = ["FORMATS", "RESTRICTIONS", "format_language", "string_language"]

RESTRICTIONS = {
    "datetime": "RFC 3339 with T, seconds, up to six decimals, and Z or an offset",
    "time": "hours, minutes and seconds, up to six decimals",
    "timedelta": "ISO 8601 with days, hours, minutes and seconds",
    "email": "ASCII local parts without quotes, and no domains of special use",
    "url": "ASCII host names of at most 63 characters without user info",
    "ipv4network": "prefixes of whole bytes",
    "ipv6network": "single addresses",
}

_MONTH_DAY = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP_YEAR = r"[0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(\.{_OCTET}){{3}}"
_LABEL = r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*"
_MAX_HOST = 63
"""Characters of a host name at most, which also keeps each of its labels within the 63 of RFC 1035."""
_TOP_LABEL = r"[A-Za-z][A-Za-z]{1,23}"


@functools.cache
def _date() -> Dfa:
    ordinary = full_match(rf"[0-9]{{4}}-({_MONTH_DAY})")
    leap = full_match(rf"({_LEAP_YEAR})-02-29")
    return union([ordinary, leap]).difference(full_match(r"0000-.*"), 0x10FFFF).minimized()


def _compared(bound: str, *, above: bool, is_open: bool) -> Dfa:
    """Strings of the bound's length that sort above or below it."""
    edges: list[tuple[Edge, ...]] = []
    count = len(bound)
    for index, char in enumerate(bound):
        point = ord(char)
        row: list[Edge] = [(point, point, index + 1)]
        free = count + 1 + index
        if above:
            row.append((point + 1, 0x7F, free))
        elif point:
            row.insert(0, (0, point - 1, free))
        edges.append(tuple(row))
    edges.append(())
    edges.extend(((0, 0x7F, count + 2 + index),) if index < count - 1 else () for index in range(count))
    accepting = [False] * count + [not is_open] + [index == count - 1 for index in range(count)]
    return Dfa(tuple(edges), tuple(accepting), (-1,) * len(edges))


def _date_language(settings: Mapping[str, Any]) -> Dfa:
    language = _date()
    for key, above, is_open in (("ge", True, False), ("gt", True, True), ("le", False, False), ("lt", False, True)):
        if key in settings:
            language = intersect(language, _compared(str(settings[key])[:10], above=above, is_open=is_open))
    return language.minimized()


@functools.cache
def _datetime(zone: str | None) -> Dfa:
    suffix = {"aware": _ZONE, "naive": ""}.get(zone or "", f"{_ZONE}?")
    clock = full_match(rf"T{_TIME}{suffix}")
    return concat([_date(), clock]).minimized()


@functools.cache
def _time(zone: str | None) -> Dfa:
    suffix = {"aware": _ZONE, "naive": ""}.get(zone or "", f"{_ZONE}?")
    return full_match(_TIME + suffix)


@functools.cache
def _timedelta() -> Dfa:
    hours, minutes, seconds = r"([0-9]|1[0-9]|2[0-3])H", r"([0-9]|[1-5][0-9])M", r"([0-9]|[1-5][0-9])(\.[0-9]{1,6})?S"
    clock = rf"T({hours}({minutes})?({seconds})?|{minutes}({seconds})?|{seconds})"
    return full_match(rf"-?P((0|[1-9][0-9]{{0,7}})D({clock})?|{clock})")


@functools.cache
def _duration() -> Dfa:
    """RFC 3339, appendix A; numbers of nine digits at most."""
    number = "[0-9]{1,9}"
    seconds = f"{number}S"
    minutes = f"{number}M({seconds})?"
    clock = f"T({number}H({minutes})?|{minutes}|{seconds})"
    months = f"{number}M({number}D)?"
    day = f"{number}D|{months}|{number}Y({months})?"
    return full_match(f"P({number}W|({day})({clock})?|{clock})")


@functools.cache
def _uuid(version: int | None) -> Dfa:
    third, fourth = (f"{version}[0-9a-f]{{3}}", "[89ab][0-9a-f]{3}") if version else ("[0-9a-f]{4}", "[0-9a-f]{4}")
    return full_match(rf"[0-9a-f]{{8}}-[0-9a-f]{{4}}-{third}-{fourth}-[0-9a-f]{{12}}")


@functools.cache
def _email() -> Dfa:
    """RFC 5321 dot-atoms; no `--` in the domain (RFC 5890 keeps it), no special-use domains (RFC 6761)."""
    atom = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
    local = intersect(full_match(rf"{atom}(\.{atom})*@"), any_string(2, 65))
    domain = full_match(rf"({_LABEL}\.)+{_TOP_LABEL}")
    special = r"(.*\.)?(arpa|invalid|local|localhost|onion|test)"
    domain = domain.difference(_any_case(full_match(special)), 0x10FFFF).minimized()
    return concat([local, intersect(domain, any_string(4, _MAX_HOST))])


def _any_case(dfa: Dfa) -> Dfa:
    """The same language with ASCII letters in either case."""
    edges: list[list[Edge]] = []
    for row in dfa.edges:
        widened = list(row)
        for low, high, target in row:
            for start, stop, shift in ((0x61, 0x7A, -32), (0x41, 0x5A, 32)):
                if max(low, start) <= min(high, stop):
                    widened.append((max(low, start) + shift, min(high, stop) + shift, target))
        edges.append(widened)
    nfa = Nfa()
    states = [nfa.state() for _ in edges]
    end = nfa.state()
    for state, wide in enumerate(edges):
        for low, high, target in wide:
            nfa.edge(states[state], low, high, states[target])
        if dfa.accepting[state]:
            nfa.link(states[state], end)
    return nfa.determinized(states[0], end)


_URL_CHAR = r"([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"


@functools.cache
def _url(schemes: tuple[str, ...] | None, max_length: int | None) -> Dfa:
    """The WHATWG URL forms that need no repair: scheme, host name or IPv4 address, port, path, query, fragment."""
    whole = full_match(rf"file:///({_URL_CHAR}|/)*") if schemes == ("file",) else _hosted_url(schemes)
    return whole.minimized() if max_length is None else intersect(whole, any_string(0, max_length))


def _hosted_url(schemes: tuple[str, ...] | None) -> Dfa:
    scheme = full_match(
        rf"({'|'.join(map(re.escape, schemes)) if schemes else 'https?|ftp|wss?|[a-z][a-z0-9]{1,15}'})://"
    )
    host = full_match(rf"({_LABEL}\.)*[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*|{_IPV4}")
    host = intersect(
        host.difference(_any_case(full_match(r"(.*\.)?xn-.*")), 0x10FFFF).minimized(), any_string(1, _MAX_HOST)
    )
    port = r"(:([1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
    rest = full_match(rf"{port}(/({_URL_CHAR}|/)*)?(\?({_URL_CHAR}|[/?])*)?(#({_URL_CHAR}|[/?])*)?")
    return concat([scheme.difference(full_match(r"file://"), 0x10FFFF), host, rest])


@functools.cache
def _ipv6() -> Dfa:
    """RFC 4291 text forms without an embedded IPv4 address."""
    group = r"[0-9a-fA-F]{1,4}"
    forms = [rf"({group}:){{7}}{group}"]
    for before in range(8):
        after = 7 - before
        head = rf"({group}(:{group}){{0,{before - 1}}})?" if before else ""
        tail = rf"({group}(:{group}){{0,{after - 1}}})?" if after else ""
        forms.append(f"{head}::{tail}")
    return full_match("|".join(forms))


@functools.cache
def _network(kind: str) -> Dfa:
    if kind == "ipv4interface":
        return full_match(rf"{_IPV4}(/([12]?[0-9]|3[0-2]))?")
    if kind == "ipv4network":
        return full_match(
            rf"{_IPV4}(/32)?|{_OCTET}\.{_OCTET}\.{_OCTET}\.0/24|{_OCTET}\.{_OCTET}\.0\.0/16|{_OCTET}\.0\.0\.0/8|0\.0\.0\.0/0"
        )
    suffix = r"(/128)?" if kind == "ipv6network" else r"(/([1-9]?[0-9]|1[01][0-9]|12[0-8]))?"
    return concat([_ipv6(), full_match(suffix)])


@functools.cache
def _base64(extra: str, *, is_strict: bool = False) -> Dfa:
    """Strictly, the bits that the last character has to spare are zero (RFC 4648, section 3.5)."""
    char = rf"[A-Za-z0-9{extra}]"
    second, third = ("[AQgw]", "[AEIMQUYcgkosw048]") if is_strict else (char, char)
    return full_match(rf"({char}{{4}})*({char}{second}==|{char}{{2}}{third}=)?")


FORMATS: Mapping[str, str] = {
    "date": "date", "date-time": "datetime", "time": "time", "duration": "duration", "uuid": "uuid", "email": "email",
    "ipv4": "ipv4", "ipv6": "ipv6", "ipv4network": "ipv4network", "ipv6network": "ipv6network",
    "ipv4interface": "ipv4interface", "ipv6interface": "ipv6interface", "ipvanyaddress": "ipaddress",
    "ipvanynetwork": "ipnetwork", "ipvanyinterface": "ipinterface",
    "uri": "url", "base64": "base64", "base64url": "base64url", "path": "path", "hostname": "hostname",
}  # fmt: skip
"""The language of each JSON Schema `format` that is held; others are annotations."""


def format_language(name: str) -> Dfa | None:
    """The strings of a JSON Schema `format`, or None where it is only an annotation."""
    if name not in FORMATS:
        return None
    zone = "aware" if name in ("date-time", "time") else None
    return string_language({"kind": FORMATS[name], "zone": zone})


def string_language(settings: Mapping[str, Any]) -> Dfa:
    """The strings of an `x-string` keyword."""
    match settings["kind"]:
        case "date":
            return _date_language(settings)
        case "datetime":
            return _datetime(settings.get("zone"))
        case "time":
            return _time(settings.get("zone"))
        case "timedelta":
            return _timedelta()
        case "duration":
            return _duration()
        case "uuid":
            return _uuid(settings.get("version"))
        case "email":
            return _email()
        case "url":
            schemes = settings.get("schemes")
            return _url(tuple(schemes) if schemes else None, settings.get("max_length"))
        case "ipv4":
            return full_match(_IPV4)
        case "ipv6":
            return _ipv6()
        case "ipv4network" | "ipv6network" | "ipv4interface" | "ipv6interface" as kind:
            return _network(kind)
        case "ipaddress":
            return union([full_match(_IPV4), _ipv6()])
        case "ipnetwork" | "ipinterface" as kind:
            return union([_network(f"ipv4{kind[2:]}"), _network(f"ipv6{kind[2:]}")])
        case "base64":
            return _base64("+/")
        case "base64url":
            return _base64("_-")
        case "base64-strict":
            return union([_base64("+/", is_strict=True), _base64("_-", is_strict=True)])
        case "hex":
            return full_match(r"([0-9a-f]{2})*")
        case "path":
            return full_match(r"[^\x00]*")
        case "hostname":
            return intersect(full_match(rf"{_LABEL}(\.{_LABEL})*"), any_string(1, _MAX_HOST))
    raise ValueError(f"no language named {settings['kind']!r}")
