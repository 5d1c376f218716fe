"""What becomes of a task that has fallen behind while a worker is idle: two workers have it, and it is done once."""

from __future__ import annotations

import random

import pytest

from pipeline.core.document import Shard
from pipeline.core.errors import EngineDeadError, EngineError
from pipeline.run.dispatch import Dispatcher
from pipeline.run.pace import BEHIND, FINISHED_BEFORE_JUDGING, Pace
from pipeline.run.task import Assignment
from tests.unit.run.simulated import shard_of

USUAL_S = 10.0
ERROR = EngineDeadError("gone")


def _late() -> tuple[Dispatcher, str, float]:
    """A dispatcher with one task left, on worker `slow` since 0, while `quick` is idle; the task; the time now.

    `quick` has done enough others, each in `USUAL_S`.
    """
    shards: dict[str, Shard] = {
        shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(3 * FINISHED_BEFORE_JUDGING))
    }
    dispatcher = Dispatcher(shards, attempts_per_shard=3, rng=random.Random(1))
    dispatcher.add_worker("slow")
    first = dispatcher.assign(0.0)[0].task.task_id
    dispatcher.add_worker("quick")
    now = 0.0
    while dispatcher.open_tasks > 1:
        dispatcher.assign(now)
        now += USUAL_S
        dispatcher.assign(now)
        for name in dispatcher.running("quick")[:1]:
            dispatcher.finished("quick", name)
        for prefetched in dispatcher.running("slow")[1:]:
            dispatcher.finished("slow", prefetched)
    assert dispatcher.running("slow") == (first,)
    return dispatcher, first, now


def _doubled() -> tuple[Dispatcher, str, float]:
    dispatcher, task_id, now = _late()
    now += BEHIND * USUAL_S * FINISHED_BEFORE_JUDGING
    assert [(item.worker_id, item.task.task_id) for item in dispatcher.assign(now)] == [("quick", task_id)]
    return dispatcher, task_id, now


def test_an_idle_worker_gets_what_has_fallen_behind_once_and_under_another_number() -> None:
    """Fails when `assign` does not ask `_fallen_behind`."""
    dispatcher, task_id, now = _late()
    assert dispatcher.assign(0.0) == []
    (again,) = dispatcher.assign(now + BEHIND * USUAL_S * FINISHED_BEFORE_JUDGING)
    assert (again.worker_id, again.task.task_id, again.attempt) == ("quick", task_id, 2)
    dispatcher.add_worker("third")
    assert dispatcher.assign(now + 1e6) == []


@pytest.mark.parametrize("first", ["quick", "slow"])
def test_the_first_to_finish_ends_it_and_the_other_changes_nothing(first: str) -> None:
    dispatcher, task_id, now = _doubled()
    assert dispatcher.finished(first, task_id) == task_id
    assert dispatcher.is_finished
    second = "slow" if first == "quick" else "quick"
    dispatcher.lost(second, ERROR, now)
    assert dispatcher.is_finished
    assert dispatcher.open_tasks == 0
    assert not dispatcher.given_up


def test_both_finish_and_it_counts_once() -> None:
    dispatcher, task_id, _ = _doubled()
    dispatcher.finished("slow", task_id)
    dispatcher.finished("quick", task_id)
    assert dispatcher.is_finished
    assert dispatcher.open_tasks == 0


@pytest.mark.parametrize("what", ["lost", "failed", "released"])
def test_what_befalls_one_of_them_is_no_fault_of_the_task_while_the_other_has_it(what: str) -> None:
    """Fails when `_is_open` does not look at the other holder."""
    dispatcher, task_id, now = _doubled()
    if what == "lost":
        dispatcher.lost("slow", ERROR, now)
    elif what == "failed":
        dispatcher.failed("slow", task_id, EngineError("no"), now)
    else:
        dispatcher.released("slow")
    assert dispatcher.next_due() is None
    assert dispatcher.finished("quick", task_id) == task_id
    assert dispatcher.is_finished


def test_when_both_are_lost_it_is_a_suspect_like_any_other() -> None:
    dispatcher, task_id, now = _doubled()
    dispatcher.lost("slow", ERROR, now)
    dispatcher.lost("quick", ERROR, now)
    assert not dispatcher.is_finished
    due = dispatcher.next_due()
    assert due is not None
    dispatcher.add_worker("new")
    (again,) = dispatcher.assign(due)
    assert isinstance(again, Assignment)
    assert (again.task.task_id, again.attempt) == (task_id, 3)
    assert dispatcher.finished("new", task_id) == task_id
    assert dispatcher.is_finished


def _with_two_left(worker_id: str) -> tuple[Dispatcher, list[str], float]:
    """A worker that has done enough for a usual time to be known, and holds the last two tasks; their ids; the time."""
    count = FINISHED_BEFORE_JUDGING + 2
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(count))}
    dispatcher = Dispatcher(shards, attempts_per_shard=3, rng=random.Random(1))
    dispatcher.add_worker(worker_id)
    now = 0.0
    for name in list(shards)[:-2]:
        dispatcher.assign(now)
        now += USUAL_S
        dispatcher.assign(now)
        dispatcher.finished(worker_id, name)
    dispatcher.assign(now)
    return dispatcher, list(shards)[-2:], now


def test_the_wait_behind_another_task_of_the_same_worker_is_no_time_of_its_own() -> None:
    """Fails when the clock of a prefetched task starts when it is handed over: the usual time is then twice as long."""
    dispatcher, left, now = _with_two_left("slow")
    assert sorted(dispatcher.running("slow")) == sorted(left)
    dispatcher.add_worker("quick")
    assert dispatcher.assign(now + BEHIND * USUAL_S - 1) == []
    (late,) = dispatcher.assign(now + BEHIND * USUAL_S + 1)
    assert (late.worker_id, late.task.task_id) == ("quick", left[0])


def test_of_a_stuck_worker_each_task_is_handed_out_once_more_and_none_that_another_has_done() -> None:
    """Fails when the first one, which another worker has done meanwhile, is taken for late again and again."""
    dispatcher, left, now = _with_two_left("stuck")
    assert list(dispatcher.running("stuck")) == left
    dispatcher.add_worker("idle")
    now += BEHIND * USUAL_S + 1
    for name in left:
        assert [item.task.task_id for item in dispatcher.assign(now)] == [name]
        assert dispatcher.finished("idle", name) == name
    assert dispatcher.assign(now) == []
    assert dispatcher.is_finished


def test_what_a_worker_finds_committed_says_nothing_of_how_long_a_task_takes() -> None:
    """As where two drivers work at one run; fails when looking whether a part stands counts as doing it."""
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(2 * FINISHED_BEFORE_JUDGING))}
    dispatcher = Dispatcher(shards, attempts_per_shard=3, rng=random.Random(1))
    for name in ("works", "finds"):
        dispatcher.add_worker(name)
    now = 0.0
    first = dispatcher.assign(now)[0].task.task_id
    for _ in shards:
        now += 0.01
        for task_id in (*dispatcher.running("finds"), *dispatcher.running("works")[1:]):
            worker_id = "finds" if task_id in dispatcher.running("finds") else "works"
            dispatcher.finished(worker_id, task_id, is_ours=False)
        dispatcher.assign(now)
    assert len(dispatcher.done) == len(shards) - 1
    assert dispatcher.running("works") == (first,)
    assert dispatcher.assign(now + 1000 * USUAL_S) == []


def test_a_long_task_is_late_by_its_own_measure_and_a_short_one_by_the_mean() -> None:
    """Fails when every task is held against the mean time alone."""
    pace = Pace()
    for _ in range(FINISHED_BEFORE_JUDGING):
        assert not pace.is_late(10, 1e6)
        pace.add(100, USUAL_S)
    for size, times in ((10, 1), (100, 1), (500, 5)):
        assert not pace.is_late(size, BEHIND * USUAL_S * times - 1)
        assert pace.is_late(size, BEHIND * USUAL_S * times + 1)


def test_tasks_without_text_are_late_by_the_mean() -> None:
    """Fails with a division by zero."""
    pace = Pace()
    for _ in range(FINISHED_BEFORE_JUDGING):
        pace.add(0, USUAL_S)
    assert pace.is_late(0, BEHIND * USUAL_S + 1)


def test_of_two_that_work_the_short_one_that_hangs_is_doubled_and_the_long_one_is_not() -> None:
    """Fails when the one that began first is taken for late, whatever its size."""
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(20))}
    sizes = {shard_id: 1000 if number == 0 else 10 for number, shard_id in enumerate(shards)}
    dispatcher = Dispatcher(shards, attempts_per_shard=3, text_bytes=sizes, rng=random.Random(1))
    for name in ("long", "short", "quick"):
        dispatcher.add_worker(name)
    long, short, _ = (item.task.task_id for item in dispatcher.assign(0.0)[:3])
    dispatcher.released("short")
    dispatcher.add_worker("short")
    dispatcher.assign(1.0)
    now = 1.0
    while dispatcher.open_tasks > 2:
        now += USUAL_S
        dispatcher.assign(now)
        for prefetched in dispatcher.running("short")[1:]:
            dispatcher.finished("short", prefetched)
        for name in dispatcher.running("quick")[:1]:
            dispatcher.finished("quick", name)
    (late,) = dispatcher.assign(now)
    assert (late.worker_id, late.task.task_id) == ("quick", short)
    assert dispatcher.running("long") == (long,)


def test_a_worker_is_unneeded_when_there_are_more_idle_ones_than_open_tasks() -> None:
    dispatcher, _, _ = _late()
    assert dispatcher.unneeded() == ()
    dispatcher.add_worker("third")
    assert len(dispatcher.unneeded()) == 1
