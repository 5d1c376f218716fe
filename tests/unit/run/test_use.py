"""What an engine's wall time went into: busy while it has a request, and taken once however shards overlap."""

from __future__ import annotations

import pytest

from pipeline.report.use import EngineUse
from pipeline.run.use import UseClock


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_waiting_and_committing_are_time_without_work(clock: Clock) -> None:
    use = UseClock(clock)
    clock.now = 150.0
    use.enter()
    clock.now = 152.0
    use.enter()
    clock.now = 156.0
    use.leave()
    use.leave()
    clock.now = 160.0
    use.enter()
    clock.now = 164.0
    use.leave()
    clock.now = 170.0
    assert use.take() == EngineUse(wall_s=20, request_wall_s=14, busy_s=10)


def test_what_one_shard_takes_the_next_one_does_not(clock: Clock) -> None:
    """Fails when the shards' times, which overlap, add up to more than the clock."""
    use = UseClock(clock)
    use.enter()
    clock.now = 103.0
    first = use.take()
    assert first == EngineUse(wall_s=3, request_wall_s=3, busy_s=3)
    clock.now = 104.0
    use.leave()
    clock.now = 109.0
    second = use.take()
    assert second == EngineUse(wall_s=6, request_wall_s=1, busy_s=1)
    assert first.plus(second) == EngineUse(wall_s=9, request_wall_s=4, busy_s=4)
    clock.now = 111.0
    assert use.take() == EngineUse(wall_s=2)


def test_an_engine_without_requests_has_used_no_time(clock: Clock) -> None:
    use = UseClock(clock)
    clock.now = 500.0
    assert use.take() == EngineUse()
