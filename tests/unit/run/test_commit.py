"""One object for a shard's outcomes: what stands is the truth, and what is not whole is never put."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from pipeline.core.document import Document, Piece, Shard
from pipeline.core.errors import VerificationError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.run.attempt import Work
from pipeline.run.bisection import Bisection
from pipeline.run.commit import Committer
from pipeline.run.intake import Row, rows_of
from pipeline.run.task import Merge, Task
from pipeline.storage.arrow import record_schema
from pipeline.storage.footer import Timings
from pipeline.storage.layout import RunLayout
from pipeline.storage.parts import read_part
from tests.stores import MemoryStore
from tests.unit.run.simulated import shard_of

LAYOUT = RunLayout("s3://b/run/")
SHARD = shard_of(0, 4)
TASK = Task(SHARD.shard_id, SHARD, SHARD.shard_id)
PART = LAYOUT.part(SHARD.shard_id)


class Note(BaseModel):
    text: str


@pytest.fixture
def committer() -> Committer:
    return Committer(MemoryStore(), LAYOUT, record_schema(Note), "f" * 16, "played")


def _work(*, valid: int, failed: int = 0) -> Work:
    now = datetime.now(UTC)
    outcomes = [Outcome(f"v{number}", Status.VALID, record={"text": "x"}) for number in range(valid)]
    outcomes += [Outcome(f"f{number}", Status.FAILED, Cause.EMPTY) for number in range(failed)]
    return Work(tuple(outcomes), Timings(), 0, now, now)


def test_of_two_attempts_the_second_is_told_what_the_first_has_put(committer: Committer) -> None:
    """Fails when an attempt counts its own outcomes where another's stand."""
    first = committer.commit(TASK, _work(valid=4), "one")
    second = committer.commit(TASK, _work(valid=1, failed=3), "two")
    assert (first.is_ours, second.is_ours) == (True, False)
    assert second.tally == first.tally == committer.standing(TASK)
    assert set(read_part(committer.store, PART)["_attempt"].to_pylist()) == {"one"}


@pytest.mark.parametrize("valid", [3, 5])
def test_outcomes_that_are_not_one_a_document_are_not_put(valid: int, committer: Committer) -> None:
    with pytest.raises(VerificationError, match=f"{valid} outcomes for 4 documents"):
        committer.commit(TASK, _work(valid=valid), "one")
    assert committer.standing(TASK) is None


def test_what_another_run_has_put_is_not_taken_for_ours(committer: Committer) -> None:
    replace(committer, fingerprint="0" * 16).commit(TASK, _work(valid=4), "one")
    with pytest.raises(VerificationError, match="belongs to run 0000"):
        committer.standing(TASK)
    with pytest.raises(VerificationError, match="belongs to run 0000"):
        committer.commit(TASK, _work(valid=4), "two")


def test_a_part_that_does_not_hold_the_shards_rows_is_refused(committer: Committer) -> None:
    shorter = shard_of(0, 3)
    committer.commit(Task(SHARD.shard_id, shorter, SHARD.shard_id), _work(valid=3), "one")
    with pytest.raises(VerificationError, match="holds 3 outcomes for 4 documents"):
        committer.standing(TASK)


def _doubled(piece: Piece) -> Iterator[Document]:
    """Rows 0 and 2 have one id."""
    return (Document("same" if row in (0, 2) else f"d{row}", "x") for row in range(piece.row_start, piece.row_stop))


def _rows(shard: Shard, before: Shard | None) -> Iterator[Row]:
    return rows_of(shard, _doubled, document_bytes=100, before=before)


def test_a_document_that_crashed_the_engine_has_what_was_wrong_with_it_before(committer: Committer) -> None:
    """Fails when its id is not looked for among the rows of the whole shard before its own."""
    bisection = Bisection(SHARD, SHARD.shard_id)
    bisection.divide(SHARD.shard_id)
    first, second = bisection.leaves
    bisection.divide(second.shard_id)
    committer.commit(Task(first.shard_id, first.shard, SHARD.shard_id), _work(valid=2), "half")
    for leaf in bisection.leaves[1:]:
        bisection.settle(leaf.shard_id, is_crashed=True)
    merge = Task("merge", SHARD, SHARD.shard_id, Merge(bisection.leaves))
    assert committer.merge(merge, "merging", _rows).is_ours
    part = read_part(committer.store, PART)
    assert part["_cause"].to_pylist() == [None, None, "duplicate_id", "engine_crash"]
    assert part["_document_id"].to_pylist() == ["v0", "v1", "same", "d3"]
