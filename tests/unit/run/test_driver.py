"""The loop of a submission, on a simulated cluster and a made-up clock."""

from __future__ import annotations

import itertools
import logging
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.document import Plan, Shard
from pipeline.core.errors import (
    ClusterError,
    EngineDeadError,
    EngineError,
    EngineStartError,
    InterruptedRunError,
    LimitReachedError,
    StorageError,
)
from pipeline.run.dispatch import Dispatcher
from pipeline.run.ledger import Ledger, StopRule
from pipeline.run.plan import spread
from pipeline.run.progress import Snapshot
from tests.unit.run.simulated import Faults, Row, SimulatedCluster, rows, shard_of, simulate


def _ledger(*sizes: int, present: tuple[str, ...] = ()) -> Ledger:
    shards = tuple(shard_of(number, size) for number, size in enumerate(sizes))
    return Ledger(Plan("f" * 16, (), shards), present)


def _stored_rows(cluster: SimulatedCluster) -> Counter[Row]:
    return Counter(row for part in cluster.parts.values() for row, _ in part)


def _planned_rows(shards: dict[str, Shard]) -> Counter[Row]:
    return Counter(row for shard in shards.values() for row in rows(shard))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 5),
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 39)), max_size=4),
    st.integers(0, 1000),
)
def test_every_row_has_one_outcome_and_only_poison_is_lost(
    sizes: list[int], engines: int, poison: set[tuple[int, int]], seed: int
) -> None:
    ledger = _ledger(*sizes)
    faults = Faults({(f"s3://b/{number}.parquet", 0, row) for number, row in poison}, failure=0.1)
    cluster = SimulatedCluster(engines, faults, seed)
    simulate(ledger, cluster, engines=engines, attempts=20).driver.run()
    assert ledger.is_complete
    assert _stored_rows(cluster) == _planned_rows(ledger.shards)
    crashed = {row for part in cluster.parts.values() for row, is_valid in part if not is_valid}
    assert crashed == faults.poison & _planned_rows(ledger.shards).keys()
    for shard_id, part in cluster.parts.items():
        assert [row for row, _ in part] == rows(ledger.shards[shard_id])


def test_a_thousand_engines_and_ten_thousand_shards_take_one_assignment_a_shard() -> None:
    ledger = _ledger(*([100] * 10_000))
    cluster = SimulatedCluster(1000, Faults(), row_s=0.1)
    simulation = simulate(ledger, cluster, engines=1000)
    simulation.driver.run()
    assert ledger.documents == 1_000_000
    assert sum(cluster.attempts.values()) == 10_000
    assert len(cluster.started) == 1000
    # Ten shards an engine, one after the other, and the start: no engine idles while there is work.
    assert cluster.now <= 10 * 101 * cluster.row_s + cluster.start_s + 5


def test_engines_with_nothing_left_are_given_back_while_the_last_one_works() -> None:
    """Fails when the driver keeps idle workers to the end."""
    ledger = _ledger(*([100] * 40), 5000)
    cluster = SimulatedCluster(8, Faults())
    simulation = simulate(ledger, cluster, engines=8)
    simulation.driver.run()
    assert ledger.is_complete
    # The one that works on the long shard, and one that could take over.
    assert len(cluster.queues) <= 2
    assert len(cluster.started) == 8


def test_one_poison_document_costs_a_bounded_number_of_workers() -> None:
    ledger = _ledger(1024, 1024, 1024)
    poison: Row = ("s3://b/1.parquet", 0, 777)
    cluster = SimulatedCluster(1, Faults({poison}))
    simulate(ledger, cluster, engines=1).driver.run()
    assert [row for part in cluster.parts.values() for row, is_valid in part if not is_valid] == [poison]
    # Two deaths as a whole shard, one for each halving to a single row, two alone: the first may take a neighbour.
    assert len(cluster.alone) == 2 + 9 + 2
    assert all(held == 1 for _, held in cluster.alone[1:])


def test_no_document_is_taken_back_but_by_a_death() -> None:
    """Fails when what is done of a shard, or of a half of one, is counted twice or not at all at its commit."""
    cluster = SimulatedCluster(3, Faults({("s3://b/4.parquet", 0, 70)}), row_s=0.05)
    simulation = simulate(_ledger(*([200] * 12)), cluster, engines=3)
    told: list[tuple[int, int]] = []

    def note(snapshot: Snapshot) -> None:
        told.append((len(cluster.alone), snapshot.documents + snapshot.documents_working))

    simulation.driver._progress = note
    simulation.driver.run()
    assert cluster.alone
    assert told[-1][1] == 12 * 200
    for (deaths, before), (deaths_then, after) in itertools.pairwise(told):
        assert after >= before or deaths_then > deaths


def test_a_neighbour_of_poison_is_decoded_at_most_twice() -> None:
    ledger = _ledger(64, 64)
    cluster = SimulatedCluster(1, Faults({("s3://b/0.parquet", 0, 0)}))
    simulate(ledger, cluster, engines=1).driver.run()
    innocent = list(ledger.shards)[1]
    assert cluster.attempts[innocent] <= 2


def test_halves_that_an_earlier_submission_stored_are_not_decoded_again() -> None:
    ledger = _ledger(8)
    cluster = SimulatedCluster(1, Faults({("s3://b/0.parquet", 0, 0)}))
    (shard,) = ledger.shards.values()
    good_half = shard.halves()[1]
    cluster.halves[good_half.shard_id] = [(row, True) for row in rows(good_half)]
    simulate(ledger, cluster, engines=1).driver.run()
    assert good_half.shard_id not in cluster.attempts
    assert _stored_rows(cluster) == _planned_rows(ledger.shards)


def test_shards_with_a_part_are_not_done_again() -> None:
    first = _ledger(5, 5, 5)
    present = tuple(list(first.shards)[:2])
    ledger = _ledger(5, 5, 5, present=present)
    cluster = SimulatedCluster(2, Faults())
    simulate(ledger, cluster, engines=2).driver.run()
    assert ledger.is_complete
    assert not set(present) & cluster.attempts.keys()


@pytest.mark.parametrize("is_found", [True, False])
def test_the_pace_is_that_of_a_runs_own_commits(is_found: bool) -> None:
    """Fails when what another driver had committed is taken for quick work."""
    simulation = simulate(_ledger(*([5] * 20)), SimulatedCluster(1, Faults(is_found=is_found)), engines=1)
    simulation.driver.run()
    assert simulation.dispatcher._pace.is_late(5, 1e6) != is_found


def test_a_shard_that_always_fails_is_given_up_and_the_others_are_done() -> None:
    ledger = _ledger(5, 5)
    cluster = SimulatedCluster(1, Faults(failure=1.0))
    simulation = simulate(ledger, cluster, engines=1)
    simulation.driver.run()
    assert simulation.dispatcher.given_up.keys() == ledger.shards.keys()
    assert all(count == 3 for count in cluster.attempts.values())


def test_a_store_that_stays_away_ends_the_run_as_resumable() -> None:
    cluster = SimulatedCluster(2, Faults(failure=1.0, error=lambda: StorageError("503")))
    with pytest.raises(StorageError) as caught:
        simulate(_ledger(*([5] * 50)), cluster, engines=2).driver.run()
    assert caught.value.exit_code == 3
    assert max(cluster.attempts.values()) == 3


def test_the_longest_shard_does_not_wait_for_the_others_when_it_has_failed_once() -> None:
    """Fails when a task that failed goes to the end of the line."""
    shards = {shard.shard_id: shard for shard in (shard_of(number, 40 - number) for number in range(30))}
    dispatcher = Dispatcher(shards, attempts_per_shard=3)
    dispatcher.add_worker("a")
    longest, second = (item.task.task_id for item in dispatcher.assign(0.0))
    dispatcher.failed("a", longest, EngineError("no"), 0.0)
    dispatcher.finished("a", second)
    due = dispatcher.next_due()
    assert due is not None
    dispatcher.assign(due / 2)
    assert longest not in dispatcher.running("a")
    dispatcher.finished("a", dispatcher.running("a")[0])
    dispatcher.assign(due)
    assert longest in dispatcher.running("a")


def test_in_an_outage_every_shard_fails_once_before_any_fails_again() -> None:
    """Fails when a task that failed goes before the others at once: a short outage would use up its attempts."""
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(30))}
    dispatcher = Dispatcher(shards, attempts_per_shard=3)
    dispatcher.add_worker("a")
    failed: list[str] = []
    for now in range(0, 3000, 100):
        dispatcher.assign(float(now))
        failed.append(dispatcher.running("a")[0])
        dispatcher.failed("a", failed[-1], StorageError("503"), float(now))
    assert failed == list(shards)


@pytest.mark.parametrize("row_s", [0.01, 0.0])
def test_a_worker_that_fails_while_others_work_is_replaced(row_s: float) -> None:
    """With no time between them, both of its tasks are heard of at once, the second when the first has ended it."""
    ledger = _ledger(*([5] * 40))
    cluster = SimulatedCluster(2, Faults(bad_workers=frozenset({"w0"})), row_s=row_s)
    simulate(ledger, cluster, engines=2, attempts=10).driver.run()
    assert ledger.is_complete
    assert len(cluster.started) == 3


def test_workers_that_always_die_end_the_run() -> None:
    cluster = SimulatedCluster(2, Faults(death=1.0))
    with pytest.raises(EngineDeadError, match=r"died in a row .*; the last: it died"):
        simulate(_ledger(*([5] * 400)), cluster, engines=2).driver.run()
    assert len(cluster.started) < 40


def test_machines_that_are_taken_away_do_not_end_the_run_however_often() -> None:
    """Fails when such a loss counts like a death."""
    ledger = _ledger(5)
    cluster = SimulatedCluster(1, Faults(preemptions=40))
    simulate(ledger, cluster, engines=1).driver.run()
    assert ledger.is_complete
    assert len(cluster.started) == 41


def test_workers_that_never_start_end_the_run_with_their_reason() -> None:
    cluster = SimulatedCluster(2, Faults(start=1.0))
    with pytest.raises(EngineError, match="no start"):
        simulate(_ledger(5, 5), cluster, engines=2).driver.run()


def test_a_replacement_that_does_not_start_is_tried_again() -> None:
    """Hours into a run a port may be taken or a hub be away: that is no fault of the job's."""
    faults = Faults(
        memory_deaths=1, bad_starts=frozenset({"w1", "w2"}), start_error=lambda: EngineStartError("port taken")
    )
    ledger = _ledger(*([5] * 30))
    simulate(ledger, SimulatedCluster(1, faults), engines=1).driver.run()
    assert ledger.is_complete


def test_replacements_that_never_start_leave_a_run_that_can_be_resumed() -> None:
    lost = frozenset(f"w{number}" for number in range(1, 20))
    faults = Faults(memory_deaths=1, bad_starts=lost, start_error=lambda: EngineStartError("port taken"))
    with pytest.raises(EngineDeadError, match=r"failed to start.*; the last: port taken") as caught:
        simulate(_ledger(*([5] * 30)), SimulatedCluster(1, faults), engines=1).driver.run()
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("engines", [2, None])
def test_a_place_where_no_worker_starts_does_not_end_the_run_nor_is_it_asked_for_ever(engines: int | None) -> None:
    bad = frozenset(f"w{number}" for number in range(400) if number != 1)
    faults = Faults(bad_starts=bad, start_error=lambda: EngineStartError("no GPU memory"))
    ledger, cluster = _ledger(*([500] * 60)), SimulatedCluster(2, faults)
    simulate(ledger, cluster, engines=engines).driver.run()
    assert ledger.is_complete
    assert len(cluster.started) < 6


def test_a_machine_where_engines_fail_at_once_is_asked_for_no_more_while_others_load() -> None:
    """Fails when the run gives up before it knows what becomes of those."""
    bad = frozenset(f"w{number}" for number in range(400)) - {"w1", "w2"}
    cluster = SimulatedCluster(3, Faults(bad_starts=bad, start_error=lambda: EngineStartError("no GPU memory")))
    cluster.refuse_s = 0.5
    ledger = _ledger(*([500] * 60))
    simulation = simulate(ledger, cluster, engines=3)
    asked: list[tuple[float, int]] = []
    simulation.driver._progress = lambda snapshot: asked.append((cluster.now, len(cluster.started)))
    simulation.driver.run()
    assert ledger.is_complete
    assert max(count for now, count in asked if now < cluster.start_s) == 5
    assert len(cluster.started) < 12


def test_an_engine_that_cannot_start_as_configured_is_not_tried_again() -> None:
    cluster = SimulatedCluster(1, Faults(start=1.0, start_error=lambda: EngineStartError("no such model")))
    with pytest.raises(EngineStartError, match="no such model"):
        simulate(_ledger(5, 5), cluster, engines=1).driver.run()
    assert len(cluster.started) == 1


def test_a_cluster_without_room_is_an_error_that_says_so() -> None:
    with pytest.raises(ClusterError, match="no room"):
        simulate(_ledger(5), SimulatedCluster(0, Faults()), engines=1).driver.run()


def test_room_for_fewer_engines_than_asked_for_is_enough() -> None:
    ledger = _ledger(*([5] * 20))
    simulate(ledger, SimulatedCluster(1, Faults()), engines=4).driver.run()
    assert ledger.is_complete


def test_a_worker_that_dies_is_replaced_though_another_one_found_no_room() -> None:
    ledger = _ledger(*([50] * 20))
    cluster = SimulatedCluster(1, Faults({("s3://b/9.parquet", 0, 3)}))
    simulate(ledger, cluster, engines=4).driver.run()
    assert ledger.is_complete


def test_an_automatic_fleet_grows_with_the_cluster() -> None:
    ledger = _ledger(*([1000] * 100))
    cluster = SimulatedCluster(1, Faults())
    simulation = simulate(ledger, cluster)

    def grow(snapshot: object) -> None:
        cluster.room = 4

    simulation.driver._progress = grow
    simulation.driver.run()
    assert len(cluster.started) == 4


def test_a_fleet_of_a_number_grows_up_to_it_when_room_appears() -> None:
    ledger = _ledger(*([1000] * 100))
    cluster = SimulatedCluster(1, Faults())
    simulation = simulate(ledger, cluster, engines=3)
    wanted: list[int] = []

    def grow(snapshot: Snapshot) -> None:
        wanted.append(snapshot.engines_wanted)
        if wanted[-1] == 1:
            cluster.room = 8

    simulation.driver._progress = grow
    simulation.driver.run()
    assert wanted[0] == 3
    assert 1 in wanted
    assert max(wanted[wanted.index(1) :]) == 3
    assert len(cluster.started) == 3 + 2
    assert ledger.is_complete


@pytest.mark.parametrize("engines", [4, None])
def test_room_that_others_have_taken_is_not_asked_for_again_until_it_changes(engines: int | None) -> None:
    """The cluster's machines hold four; fails when each look at them makes the driver ask anew."""
    ledger, cluster = _ledger(*([1000] * 100)), SimulatedCluster(2, Faults())
    cluster.taken_by_others = 2
    simulation = simulate(ledger, cluster, engines=engines)
    asked: list[int] = []

    def note(snapshot: Snapshot) -> None:
        asked.append(len(cluster.started))
        if snapshot.documents > 50_000:
            cluster.room = 3

    simulation.driver._progress = note
    simulation.driver.run()
    assert ledger.is_complete
    assert asked[len(asked) // 3] == 4
    assert len(cluster.started) == 4 + (engines or 5) - 2


def test_workers_that_found_no_room_have_no_share_of_the_work() -> None:
    """Fails when all that are asked for count as coming: none would prefetch."""
    ledger, cluster = _ledger(*([1000] * 6)), SimulatedCluster(1, Faults())
    cluster.refuse_s = 1000.0
    simulation = simulate(ledger, cluster, engines=6)
    held: list[int] = []
    simulation.driver._progress = lambda snapshot: held.append(max(map(len, cluster.queues.values()), default=0))
    simulation.driver.run()
    assert max(held) == 2


def test_want_of_memory_halves_the_concurrency_of_later_workers() -> None:
    cluster = SimulatedCluster(1, Faults(memory_deaths=2))
    simulate(_ledger(5), cluster, engines=1).driver.run()
    assert cluster.started == [64, 32, 16]


def test_workers_that_run_out_of_memory_together_halve_the_concurrency_once(caplog: pytest.LogCaptureFixture) -> None:
    """Fails when each death halves what the one before it has halved."""
    cluster = SimulatedCluster(4, Faults(memory_deaths=4))
    with caplog.at_level(logging.WARNING):
        simulate(_ledger(5, 5, 5, 5), cluster, engines=4).driver.run()
    assert cluster.started == [64] * 4 + [32] * 4
    assert caplog.text.count("concurrency 32 from now on") == 1


def test_a_stop_leaves_what_is_committed_and_a_second_submission_completes_it() -> None:
    ledger = _ledger(*([100] * 20))
    cluster = SimulatedCluster(2, Faults())
    simulation = simulate(ledger, cluster, engines=2)
    cluster.stop_at = (8.0, simulation.stop)
    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        simulation.driver.run()
    done = dict(cluster.parts)
    assert 0 < len(done) < 20
    again = _ledger(*([100] * 20), present=tuple(done))
    second = SimulatedCluster(2, Faults())
    second.parts = dict(done)
    simulate(again, second, engines=2).driver.run()
    assert again.is_complete
    assert not done.keys() & second.attempts.keys()


def test_too_few_records_stop_the_run_early() -> None:
    ledger = _ledger(*([10] * 100))
    recordless = {(f"s3://b/{number}.parquet", 0, row) for number in range(100) for row in range(6)}
    cluster = SimulatedCluster(1, Faults(recordless=recordless))
    with pytest.raises(LimitReachedError, match="stop_if_valid_below"):
        simulate(ledger, cluster, engines=1, stop_rule=StopRule(0.5, 20)).driver.run()
    assert 20 <= ledger.documents < 100


@pytest.mark.parametrize("engines", [1, 30])
def test_a_run_is_judged_by_its_sample_and_not_by_the_longest_shards(engines: int) -> None:
    """The first fifth gives no record; fails when the outcomes that come first are taken for all."""
    ledger = _ledger(*([10] * 100))
    recordless = {(f"s3://b/{number}.parquet", 0, row) for number in range(20) for row in range(10)}
    cluster = SimulatedCluster(engines, Faults(recordless=recordless))
    order = ledger.pending()
    ledger.sample = frozenset(spread(order, 100))
    simulate(ledger, cluster, engines=engines, stop_rule=StopRule(0.5, 100)).driver.run()
    assert ledger.is_complete
    assert ledger.sample_tally.documents == 100
    assert ledger.sample_tally.records == 80


def test_a_shard_that_is_given_up_is_worked_on_no_more() -> None:
    """Its other half neither waits nor comes back when its worker is lost; fails when one does."""
    shard = shard_of(1, 4)
    dispatcher = Dispatcher({shard.shard_id: shard}, attempts_per_shard=1)
    for now, name in ((0.0, "w1"), (100.0, "w2")):
        dispatcher.add_worker(name)
        dispatcher.assign(now)
        dispatcher.lost(name, EngineDeadError("died"), now)
    for name in ("w3", "w4"):
        dispatcher.add_worker(name)
    halves = {item.worker_id: item.task.task_id for item in dispatcher.assign(200.0)}
    assert sorted(halves) == ["w3", "w4"]
    dispatcher.failed("w3", halves["w3"], EngineError("no such column"), 200.0)
    assert str(dispatcher.given_up[shard.shard_id]) == "no such column"
    dispatcher.lost("w4", EngineDeadError("died"), 200.0)
    assert dispatcher.assign(1000.0) == []
    assert (dispatcher.open_tasks, dispatcher.next_due()) == (0, None)


def test_a_half_that_is_given_back_still_runs_alone() -> None:
    """Fails when it waits with the others: the next of them would be handed to the same worker, and die of it."""
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(6))}
    dispatcher = Dispatcher(shards, attempts_per_shard=1)
    dispatcher.add_worker("w1")
    poison = dispatcher.assign(0.0)[0].task
    dispatcher.lost("w1", EngineDeadError("died"), 0.0)
    dispatcher.add_worker("w2")
    while (held := dispatcher.assign(100.0)[0].task) != poison:
        dispatcher.finished("w2", held.task_id)
    dispatcher.lost("w2", EngineDeadError("died"), 100.0)
    dispatcher.add_worker("w3")
    while not (half := dispatcher.assign(100.0)[0].task).is_half:
        dispatcher.finished("w3", half.task_id)
    dispatcher.released("w3")
    dispatcher.add_worker("w4")
    assert [item.task for item in dispatcher.assign(100.0)] == [half]
