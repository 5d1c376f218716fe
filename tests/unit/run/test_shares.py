"""Who prefetches where shards differ in length: nobody who would hold more than a share of what is left."""

from __future__ import annotations

import random

from pipeline.run.dispatch import Dispatcher
from tests.unit.run.simulated import shard_of


def _dispatcher(*sizes: int) -> tuple[Dispatcher, dict[str, int]]:
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(len(sizes)))}
    text_bytes = dict(zip(shards, sizes, strict=True))
    return Dispatcher(shards, attempts_per_shard=3, text_bytes=text_bytes, rng=random.Random(1)), text_bytes


def _held(dispatcher: Dispatcher, sizes: dict[str, int], worker_id: str) -> list[int]:
    return [sizes[task_id] for task_id in dispatcher.running(worker_id)]


def test_a_worker_with_a_long_shard_prefetches_none_and_one_with_a_short_shard_does() -> None:
    """Fails when the second longest shard waits behind the longest one, while its own worker would be done with it."""
    dispatcher, sizes = _dispatcher(90, 40, 10, 10, 10, 10, 10, 10)
    for name in ("a", "b", "c"):
        dispatcher.add_worker(name)
    dispatcher.assign(0.0)
    held = {name: _held(dispatcher, sizes, name) for name in ("a", "b", "c")}
    assert held == {"a": [90], "b": [40, 10], "c": [10, 10]}


def test_workers_that_are_to_come_have_their_share() -> None:
    for coming, expected in ((0, [40, 40]), (9, [40])):
        dispatcher, sizes = _dispatcher(*[40] * 12)
        dispatcher.add_worker("a")
        dispatcher.assign(0.0, coming)
        assert _held(dispatcher, sizes, "a") == expected


def test_a_worker_prefetches_again_after_its_long_shard() -> None:
    dispatcher, sizes = _dispatcher(90, 10, 10, 10, 10, 10, 10, 10)
    for name in ("a", "b"):
        dispatcher.add_worker(name)
    dispatcher.assign(0.0)
    (long,) = dispatcher.running("a")
    dispatcher.finished("a", long)
    dispatcher.assign(1.0)
    assert _held(dispatcher, sizes, "a") == [10, 10]


def test_a_giant_at_the_head_keeps_nobody_from_prefetching_once_it_is_taken() -> None:
    """Fails when a worker that was refused is not looked at again before it has done what it holds."""
    dispatcher, sizes = _dispatcher(10, 10, 500, *[10] * 40)
    for name in ("a", "b"):
        dispatcher.add_worker(name)
    dispatcher.assign(0.0)
    assert [_held(dispatcher, sizes, name) for name in ("a", "b")] == [[10], [10]]
    dispatcher.add_worker("c")
    dispatcher.assign(1.0)
    assert [_held(dispatcher, sizes, name) for name in ("a", "b", "c")] == [[10, 10], [10, 10], [500]]


def test_what_is_left_is_known_after_any_turn_of_events() -> None:
    """The sums agree with what waits and what is held, and who has been at a task for longer comes first."""
    dispatcher, sizes = _dispatcher(*range(40, 0, -1))
    rng = random.Random(3)
    workers = [f"w{number}" for number in range(4)]
    for name in workers:
        dispatcher.add_worker(name)
    now = 0.0
    while not dispatcher.is_finished:
        now += 100.0
        dispatcher.assign(now, rng.randrange(3))
        waiting = sum(entry.size for entry in dispatcher._waiting)
        held = sum(size for name in workers for size in _held(dispatcher, sizes, name))
        assert (dispatcher._waiting.size, dispatcher._held.size) == (waiting, held)
        worked = list(dispatcher._held.longest_first(now))
        assert [worked_s for worked_s, _ in worked] == sorted((worked_s for worked_s, _ in worked), reverse=True)
        assert sorted(len(entries) for _, entries in worked) == sorted(
            len(dispatcher.running(name)) for name in workers if dispatcher.running(name)
        )
        name = rng.choice(workers)
        if running := dispatcher.running(name):
            if rng.random() < 0.2:
                dispatcher.released(name)
                dispatcher.add_worker(name)
            else:
                dispatcher.finished(name, rng.choice(running))
    assert dispatcher._waiting.size == 0
