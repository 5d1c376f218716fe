"""A plan against its parts: every planned document once, and a rule that stops a run that gives too few records."""

from __future__ import annotations

import pytest

from pipeline.core.document import InputObject, Plan, Shard
from pipeline.core.errors import VerificationError
from pipeline.core.outcome import Cause, Status
from pipeline.run.ledger import Ledger, StopRule, Tally
from tests.unit.run.simulated import shard_of


def _plan(*sizes: int) -> Plan:
    shards = tuple(shard_of(number, size) for number, size in enumerate(sizes))
    objects = tuple(InputObject(shard.pieces[0].uri, "e", 1, (shard.rows,), (1,)) for shard in shards)
    return Plan("f" * 16, objects, shards)


def _tally(documents: int) -> Tally:
    return Tally({(Status.VALID, None): documents - 1, (Status.FAILED, Cause.EMPTY): 1}, 10, 5)


@pytest.mark.parametrize("documents", [3, 5])
def test_a_part_whose_outcomes_are_not_one_a_document_is_refused(documents: int) -> None:
    ledger = Ledger(_plan(4, 4))
    [first, _] = ledger.shards
    with pytest.raises(VerificationError, match=f"{documents} outcomes for 4 documents"):
        ledger.commit(first, _tally(documents))
    assert first in ledger.pending()


def test_a_part_of_no_planned_shard_is_refused() -> None:
    with pytest.raises(VerificationError, match="no planned shard"):
        Ledger(_plan(4)).commit("0" * 16, _tally(4))


def test_a_shard_that_two_workers_committed_counts_once() -> None:
    """As where one had fallen behind, and both came to its end."""
    ledger = Ledger(_plan(4, 4))
    [first, second] = ledger.shards
    for _ in range(2):
        ledger.commit(first, _tally(4))
    assert (ledger.documents, ledger.shards_done, ledger.tally) == (4, 1, _tally(4))
    assert ledger.sample_tally == ledger.tally
    assert list(ledger.pending()) == [second]


def test_what_was_committed_and_is_listed_no_more_is_missing() -> None:
    """Fails when what workers said counts for more than what stands."""
    ledger = Ledger(_plan(4, 4, 4))
    [first, second, third] = ledger.shards
    ledger.commit(first, _tally(4))
    ledger.commit(second, _tally(4))
    assert ledger.reconcile([second, "0" * 16]) == (first, third)


def test_a_plan_that_holds_a_shard_twice_is_refused() -> None:
    plan = _plan(4)
    doubled: tuple[Shard, ...] = plan.shards * 2
    with pytest.raises(VerificationError, match="1 shards twice"):
        Ledger(Plan(plan.fingerprint, plan.objects, doubled))


@pytest.mark.parametrize(
    ("documents", "records", "stops"), [(9, 0, False), (10, 4, True), (10, 5, False), (1000, 499, True)]
)
def test_a_run_is_stopped_when_too_few_documents_give_a_record(documents: int, records: int, stops: bool) -> None:
    assert (StopRule(0.5, 10).verdict(documents, records) is not None) == stops
    assert StopRule(None, 10).verdict(documents, records) is None
