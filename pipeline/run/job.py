"""Owns the whole of one submission: preflight, plan, guide, work, report, exit code."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.core.errors import (
    FingerprintError,
    IncompleteError,
    InterruptedRunError,
    LeftOutError,
    RecordmillError,
    StorageError,
    VerificationError,
)
from pipeline.core.spec import JobSpec
from pipeline.report.model import Report
from pipeline.report.write import build_report, write_report
from pipeline.run.dispatch import Dispatcher
from pipeline.run.driver import Driver
from pipeline.run.engines import start_engine
from pipeline.run.fingerprint import schema_digest
from pipeline.run.fleet import Fleet
from pipeline.run.ledger import Ledger, StopRule
from pipeline.run.messages import EngineFactory, Setup
from pipeline.run.plan import longest_first, spread, text_bytes, write_plan
from pipeline.run.preflight import Prepared, prepare
from pipeline.run.progress import LogProgress, Phase, Progress, Snapshot
from pipeline.run.record import import_paths
from pipeline.run.shown import shown_documents
from pipeline.run.stop import stoppable_ray
from pipeline.run.submission import SubmissionLog, write_spec
from pipeline.storage.layout import half_id_of, shard_id_of

__all__ = ["RunResult", "run"]

logger = logging.getLogger(__name__)

RESUMABLE_EXIT = 3


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a submission ended, once its plan stood."""

    exit_code: int
    """0 complete, 1 not every document has an outcome or a limit stopped it, 2, 3 resumable, 130 interrupted."""
    error: RecordmillError | None
    """What ended it, if it did not complete."""
    report: Report | None
    """From what is stored; None where it could not be read, or the run was interrupted."""
    prefix: str


def run(
    spec: JobSpec,
    *,
    base: Path,
    address: str | None = None,
    progress: Progress | None = None,
    engine_factory: EngineFactory = start_engine,
) -> RunResult:
    """Carries out a job, or what is left of it.

    Args:
        spec: the job.
        base: its folder: record classes and templates are looked for there.  Each machine has it at the same path, or
            a copy that Ray made for the job.
        address: a Ray address, `auto` inside `ray job submit`; None starts a cluster on this machine.
        progress: told of the state about twice a second; by default it goes to the log.
        engine_factory: starts the engine in each worker; picklable by name.

    Raises:
        RecordmillError: preflight failed; nothing was started.  Whatever happens later is in the result.
    """
    report_to = LogProgress() if progress is None else progress
    report_to(Snapshot("preflight"))
    prepared = prepare(spec.with_absolute_uris(), base)
    report_to(Snapshot("plan"))
    log = SubmissionLog(prepared.store, prepared.layout)
    prepared = _planned(prepared, log.submission_id)
    ledger = Ledger(prepared.stored.plan, _parts(prepared))
    log.started(prepared.stored.plan.fingerprint, shards_pending=len(ledger.pending()))
    error: RecordmillError | None = None
    try:
        given_up: Mapping[str, RecordmillError] = {}
        if ledger.pending():
            given_up = _work(prepared, ledger, log, base, address, report_to, engine_factory)
        _check_complete(prepared, ledger, given_up)
    except RecordmillError as raised:
        error = raised
        logger.error("run=%s %s", spec.name, raised)
    report_to(_snapshot("report", ledger))
    result = _ended(prepared, log, error)
    report_to(_snapshot("done", ledger))
    return result


def _snapshot(phase: Phase, ledger: Ledger) -> Snapshot:
    return Snapshot(
        phase,
        shards_planned=len(ledger.shards),
        shards_done=ledger.shards_done,
        documents_planned=ledger.documents_planned,
        documents=ledger.documents,
        documents_at_start=ledger.documents_at_start,
        tally=ledger.tally,
    )


def _planned(prepared: Prepared, submission_id: str) -> Prepared:
    """The job with the plan that stands, which another driver may have written a moment ago."""
    if not prepared.is_new:
        # A driver may have died between the plan and the spec.
        write_spec(prepared.store, prepared.layout, prepared.job.spec, attempt=submission_id)
        return prepared
    standing = write_plan(prepared.store, prepared.layout, prepared.stored, attempt=submission_id)
    if standing.plan.fingerprint != prepared.stored.plan.fingerprint:
        raise FingerprintError(f"{prepared.layout.prefix} was taken by another run at this moment")
    write_spec(prepared.store, prepared.layout, prepared.job.spec, attempt=submission_id)
    return prepared.with_plan(standing)


def _parts(prepared: Prepared) -> list[str]:
    return _ids(prepared, prepared.layout.parts_prefix, shard_id_of)


def _halves(prepared: Prepared) -> list[str]:
    return _ids(prepared, prepared.layout.halves_prefix, half_id_of)


def _ids(prepared: Prepared, prefix: str, id_of: Callable[[str], str | None]) -> list[str]:
    found = (id_of(item.uri) for item in prepared.store.list_prefix(prefix))
    return [name for name in found if name is not None]


def _work(
    prepared: Prepared,
    ledger: Ledger,
    log: SubmissionLog,
    base: Path,
    address: str | None,
    progress: Progress,
    engine_factory: EngineFactory,
) -> Mapping[str, RecordmillError]:
    """Starts the cluster's workers and drives them until nothing is left to do; why which shards were given up."""
    spec, guide = prepared.job.spec, prepared.job.guide
    data = None if guide is None else guide.to_bytes()
    if guide is not None and data is not None:
        prepared.store.put_if_absent(prepared.layout.guide(guide.fingerprint), data, attempt=log.submission_id)
    progress(_snapshot("start", ledger))
    with stoppable_ray(spec.name, address, log) as (is_local, stop):
        from pipeline.run.cluster import RayCluster, folder_of_workers
        from pipeline.run.metrics import with_metrics

        setup = Setup(
            spec,
            folder_of_workers(base),
            schema_digest(prepared.job.schema),
            prepared.job.template,
            prepared.stored.plan.fingerprint,
            None if guide is None else guide.fingerprint,
            log.submission_id,
            engine_factory,
            prepared.schema,
            import_paths() if is_local else (),
        )
        cluster = RayCluster(spec.cluster, spec.limits, setup, data, is_local=is_local)
        most = None if spec.cluster.engines == "auto" else spec.cluster.engines
        fleet = Fleet(1 if most is None else most, concurrency=spec.cluster.concurrency, most=most)
        dispatcher = _dispatcher(prepared, ledger)
        driver = Driver(
            spec.name,
            ledger,
            dispatcher,
            fleet,
            cluster,
            stop_rule=StopRule(spec.limits.stop_if_valid_below, spec.limits.after_documents),
            stop=stop,
            progress=with_metrics(progress, spec.name),
        )
        try:
            try:
                driver.run()
            finally:
                log.used(driver.use)
        except InterruptedRunError as error:
            # At once: between SIGTERM and SIGKILL there are three seconds, and leaving Ray may take longer.
            log.ended(error.exit_code, error.message)
            raise
        finally:
            cluster.close()
    return dispatcher.given_up


def _dispatcher(prepared: Prepared, ledger: Ledger) -> Dispatcher:
    """The work that is left, in its order: the longest first, and before them those by which a run may be stopped."""
    limits, pending = prepared.job.spec.limits, ledger.pending()
    sizes = text_bytes(prepared.stored.plan, pending)
    order = longest_first(pending, sizes)
    if limits.stop_if_valid_below is not None:
        # Long documents fail more often: a run must not be judged by the longest alone.
        sample = spread(order, limits.after_documents)
        ledger.sample = frozenset(sample)
        order = sample | order
    return Dispatcher(
        order,
        attempts_per_shard=limits.attempts_per_shard,
        text_bytes=sizes,
        halves_present=_halves(prepared),
    )


def _check_complete(prepared: Prepared, ledger: Ledger, given_up: Mapping[str, RecordmillError]) -> None:
    """Looks at the store once more: what is committed is what is listed.

    Raises:
        IncompleteError: planned shards have no part.
        LeftOutError: input objects could not be planned.
    """
    missing = ledger.reconcile(_parts(prepared))
    prefix = prepared.layout.prefix
    if missing:
        documents = sum(ledger.shards[shard_id].rows for shard_id in missing)
        named = ", ".join(missing[:5]) + (" ..." if len(missing) > 5 else "")
        reasons = [given_up[shard_id].message for shard_id in missing if shard_id in given_up]
        why = f"; the first was given up: {reasons[0]}" if reasons else ""
        raise IncompleteError(f"{prefix}: {documents} documents of {len(missing)} shards have no outcome: {named}{why}")
    if left_out := prepared.stored.plan.left_out:
        raise LeftOutError(
            f"{prefix}: {len(left_out)} input objects could not be read when the run was planned, "
            f"the first one: {left_out[0].unreadable}"
        )


def _ended(prepared: Prepared, log: SubmissionLog, error: RecordmillError | None) -> RunResult:
    """Writes down how it ended, and the report; an interrupted run has no time for that, and has said it already."""
    exit_code = _exit_code(error)
    prefix = prepared.layout.prefix
    report = None
    try:
        if not isinstance(error, InterruptedRunError):
            log.ended(exit_code, None if error is None else error.message)
            plan, spec = prepared.stored.plan, prepared.job.spec
            shown = shown_documents(prepared.store, prepared.layout, plan, spec)
            report = build_report(prepared.store, prepared.layout, plan, shown=shown)
            write_report(prepared.store, prepared.layout, report)
            if error is None and not report.is_complete:
                error = VerificationError(
                    f"{prefix}: the parts do not add up; `recordmill verify {prefix}` names those that do not hold: "
                    "remove them, and submit again"
                )
                exit_code = error.exit_code
                log.ended(exit_code, error.message)
    except StorageError as raised:
        logger.error("run=%s the report could not be written: %s", prepared.job.spec.name, raised)
        error = error or raised
        exit_code = exit_code or RESUMABLE_EXIT
        # The entry may say 0 by now.
        with contextlib.suppress(StorageError):
            log.ended(exit_code, error.message)
    return RunResult(exit_code, error, report, prefix)


def _exit_code(error: RecordmillError | None) -> int:
    """A store that fails after preflight is resumable, whatever the reason: credentials expire."""
    if error is None:
        return 0
    return RESUMABLE_EXIT if isinstance(error, StorageError) else error.exit_code
