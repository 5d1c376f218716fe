"""How many workers there should be, and when to give up; what a whole run makes of it stands in `test_driver`."""

from __future__ import annotations

from pipeline.run.fleet import LOSSES_AT_MOST, Fleet


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
