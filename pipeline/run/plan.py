"""Owns the plan: how input objects become shards, and how a plan is written once and read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.core.document import InputObject, Piece, Plan, Shard
from pipeline.core.errors import StorageError, StorageNotFoundError, VerificationError
from pipeline.run.fingerprint import Identity
from pipeline.storage.layout import RunLayout
from pipeline.storage.store import Store

__all__ = [
    "StoredPlan",
    "etags_of",
    "load_plan",
    "longest_first",
    "make_shards",
    "parse_plan",
    "render_plan",
    "shards_of",
    "spread",
    "standing_plan",
    "text_bytes",
    "write_plan",
]


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan with the identity of the job it was made for."""

    plan: Plan
    identity: Identity

    @property
    def etags(self) -> dict[str, str]:
        return etags_of(self.plan.objects)


def etags_of(objects: Sequence[InputObject]) -> dict[str, str]:
    """URI to ETag of each input object."""
    return {item.uri: item.etag for item in objects}


def make_shards(objects: Sequence[InputObject], shard_rows: int) -> tuple[Shard, ...]:
    """Divides the input into shards of at most `shard_rows` rows.

    Row groups are combined in order, across objects, while they fit; one that holds more is divided evenly.  The same
    objects always give the same shards.  Linear in the number of row groups and shards.
    """
    return shards_of(_row_groups(objects), shard_rows)


def shards_of(pieces: Iterable[Piece], shard_rows: int) -> tuple[Shard, ...]:
    """As `make_shards`, from pieces in order."""
    shards: list[Shard] = []
    gathered: list[Piece] = []
    gathered_rows = 0
    for piece in pieces:
        if gathered and gathered_rows + piece.rows > shard_rows:
            shards.append(Shard(tuple(gathered)))
            gathered, gathered_rows = [], 0
        if piece.rows > shard_rows:
            shards.extend(Shard((part,)) for part in _divided(piece, shard_rows))
        else:
            gathered.append(piece)
            gathered_rows += piece.rows
    if gathered:
        shards.append(Shard(tuple(gathered)))
    return tuple(shards)


def text_bytes(plan: Plan, shards: Mapping[str, Shard]) -> dict[str, int]:
    """The uncompressed bytes of each shard's text; a row group's are taken to be spread evenly over its rows."""
    objects = {item.uri: item for item in plan.objects}

    def of(piece: Piece) -> int:
        item, group = objects[piece.uri], piece.row_group
        return item.row_group_bytes[group] * piece.rows // item.row_group_rows[group]

    return {shard_id: sum(map(of, shard.pieces)) for shard_id, shard in shards.items()}


def longest_first(shards: Mapping[str, Shard], sizes: Mapping[str, int]) -> dict[str, Shard]:
    """The same shards, those with the most text first; in their order where they have the same.

    Long ones that come last leave other engines idle (Graham, "Bounds on Multiprocessing Timing Anomalies", 1969).
    Parts of one row group count as its largest part does: in the order of their rows, a reader goes over it once.
    """
    part_bytes: dict[tuple[str, int], int] = {}
    for shard_id, shard in shards.items():
        group = _only_group(shard)
        if group is not None:
            part_bytes[group] = max(sizes[shard_id], part_bytes.get(group, 0))

    def size(shard_id: str) -> int:
        group = _only_group(shards[shard_id])
        return sizes[shard_id] if group is None else part_bytes[group]

    return {shard_id: shards[shard_id] for shard_id in sorted(shards, key=size, reverse=True)}


def _only_group(shard: Shard) -> tuple[str, int] | None:
    """URI and row group of a shard of one piece."""
    if len(shard.pieces) > 1:
        return None
    return shard.pieces[0].uri, shard.pieces[0].row_group


def spread(ordered: Mapping[str, Shard], documents: int) -> dict[str, Shard]:
    """Shards at even steps of an order, as many as hold so many documents together; all of them where they do not.

    Of shards by size these are long and short ones as in the whole, so their outcomes speak for all.
    """
    names, count = list(ordered), 1
    while count < len(names):
        chosen = [names[(2 * step + 1) * len(names) // (2 * count)] for step in range(count)]
        held = sum(ordered[name].rows for name in chosen)
        if held >= documents:
            return {name: ordered[name] for name in chosen}
        count = max(count + 1, count * documents // held)
    return dict(ordered)


def _row_groups(objects: Sequence[InputObject]) -> Iterator[Piece]:
    for item in objects:
        if item.unreadable is None:
            for index, rows in enumerate(item.row_group_rows):
                if rows:
                    yield Piece(item.uri, item.etag, index, 0, rows)


def _divided(piece: Piece, most_rows: int) -> Iterator[Piece]:
    count = -(-piece.rows // most_rows)
    for part in range(count):
        start = piece.row_start + piece.rows * part // count
        stop = piece.row_start + piece.rows * (part + 1) // count
        yield Piece(piece.uri, piece.etag, piece.row_group, start, stop)


class _ObjectJson(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    uri: str
    etag: str
    size_bytes: int
    row_group_rows: tuple[int, ...]
    row_group_bytes: tuple[int, ...]
    unreadable: str | None = None


class _PlanJson(BaseModel):
    """`shards` holds the number of pieces of each, `pieces` four numbers a piece: object, row group, start, stop."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Literal[1] = 1
    fingerprint: str
    identity: Mapping[str, Any]
    rows: int
    objects: tuple[_ObjectJson, ...]
    shards: tuple[int, ...]
    pieces: tuple[int, ...]


def render_plan(stored: StoredPlan) -> bytes:
    """A plan as JSON: about 15 bytes a row group beside the objects."""
    plan = stored.plan
    index = {item.uri: position for position, item in enumerate(plan.objects)}
    pieces: list[int] = []
    for shard in plan.shards:
        for piece in shard.pieces:
            pieces += (index[piece.uri], piece.row_group, piece.row_start, piece.row_stop)
    document = {
        "version": 1,
        "fingerprint": plan.fingerprint,
        "identity": dict(stored.identity.fields),
        "rows": plan.rows,
        "objects": [_object_json(item) for item in plan.objects],
        "shards": [len(shard.pieces) for shard in plan.shards],
        "pieces": pieces,
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _object_json(item: InputObject) -> dict[str, Any]:
    rendered: dict[str, Any] = {
        "uri": item.uri,
        "etag": item.etag,
        "size_bytes": item.size_bytes,
        "row_group_rows": item.row_group_rows,
        "row_group_bytes": item.row_group_bytes,
    }
    if item.unreadable is not None:
        rendered["unreadable"] = item.unreadable
    return rendered


def parse_plan(data: bytes, *, source: str) -> StoredPlan:
    """The plan that `render_plan` wrote.

    Raises:
        VerificationError: the bytes are no plan, or its numbers contradict each other.
    """
    try:
        raw = _PlanJson.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise VerificationError(f"{source} is no plan of this version: {place}: {first['msg']}") from error
    objects = tuple(InputObject(**item.model_dump()) for item in raw.objects)
    if len(raw.pieces) != 4 * sum(raw.shards) or any(number >= len(objects) for number in raw.pieces[::4]):
        raise VerificationError(f"{source}: the pieces do not match the shards and objects")
    numbers = iter(raw.pieces)
    pieces = (
        Piece(objects[number].uri, objects[number].etag, row_group, start, stop)
        for number, row_group, start, stop in zip(numbers, numbers, numbers, numbers, strict=True)
    )
    shards = tuple(Shard(tuple(islice(pieces, count))) for count in raw.shards)
    plan = Plan(raw.fingerprint, objects, shards)
    if plan.rows != raw.rows:
        raise VerificationError(f"{source}: the shards hold {plan.rows} rows, the plan says {raw.rows}")
    return StoredPlan(plan, Identity(raw.identity))


def load_plan(store: Store, layout: RunLayout) -> StoredPlan | None:
    """The plan that stands under a run's prefix, or None.

    Raises:
        StorageError: it cannot be read.
        VerificationError: it is no plan.
    """
    if store.head(layout.plan) is None:
        return None
    return parse_plan(store.get(layout.plan), source=layout.plan)


def standing_plan(store: Store, layout: RunLayout) -> StoredPlan:
    """As `load_plan`, where there must be one.

    Raises:
        StorageNotFoundError: there is no run.
    """
    stored = load_plan(store, layout)
    if stored is None:
        raise StorageNotFoundError(f"there is no run under {layout.prefix}: {layout.plan} does not exist")
    return stored


def write_plan(store: Store, layout: RunLayout, stored: StoredPlan, *, attempt: str) -> StoredPlan:
    """Writes a plan unless one stands; returns the one that stands, which may be another driver's.

    Raises:
        StorageError: it can be neither written nor read.
    """
    if store.put_if_absent(layout.plan, render_plan(stored), attempt=attempt):
        return stored
    standing = load_plan(store, layout)
    if standing is None:
        raise StorageError(f"{layout.plan} was there a moment ago and is gone")
    return standing
