"""What a worker's process needs beside the engine: a shared guide, a watch on its loop, room on a machine."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.core.errors import EngineStartError
from pipeline.engine.shared_guide import shared_guide_file
from pipeline.run import loop_watch
from pipeline.run.capacity import Need, engines_that_fit, missing
from pipeline.run.fleet import LOSSES_AT_MOST, Fleet
from pipeline.run.ledger import StopRule


def test_a_guide_is_written_once_and_a_spoilt_one_is_replaced(tmp_path: Path) -> None:
    path = shared_guide_file("abc", b"guide", tmp_path)
    written = path.stat().st_mtime_ns
    assert shared_guide_file("abc", b"guide", tmp_path) == path
    assert path.stat().st_mtime_ns == written
    path.write_bytes(b"spoil")
    assert shared_guide_file("abc", memoryview(b"guide"), tmp_path).read_bytes() == b"guide"
    assert [item.name for item in tmp_path.iterdir()] == ["guide-abc.bin"]


def test_a_guide_that_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    """Fails when what was written beside its place stays there, to fill the memory with each further try."""
    (tmp_path / "guide-abc.bin").mkdir()
    with pytest.raises(EngineStartError, match="cannot be shared"):
        shared_guide_file("abc", b"guide", tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["guide-abc.bin"]


def test_many_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4000
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: shared_guide_file("abc", data, tmp_path), range(32)))
    assert {path.read_bytes() == data for path in paths} == {True}
    assert len(list(tmp_path.iterdir())) == 1


class Ticks:
    """What a watch waits on, with the test in the place of a clock."""

    def __init__(self) -> None:
        self._waits: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ends: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def wait(self, _: float) -> bool:
        self._waits.put(None)
        return self._ends.get()

    def set(self) -> None:
        self._ends.put(True)

    def settle(self) -> None:
        """Returns when the last tick has been acted on, and the next is awaited."""
        self._waits.get(timeout=30)

    def tick(self) -> None:
        self._ends.put(False)


async def test_a_loop_that_stands_still_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, noticed, sleep = Ticks(), threading.Event(), asyncio.sleep
    monkeypatch.setattr(loop_watch, "threading", SimpleNamespace(Event=lambda: ticks, Thread=threading.Thread))
    monkeypatch.setattr(asyncio, "sleep", lambda _: sleep(0))
    watch = loop_watch.LoopWatch(1.0, noticed.set)
    for _ in range(30):
        ticks.settle()
        await asyncio.sleep(0)  # the loop lives
        ticks.tick()
    for _ in range(9):
        ticks.settle()
        ticks.tick()
    ticks.settle()
    assert not noticed.is_set()
    ticks.tick()
    assert noticed.wait(30)
    watch.close()


def test_a_loop_that_has_ended_is_not_taken_for_one_that_stands_still() -> None:
    before, noticed = set(threading.enumerate()), threading.Event()

    async def watched() -> loop_watch.LoopWatch:
        return loop_watch.LoopWatch(0.2, noticed.set)

    asyncio.run(watched())
    for thread in set(threading.enumerate()) - before:
        thread.join(30)
        assert not thread.is_alive()
    assert not noticed.is_set()


@pytest.mark.parametrize(
    ("machines", "need", "fit"),
    [
        ([{"CPU": 8, "GPU": 4}], Need(1, 1), 4),
        ([{"CPU": 2, "GPU": 4}], Need(1, 1), 2),
        ([{"CPU": 8, "GPU": 1}, {"CPU": 8, "GPU": 1}], Need(1, 2), 0),
        ([{"CPU": 8, "GPU": 3}, {"CPU": 8, "GPU": 3}], Need(1, 2), 2),
        ([{"CPU": 8, "GPU": 1}], Need(1, 0.25), 4),
        ([{"CPU": 2}], Need(1, 0), 2),
        ([{"CPU": 2}], Need(0.1, 0), 20),
        ([], Need(1, 0), 0),
    ],
)
def test_an_engine_never_spans_two_machines(machines: list[dict[str, float]], need: Need, fit: int) -> None:
    assert engines_that_fit(machines, need) == fit


def test_what_is_missing_is_named_with_what_to_do() -> None:
    assert "enough GPU" in missing([{"CPU": 8}], Need(1, 1))
    assert "gpus_per_engine: 0" in missing([{"CPU": 8}], Need(1, 1))
    assert "enough CPU" in missing([{"CPU": 2, "GPU": 8}], Need(4, 1))
    assert "has both" in missing([{"CPU": 1, "GPU": 8}, {"CPU": 8}], Need(4, 1))
    assert "taken" in missing([{"CPU": 8, "GPU": 8}], Need(4, 1))
    assert "none" in missing([], Need(4, 1))


def test_a_fleet_never_starts_more_workers_than_there_are_tasks() -> None:
    fleet = Fleet(wanted=10)
    assert fleet.to_start(3) == 3
    fleet.starting = 3
    assert fleet.to_start(3) == 0


def test_losses_with_nothing_finished_in_between_end_in_giving_up() -> None:
    fleet = Fleet(wanted=1)
    for _ in range(LOSSES_AT_MOST + 2):
        assert fleet.reason_to_give_up() is None
        fleet.ready += 1
        fleet.lost()
    assert fleet.reason_to_give_up() is not None
    fleet.progressed()
    assert fleet.reason_to_give_up() is None


def test_a_wave_that_takes_most_machines_is_measured_by_how_many_there_were() -> None:
    """Fails when the losses are held against the room that the wave left."""
    fleet = Fleet(wanted=1)
    fleet.has_room(100)
    fleet.ready = 100
    fleet.has_room(10)
    for _ in range(90):
        fleet.lost()
    assert fleet.reason_to_give_up() is None
    fleet.progressed()
    for _ in range(LOSSES_AT_MOST + 2 * 10):
        assert fleet.reason_to_give_up() is None
        fleet.ready += 1
        fleet.lost()
    assert fleet.reason_to_give_up() is not None


@pytest.mark.parametrize(
    ("documents", "records", "stops"), [(9, 0, False), (10, 4, True), (10, 5, False), (1000, 499, True)]
)
def test_a_run_is_stopped_when_too_few_documents_give_a_record(documents: int, records: int, stops: bool) -> None:
    assert (StopRule(0.5, 10).verdict(documents, records) is not None) == stops
    assert StopRule(None, 10).verdict(documents, records) is None
