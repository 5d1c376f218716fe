"""From a run's books to its report: pure, what is ranked, chosen and drawn of the sums."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain, zip_longest
from typing import TypeVar

from pydantic import JsonValue

from pipeline.core.outcome import Cause, Status
from pipeline.report.books import PROBLEMS, Books
from pipeline.report.documents import FieldScore, ProblemDocument, UnreadableInput
from pipeline.report.model import (
    CauseCount,
    Distribution,
    FieldCount,
    Report,
    ShardCounts,
    SpanCounts,
    Submission,
    TokenTotals,
)
from pipeline.report.timeline import Work, timeline
from pipeline.report.times import engine_use

__all__ = ["make_report"]

_Key = TypeVar("_Key")

WORST_SHARDS = 10


def make_report(
    books: Books,
    *,
    output_uri: str,
    generated_at: datetime,
    spec: Mapping[str, JsonValue] | None = None,
    submissions: Sequence[Submission] = (),
    scores: tuple[FieldScore, ...] = (),
) -> Report:
    """The report of a run.

    Args:
        books: of its plan and parts.
        output_uri: the run's prefix.
        generated_at: now, with its UTC offset.
        spec: the stored effective spec.
        submissions: in the order of their ids.
        scores: against known answers, where there are any.
    """
    plan, sums, shards = books.plan, books.sums, books.ordered
    line = timeline([Work(item.started_at, item.finished_at, item.documents, item.output_tokens) for item in shards])
    stored = dict(spec or {})
    use = engine_use(submissions)
    balance = books.balance
    return Report(
        generated_at=generated_at,
        name=_name(stored, output_uri),
        fingerprint=plan.fingerprint,
        output_uri=output_uri,
        balance=balance,
        is_complete=books.is_complete_by(balance),
        counts=_counts(sums.counts),
        shards_planned=len(plan.shards),
        shards=shards,
        missing=books.missing,
        worst_shards=_worst(shards),
        tokens=TokenTotals(
            prompt_tokens=sums.prompt_tokens, output_tokens=sums.output_tokens, cached_tokens=sums.cached_tokens
        ),
        output_tokens=_distribution(sums.output_bins),
        slack_tokens=_distribution(sums.slack_bins),
        rate=line.points,
        pauses=line.pauses,
        active_s=line.active_s,
        phases=sums.phases.times(use),
        wall_s=sums.wall_s,
        engine=use.engine_time,
        shaped_fields=tuple(FieldCount(field=name, documents=rows) for name, rows in _ranked(sums.shaped)),
        spans=SpanCounts(grounded=sums.grounded, ambiguous=sums.ambiguous, empty=sums.empty),
        problems=_chosen(sums.candidates),
        unreadable=tuple(
            UnreadableInput(
                uri=item.uri, size_bytes=item.size_bytes, reason=item.unreadable.removeprefix(item.uri).lstrip(": ")
            )
            for item in plan.objects
            if item.unreadable is not None
        ),
        spec=stored,
        submissions=tuple(submissions),
        scores=scores,
    )


def _name(spec: Mapping[str, JsonValue], output_uri: str) -> str:
    name = spec.get("name")
    return name if isinstance(name, str) else output_uri.rstrip("/").rsplit("/", 1)[-1]


def _counts(counts: Counter[tuple[Status, Cause | None]]) -> tuple[CauseCount, ...]:
    return tuple(
        CauseCount(status=status, cause=cause, documents=rows)
        for status in Status
        for cause, rows in _ranked({cause: rows for (of, cause), rows in counts.items() if of is status})
    )


def _ranked(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))


def _worst(shards: Sequence[ShardCounts]) -> tuple[str, ...]:
    troubled = [shard for shard in shards if shard.documents != shard.valid]
    ranked = heapq.nsmallest(
        WORST_SHARDS,
        troubled,
        key=lambda shard: (-shard.share_lost, -shard.closed / shard.documents, shard.position),
    )
    return tuple(shard.shard_id for shard in ranked)


def _distribution(bins: tuple[int, ...]) -> Distribution:
    """Footers count by `int.bit_length`: bin 0 is the value 0, bin k is `[2**(k - 1), 2**k)`."""
    return Distribution(edges=tuple(0 if index == 0 else 2 ** (index - 1) for index in range(len(bins))), counts=bins)


def _chosen(candidates: Mapping[tuple[Status, Cause], list[ProblemDocument]]) -> tuple[ProblemDocument, ...]:
    """One of each cause, then a second of each, and so on."""
    order = {status: index for index, status in enumerate(Status)}
    ranked = sorted(candidates.items(), key=lambda item: (order[item[0][0]], item[0][1]))
    rounds = zip_longest(*(documents for _, documents in ranked))
    return tuple([document for document in chain.from_iterable(rounds) if document is not None][:PROBLEMS])
