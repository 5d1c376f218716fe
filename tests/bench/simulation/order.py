"""What the order of the shards costs at the end of a run, where row groups differ much in length."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from unittest import mock

from pipeline.core.document import InputObject, Plan, Shard
from pipeline.run import pace
from pipeline.run.ledger import Ledger
from pipeline.run.plan import make_shards, text_bytes
from tests.bench.simulation.measured import GROUP_BYTES, driver_of, plain_objects
from tests.bench.simulation.weather import Weather, WeatherCluster

__all__ = ["Skew", "Tail", "measure_order", "tails"]


@dataclass(frozen=True, slots=True)
class Skew:
    """Row groups whose text is distributed as Pareto says, and none longer than so many times the shortest."""

    alpha: float = 1.2
    most: float = 40.0


@dataclass(frozen=True, slots=True)
class Tail:
    """One way of handing out, in simulated seconds: the medians over some seeds."""

    documents: int
    engines: int
    order: str
    has_backups: bool
    wall_s: float
    """From the first engine's start to the last commit."""
    least_wall_s: float
    """About as quick as any order could be: all work spread evenly, or the longest shard on the first engine."""
    idle_s: float
    """See `WeatherCluster.idle_s`."""
    doubled_s: float
    """See `WeatherCluster.doubled_s`."""
    lost_share: float
    """Idle and doubled, of the engines' time, given back or not."""
    attempts: float


def tails(
    documents: int, engines: int, shard_rows: int, weather: Weather, skew: Skew, seeds: Sequence[int]
) -> list[Tail]:
    """Input order and longest first, with and without backup attempts; medians over the seeds."""
    found = []
    for order in ("as in the input", "longest first"):
        for has_backups in (False, True):
            runs = [
                measure_order(documents, engines, shard_rows, weather, skew, seed, order=order, has_backups=has_backups)
                for seed in seeds
            ]
            names = ("wall_s", "least_wall_s", "idle_s", "doubled_s", "lost_share", "attempts")
            found.append(
                replace(runs[0], **{name: statistics.median(getattr(run, name) for run in runs) for name in names})
            )
    return found


def measure_order(
    documents: int,
    engines: int,
    shard_rows: int,
    weather: Weather,
    skew: Skew,
    seed: int,
    *,
    order: str,
    has_backups: bool,
) -> Tail:
    """One run.  An engine takes as long as a shard's text is; stragglers aside, nothing goes wrong."""
    objects = _skewed(plain_objects(documents), skew, random.Random(seed))
    plan = Plan("0" * 16, objects, make_shards(objects, shard_rows))
    sizes = text_bytes(plan, {shard.shard_id: shard for shard in plan.shards})
    second_bytes = sum(sizes.values()) / (weather.document_s * documents)

    def mean_s(shard: Shard) -> float:
        return sizes[shard.shard_id] / second_bytes

    calm = replace(weather, failure=0, death=0, waves_an_hour=0)
    ledger, cluster = Ledger(plan), WeatherCluster(calm, seed, mean_s)
    with mock.patch.object(pace, "BEHIND", pace.BEHIND if has_backups else math.inf):
        driver_of(ledger, plan, engines, cluster, seed, is_sorted=order == "longest first").run()
    cluster.close()
    assert ledger.is_complete
    started_s = sum(weather.start_s) / 2
    work = [mean_s(shard) for shard in plan.shards]
    return Tail(
        documents=documents,
        engines=engines,
        order=order,
        has_backups=has_backups,
        wall_s=cluster.finished_at,
        least_wall_s=max(started_s + sum(work) / engines, weather.start_s[0] + max(work)),
        idle_s=cluster.idle_s,
        doubled_s=cluster.doubled_s,
        lost_share=1 - cluster.useful_s / (cluster.useful_s + cluster.idle_s + cluster.doubled_s),
        attempts=cluster.attempts,
    )


def _skewed(objects: tuple[InputObject, ...], skew: Skew, rng: random.Random) -> tuple[InputObject, ...]:
    def sizes(groups: int) -> tuple[int, ...]:
        return tuple(round(GROUP_BYTES * min(skew.most, rng.paretovariate(skew.alpha))) for _ in range(groups))

    return tuple(replace(item, row_group_bytes=sizes(len(item.row_group_rows))) for item in objects)
