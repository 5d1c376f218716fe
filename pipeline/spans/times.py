"""Times of day, and dates with them, in the spelling of RFC 3339."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import regex

from pipeline.spans.candidates import Candidate
from pipeline.spans.names import halves_of_day, plain_name

__all__ = ["datetimes_in", "times_in"]

_BEGIN = r"(?:(?<!\d)|(?<=[-/.]\d{4}))(?<!\d[:.,])"
_CLOCK = regex.compile(
    _BEGIN + r"(?P<hour>\d{1,2})(?:"
    r"(?: : |:)(?P<minute>\d\d)(?:(?: : |:)(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?(?![\d:]|[.,]\d)"
    r"|\.(?P<minute>\d\d)(?:\.(?P<second>\d\d)(?![.\d])|(?= ?(?i:uhr|hrs?|h|[ap]\.? ?m)\b))"
    r"| ?[hH] ?(?P<minute>\d\d)(?: ?(?:[mM]|min)? ?(?P<second>\d\d)[sS]?)?(?![\d:]|[.,]\d)"
    r"| ?[時时点點시] ?(?:(?P<minute>\d{1,2}) ?[分분](?: ?(?P<second>\d{1,2}) ?[秒초])?)?(?!\d)"
    r"|(?P<minute>\d\d)(?= ?(?i:hrs|hours|uhr)\b)"
    r"|(?= ?(?i:[ap]\.? ?m\b|uhr\b)))"
)
_COMPACT = regex.compile(
    r"(?<=(?<!\d)(?:19|20)\d{6}T?)(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<fraction>)(?!\d)"
)
_HALF_AFTER = regex.compile(r" ?(?P<half>(?i:[ap]\.? ?m)\b\.?|[\p{L}\p{M}.]{1,15})")
_HALF_BEFORE = regex.compile(r"(?P<half>(?<![^\W\d_])(?:[A-Z]{2}|pm)|[^\W\d_a-zA-Z]{2}) ?$")
"""Not `am`, which is a word of German and the end of names; not the end of a longer word, where a script has words."""
_ZONE = regex.compile(
    r" ?(?:(?P<utc>Z|UTC|GMT)(?:(?P<sign>[+-])(?P<hour>\d{1,2})(?::?(?P<minute>\d\d))?)?(?![\p{L}\d:]))"
    r"| ?(?P<sign>[+-])(?P<hour>\d\d):?(?P<minute>\d\d)(?![\d:]|[.,]\d)"
)
_MAX_OFFSET = 14
"""Hours from UTC, at most."""
_JOIN = regex.compile(r"[ ,;@|(/\-]{0,3}(?P<word>(?:\p{L}\p{M}*){1,10}[.:)]{0,2}[ ,]{0,2})?")


def _zone(text: str, end: int, *, may_be_range: bool) -> tuple[str, int]:
    """The zone written at `end`, in RFC 3339, and where it ends.

    A bare `-12:00` after minutes is the end of a range of times, but for those that `T` joins to a date (ISO 8601).
    """
    found = _ZONE.match(text, end)
    if found is None:
        return "", end
    if found["sign"] is None:
        return "Z", found.end()
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    is_range = may_be_range and found["utc"] is None and found["sign"] == "-"
    if is_range or hour > _MAX_OFFSET or minute > 59:
        return "", end
    return f"{found['sign']}{hour:02}:{minute:02}", found.end()


def _time(text: str, found: regex.Match[str]) -> Candidate | None:
    """The time that begins with this match, with its half of the day and its zone."""
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), int(found["second"] or 0)
    start, end = found.span()
    halves = halves_of_day()
    after = _HALF_AFTER.match(text, end)
    is_pm = halves.get(plain_name(after["half"])) if after is not None else None
    if after is not None and is_pm is not None:
        end = after.end()
    elif (before := _HALF_BEFORE.search(text, max(start - 3, 0), start)) is not None:
        is_pm = halves.get(plain_name(before["half"]))
        start = before.start() if is_pm is not None else start
    if is_pm is not None and hour <= 12:
        hour = hour % 12 + (12 if is_pm else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    is_iso = text[start - 2 : start - 1].isdecimal() and text[start - 1 : start] == "T"
    zone, end = _zone(text, end, may_be_range=found["second"] is None and not is_iso)
    fraction = f".{found['fraction'][:6]}" if found["fraction"] else ""
    return Candidate(start, end, f"{hour:02}:{minute:02}:{second:02}{fraction}{zone}")


def times_in(text: str) -> list[Candidate]:
    """Every time of day of the text, as `HH:MM:SS`, with fraction and zone where there are any, by place."""
    found = set()
    for form in (_CLOCK, _COMPACT):
        known = 0
        for each in form.finditer(text):
            # The offset of a zone looks like a time.
            time = _time(text, each) if each.start() >= known else None
            if time is not None:
                found.add(time)
                known = time.end
    return sorted(found)


def _joined(text: str, first: Candidate, others: Mapping[int, Sequence[Candidate]]) -> Iterator[Candidate]:
    """Those of `others` that follow `first` with no more than a sign and a word between."""
    gap = _JOIN.match(text, first.end)
    if gap is not None:
        before_word = gap.start("word") if gap["word"] is not None else gap.end()
        for place in dict.fromkeys((first.end, before_word, gap.end())):
            yield from others.get(place, ())


def _by_start(candidates: Sequence[Candidate]) -> dict[int, list[Candidate]]:
    found: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        found.setdefault(candidate.start, []).append(candidate)
    return found


def datetimes_in(text: str, dates: Sequence[Candidate], times: Sequence[Candidate]) -> list[Candidate]:
    """Dates with the time beside them; a date without one is its midnight, as Pydantic reads it."""
    times_at, dates_at = _by_start(times), _by_start(dates)
    pairs = [(date, time) for date in dates for time in _joined(text, date, times_at)]
    pairs += [(date, time) for time in times for date in _joined(text, time, dates_at)]
    with_time = {date for date, _ in pairs}
    alone = [Candidate(*date[:2], f"{date.value}T00:00:00") for date in dates if date not in with_time]
    return sorted({*alone, *(_spelt(date, time) for date, time in pairs)})


def _spelt(date: Candidate, time: Candidate) -> Candidate:
    return Candidate(min(date.start, time.start), max(date.end, time.end), f"{date.value}T{time.value}")
