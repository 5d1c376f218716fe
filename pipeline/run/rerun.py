"""Owns a rerun: a new run over documents of another one, chosen by what became of them there.

The new run's plan names the very rows, by position in the other run's shards, not by id: so a document with a doubled
or a strange id is the right one, no text is copied, the input is nowhere inside an output, and ledger, verification
and report work as for any other plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.core.document import InputObject, Piece, Shard
from pipeline.core.errors import InputError, SpecError, VerificationError
from pipeline.core.outcome import Cause, Status
from pipeline.core.sections import RerunSpec
from pipeline.core.spec import JobSpec
from pipeline.run.fingerprint import Identity
from pipeline.run.plan import StoredPlan, shards_of, standing_plan
from pipeline.storage.documents import list_objects
from pipeline.storage.footer import NO_CAUSE, PartFooter
from pipeline.storage.layout import RunLayout, shard_id_of
from pipeline.storage.parts import read_footer, read_statuses
from pipeline.storage.store import Store, open_store
from pipeline.storage.threads import in_order

__all__ = ["Chosen", "chosen_rows", "count_chosen", "rerun_spec", "select_rows"]

WITHOUT_A_NAME = frozenset({Cause.NULL_ID, Cause.DUPLICATE_ID})
"""Rows whose id is not theirs: no run can do better with them."""
THREADS = 16


@dataclass(frozen=True, slots=True)
class Chosen:
    """How many documents of a run a rerun would take, by cause; `left_out` are those that no run can name."""

    documents: int
    by_cause: Mapping[str, int]
    left_out: int


def rerun_spec(
    parent: JobSpec,
    *,
    of: str,
    output: str,
    status: Sequence[str],
    cause: Sequence[str] = (),
    max_tokens: int | None = None,
) -> dict[str, Any]:
    """The job spec of a rerun, to be parsed: the other run's, with a new output and a link.

    Args:
        parent: the other run's effective spec.
        of: its output prefix.
        output: the new run's.
        status: documents with these statuses.
        cause: and with these causes; empty for any.
        max_tokens: the new budget; rungs of the ladder that are not above it are left out.
    """
    raw = parent.effective()
    raw["output"]["uri"] = output
    raw["rerun"] = {"of": of.rstrip("/") + "/", "status": list(status), "cause": list(cause)}
    if max_tokens is not None:
        raw["decoding"]["max_tokens"] = max_tokens
        raw["truncation"]["escalate"] = [rung for rung in raw["truncation"]["escalate"] if rung > max_tokens]
    return raw


def count_chosen(spec: JobSpec, rerun: RerunSpec) -> Chosen:
    """Counts what a rerun would take, from the footers of the other run's parts alone.

    Raises:
        StorageNotFoundError: there is no such run.
        InputError: it is not complete.
    """
    store, layout, stored = _parent(spec, rerun)
    counts: Counter[str] = Counter()
    left_out = 0
    for footer in _footers(store, layout, stored):
        for (status, cause), rows in footer.by_cause().items():
            if not _is_asked(rerun, status, cause):
                continue
            if cause in WITHOUT_A_NAME:
                left_out += rows
            else:
                counts[NO_CAUSE if cause is None else cause.value] += rows
    return Chosen(sum(counts.values()), dict(counts), left_out)


def select_rows(
    spec: JobSpec, rerun: RerunSpec, identity: Identity
) -> tuple[tuple[InputObject, ...], tuple[Shard, ...]]:
    """The input objects and shards of a rerun.

    Raises:
        StorageNotFoundError: there is no such run.
        InputError: it is not complete, none of its documents is asked for, or its input has changed since.
        SpecError: nothing differs from it, so that the same records would come out.
        VerificationError: one of its parts is damaged, or of another run.
    """
    store, layout, stored = _parent(spec, rerun)
    _check_differs(spec, rerun, stored.identity, identity)
    parts = zip(stored.plan.shards, _footers(store, layout, stored), strict=True)
    wanted = [shard for shard, footer in parts if _holds_any(rerun, footer)]
    numbers = in_order(lambda shard: _numbers(store, layout, rerun, shard), wanted, THREADS)
    pieces = [piece for shard, rows in zip(wanted, numbers, strict=True) for piece in chosen_rows(shard, rows)]
    if not pieces:
        raise InputError(f"no document of {layout.prefix} is {' or '.join(rerun.status)} and can be run again")
    used = {piece.uri for piece in pieces}
    objects = tuple(item for item in stored.plan.objects if item.uri in used)
    _check_unchanged(spec, objects, layout.prefix)
    return objects, shards_of(pieces, spec.input.shard_rows)


def _parent(spec: JobSpec, rerun: RerunSpec) -> tuple[Store, RunLayout, StoredPlan]:
    layout, store = RunLayout(rerun.of), open_store(rerun.of, spec.s3)
    stored = standing_plan(store, layout)
    present = {shard_id_of(item.uri) for item in store.list_prefix(layout.parts_prefix)}
    if missing := [shard.shard_id for shard in stored.plan.shards if shard.shard_id not in present]:
        raise InputError(
            f"the run under {layout.prefix} is not complete: {len(missing)} shards have no part; finish it first, "
            "with the command that started it"
        )
    return store, layout, stored


def _footers(store: Store, layout: RunLayout, stored: StoredPlan) -> Iterator[PartFooter]:
    def read(shard: Shard) -> PartFooter:
        footer = read_footer(store, layout.part(shard.shard_id))
        found = (footer.fingerprint, footer.shard_id, footer.rows)
        if found != (stored.plan.fingerprint, shard.shard_id, shard.rows):
            raise VerificationError(f"{layout.part(shard.shard_id)} is not the part that the plan of that run has")
        return footer

    return in_order(read, stored.plan.shards, THREADS)


def _is_asked(rerun: RerunSpec, status: Status, cause: Cause | None) -> bool:
    return status in rerun.status and (not rerun.cause or cause in rerun.cause)


def _holds_any(rerun: RerunSpec, footer: PartFooter) -> bool:
    return any(rows and _is_asked(rerun, status, cause) for (status, cause), rows in footer.by_cause().items())


def _numbers(store: Store, layout: RunLayout, rerun: RerunSpec, shard: Shard) -> list[int]:
    """The rows of a shard that are asked for: a part's rows stand in the order of its shard's."""
    return [
        number
        for number, (status, cause) in enumerate(read_statuses(store, layout.part(shard.shard_id)))
        if _is_asked(rerun, status, cause) and cause not in WITHOUT_A_NAME
    ]


def chosen_rows(shard: Shard, numbers: Sequence[int]) -> Iterator[Piece]:
    """Pieces that hold exactly these rows of a shard, in order; neighbours are one piece.  Pure.

    Args:
        shard: some rows.
        numbers: rising, counted from 0 within the shard.
    """
    remaining = iter(numbers)
    number = next(remaining, None)
    before = 0
    for piece in shard.pieces:
        while number is not None and number < before + piece.rows:
            start = piece.row_start + number - before
            stop = start + 1
            number = next(remaining, None)
            while number is not None and number < before + piece.rows and piece.row_start + number - before == stop:
                stop += 1
                number = next(remaining, None)
            yield Piece(piece.uri, piece.etag, piece.row_group, start, stop)
        before += piece.rows


def _check_differs(spec: JobSpec, rerun: RerunSpec, parent: Identity, ours: Identity) -> None:
    """The same request gives the same record: only documents that got no answer may be asked again as they were."""
    if spec.decoding.temperature > 0 or set(rerun.status) <= {Status.FAILED}:
        return
    link = "rerun."
    before = {name: value for name, value in parent.fields.items() if not name.startswith(link)}
    now = {name: value for name, value in ours.fields.items() if not name.startswith(link)}
    if before == now:
        raise SpecError(
            f"nothing differs from the run under {rerun.of}, so its records would come out again: "
            "give --max-tokens, or --set another model, policy or prompt"
        )


def _check_unchanged(spec: JobSpec, objects: Sequence[InputObject], prefix: str) -> None:
    listed = {item.uri: item.etag for item in list_objects(open_store(spec.input.uris[0], spec.s3), spec.input)}
    changed = [item.uri for item in objects if listed.get(item.uri) != item.etag]
    if changed:
        raise InputError(
            f"{len(changed)} input objects of the run under {prefix} have been replaced or are gone since, "
            f"the first is {changed[0]}; its documents cannot be run again"
        )
