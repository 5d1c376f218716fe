"""An error of Ray's is told in its own words, on one line, and never in those of what a worker raised."""

from __future__ import annotations

import pytest
from ray.core.generated.common_pb2 import ActorDiedErrorContext
from ray.exceptions import ActorDiedError, ObjectLostError, RayError, RaySystemError, RayTaskError

from pipeline.run.last_words import last_words

ACTOR = bytes(range(16))
DIED = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "


def _died(detail: str) -> ActorDiedError:
    context = ActorDiedErrorContext(
        actor_id=ACTOR, class_name="Worker", pid=4711, node_ip_address="192.0.2.2", error_message=DIED + detail
    )
    return ActorDiedError(context)


def test_a_death_is_told_with_its_cause_and_the_command_that_shows_the_log() -> None:
    error = _died(
        "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: x"
    )
    assert last_words(error, is_local=False) == (
        f"{DIED}Worker unexpectedly exits with a connection error code 2; "
        f"`ray logs actor --id {ACTOR.hex()} --err` shows more"
    )
    assert last_words(error, is_local=True).endswith("code 2; its log is in the folder of Ray's session")


def test_the_cause_on_a_line_of_its_own_is_not_lost() -> None:
    node = ActorDiedErrorContext(
        actor_id=ACTOR,
        class_name="Worker",
        error_message="The actor died because its node has died. Node Id: ab12\n\tthe actor's node was terminated "
        "unexpectedly: health check failed due to missing too many heartbeats",
    )
    words = last_words(ActorDiedError(node), is_local=False)
    assert "its node has died. Node Id: ab12 the actor's node was terminated unexpectedly: health check failed" in words
    assert "\n" not in words


@pytest.mark.parametrize(
    "error",
    [
        _died("Worker exits unexpectedly. Worker exits with an exit code SECRET."),
        _died("Worker exits because there was an exception in the initialization. Fix it. Exception: SECRET"),
        ActorDiedError(RayTaskError("__init__", "ValueError: SECRET", ValueError("SECRET"))),
        RaySystemError(ValueError("SECRET"), "ValueError: SECRET"),
        RayError("SECRET"),
    ],
)
def test_what_a_worker_raised_is_not_repeated(error: RayError) -> None:
    words = last_words(error, is_local=False)
    assert "SECRET" not in words
    assert "`ray logs " in words


def test_a_lost_answer_is_told_in_a_line_that_is_cut() -> None:
    words = last_words(ObjectLostError("ab" * 400, None, ""), is_local=False)
    assert words.startswith("Failed to retrieve object abab")
    assert len(words) < 400
