"""Owns the count of document ids that stand in more than one shard, in eight bytes a document.

Within a shard a second document of one id is `failed(duplicate_id)`; across shards nobody sees it while they run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.run.intake import is_synthetic_id

__all__ = ["Hashes", "SharedId", "SharedIds", "id_hashes", "shared_ids"]

Hashes = NDArray[np.uint64]

EXAMPLES = 5
_RANGES = 16
"""Hashes are compared one range after the other, so that sorting takes a sixteenth of them in memory again."""


@dataclass(frozen=True, slots=True)
class SharedId:
    """One id, and shards that have it, the first few."""

    document_id: str
    shard_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SharedIds:
    """Ids that stand in more than one shard.

    They are counted by 64-bit hashes: that two different ids of ten million have one hash, and are counted as one
    shared id, happens once in 400,000 runs.  The examples are looked up and certain.
    """

    count: int = 0
    examples: tuple[SharedId, ...] = ()


def id_hashes(ids: Sequence[str | None]) -> Hashes:
    """uint64[n], rising, each once: the hashes of a shard's ids.  Null and ids of unreadable rows are left out."""
    digests = (_digest(name) for name in ids if name is not None and not is_synthetic_id(name))
    return np.unique(np.frombuffer(b"".join(digests), np.uint64))


def _digest(document_id: str) -> bytes:
    return hashlib.blake2b(document_id.encode(), digest_size=8).digest()


def shared_ids(hashes: Mapping[str, Hashes], ids_of: Callable[[str], Sequence[str | None]]) -> SharedIds:
    """Counts the ids that stand in more than one shard.

    Args:
        hashes: `id_hashes` of each shard by its id.
        ids_of: a shard's ids; asked for a few shards, for the examples.
    """
    repeated = np.concatenate([np.empty(0, np.uint64), *_repeated(list(hashes.values()))])
    count = len(repeated)
    examples: list[SharedId] = []
    for value in repeated:
        if len(examples) == EXAMPLES:
            break
        found = _example(value, hashes, ids_of)
        if found is None:
            count -= 1
        else:
            examples.append(found)
    return SharedIds(count, tuple(examples))


def _repeated(arrays: Sequence[Hashes]) -> Iterator[Hashes]:
    """The hashes that stand in more than one array, range by range."""
    bounds = np.array([number * (2**64 // _RANGES) for number in range(1, _RANGES)], np.uint64)
    cuts = [(0, *np.searchsorted(array, bounds), len(array)) for array in arrays]
    for number in range(_RANGES if arrays else 0):
        slices = [array[cut[number] : cut[number + 1]] for array, cut in zip(arrays, cuts, strict=True)]
        gathered = np.sort(np.concatenate(slices))
        yield np.unique(gathered[1:][gathered[1:] == gathered[:-1]])


def _example(
    value: np.uint64, hashes: Mapping[str, Hashes], ids_of: Callable[[str], Sequence[str | None]]
) -> SharedId | None:
    """The id of a hash and where it stands; None where two ids have the hash."""
    shard_ids = [shard_id for shard_id, array in hashes.items() if _holds(array, value)]
    places: dict[str, list[str]] = {}
    for shard_id in shard_ids[:EXAMPLES]:
        for document_id in {name for name in ids_of(shard_id) if name is not None and _digest(name) == value.tobytes()}:
            places.setdefault(document_id, []).append(shard_id)
    shared = ((name, found) for name, found in places.items() if len(found) > 1)
    return next((SharedId(name, tuple(found)) for name, found in shared), None)


def _holds(array: Hashes, value: np.uint64) -> bool:
    position = int(np.searchsorted(array, value))
    return position < len(array) and bool(array[position] == value)
