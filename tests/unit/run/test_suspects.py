"""What was running when a worker died is tried again alone, so that the next death names the guilty one."""

from __future__ import annotations

import random

from pipeline.core.errors import EngineDeadError
from pipeline.run.dispatch import Dispatcher
from tests.unit.run.simulated import shard_of


def test_a_suspect_has_its_worker_alone_while_others_wait() -> None:
    """Fails when a worker with a suspect prefetches: its death would make a suspect of what it did not run."""
    shards = {shard.shard_id: shard for shard in (shard_of(number, 4) for number in range(6))}
    dispatcher = Dispatcher(shards, attempts_per_shard=3, rng=random.Random(1))
    dispatcher.add_worker("dies")
    dispatcher.assign(0.0)
    suspects = dispatcher.lost("dies", EngineDeadError("gone"), 0.0)
    assert len(suspects) == 2
    dispatcher.add_worker("next")
    tried: list[str] = []
    for _ in suspects:
        dispatcher.assign(1e6)
        [alone] = dispatcher.running("next")
        dispatcher.finished("next", alone)
        tried.append(alone)
    assert sorted(tried) == sorted(suspects)
    dispatcher.assign(1e6)
    assert len(dispatcher.running("next")) == 2
