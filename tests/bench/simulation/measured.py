"""One run of one size: everything that plans and drives is the real code, and what it takes is measured."""

from __future__ import annotations

import random
import resource
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields

from pipeline.core.document import InputObject, Plan
from pipeline.run.dispatch import Dispatcher
from pipeline.run.driver import Driver
from pipeline.run.fingerprint import Identity
from pipeline.run.fleet import Fleet
from pipeline.run.ledger import Ledger, StopRule
from pipeline.run.plan import StoredPlan, longest_first, make_shards, parse_plan, render_plan, text_bytes
from pipeline.run.stop import StopFlag
from pipeline.storage.layout import RunLayout, shard_id_of
from tests.bench.simulation.weather import Weather, WeatherCluster

__all__ = ["Figures", "driver_of", "measure", "median", "plain_objects"]

ROWS_OF_GROUP = 100
GROUPS_OF_OBJECT = 100
GROUP_BYTES = 40_000


@dataclass(frozen=True, slots=True)
class Figures:
    """One size.  Seconds of this process unless named otherwise; bytes."""

    documents: int
    row_groups: int
    engines: int
    shards: int
    plan_s: float
    plan_file_bytes: int
    plan_peak_bytes: int
    resume_s: float
    driver_cpu_s: float
    peak_bytes: int
    simulated_s: float
    useful_share: float
    """Of the engines' time from ready to the end: spent on the attempt that counts."""
    attempts: int
    lost_engines: int
    failed_attempts: int


def measure(documents: int, engines: int, shard_rows: int, weather: Weather, seed: int) -> Figures:
    """One run of one size in this process: plan, see what is left of it half way, work through all of it."""
    started = time.perf_counter()
    objects = plain_objects(documents)
    plan = Plan("0" * 16, objects, make_shards(objects, shard_rows))
    data = render_plan(StoredPlan(plan, Identity({})))
    plan_s = time.perf_counter() - started
    plan_peak = _peak_bytes()

    layout = RunLayout("s3://bench/run/")
    half = [layout.part(shard.shard_id) for shard in plan.shards[::2]]
    started = time.perf_counter()
    again = parse_plan(data, source="plan.json").plan
    left = Ledger(again, [name for uri in half if (name := shard_id_of(uri)) is not None]).pending()
    longest_first(left, text_bytes(again, left))
    resume_s = time.perf_counter() - started
    assert len(left) == len(plan.shards) - len(half)
    del again, left, half, data

    ledger = Ledger(plan)
    cluster = WeatherCluster(weather, seed)
    driver = driver_of(ledger, plan, engines, cluster, seed)
    cpu = time.process_time()
    driver.run()
    cpu_s = time.process_time() - cpu
    cluster.close()
    assert ledger.is_complete
    assert ledger.documents == documents
    return Figures(
        documents=documents,
        row_groups=sum(len(item.row_group_rows) for item in objects),
        engines=engines,
        shards=len(plan.shards),
        plan_s=plan_s,
        plan_file_bytes=len(render_plan(StoredPlan(plan, Identity({})))),
        plan_peak_bytes=plan_peak,
        resume_s=resume_s,
        driver_cpu_s=cpu_s,
        peak_bytes=_peak_bytes(),
        simulated_s=cluster.now,
        useful_share=cluster.useful_s / cluster.alive_s,
        attempts=cluster.attempts,
        lost_engines=cluster.lost_engines,
        failed_attempts=cluster.failed_attempts,
    )


def driver_of(
    ledger: Ledger, plan: Plan, engines: int, cluster: WeatherCluster, seed: int, *, is_sorted: bool = True
) -> Driver:
    """A driver as a job has it; without `is_sorted` over the shards in the plan's order, as if all were as long."""
    pending = ledger.pending()
    sizes = text_bytes(plan, pending)
    return Driver(
        "simulated",
        ledger,
        Dispatcher(
            longest_first(pending, sizes) if is_sorted else pending,
            attempts_per_shard=5,
            text_bytes=sizes if is_sorted else None,
            rng=random.Random(seed),
        ),
        Fleet(engines, most=engines),
        cluster,
        stop_rule=StopRule(None, 1),
        stop=StopFlag(),
        progress=lambda snapshot: None,
        clock=cluster.clock,
    )


def median(found: Sequence[Figures]) -> Figures:
    """Figure by figure, over several runs of one size."""
    return Figures(
        **{item.name: statistics.median_low([getattr(run, item.name) for run in found]) for item in fields(Figures)}
    )


def plain_objects(documents: int) -> tuple[InputObject, ...]:
    groups = -(-documents // ROWS_OF_GROUP)
    objects = []
    for start in range(0, groups, GROUPS_OF_OBJECT):
        count = min(GROUPS_OF_OBJECT, groups - start)
        rows = [ROWS_OF_GROUP] * count
        if start + count == groups:
            rows[-1] = documents - (groups - 1) * ROWS_OF_GROUP
        uri = f"s3://documents/all/part-{start:07}.parquet"
        objects.append(InputObject(uri, f"etag-{start}", GROUP_BYTES * count, tuple(rows), (GROUP_BYTES,) * count))
    return tuple(objects)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
