"""The columns of an input: whether it has those that the spec names, and which types are passed through."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from pipeline.core.document import InputObject
from pipeline.core.errors import InputError
from pipeline.core.sections import InputSpec
from pipeline.core.suggest import did_you_mean
from pipeline.storage import parquet_input, text_input
from pipeline.storage.documents import format_of
from pipeline.storage.partitions import file_spec
from pipeline.storage.store import Store
from pipeline.storage.threads import in_order

__all__ = ["check_columns", "passed_columns"]

logger = logging.getLogger(__name__)

_THREADS = 16
SEARCHED_BYTES = 1024**3
"""Of JSON lines that are searched, again and before the run, for a key that the first lines lack."""


def check_columns(store: Store, objects: Sequence[InputObject], spec: InputSpec) -> None:
    """Whether the input can be read as the spec asks: at least one object of it can, as `list_input` found, and each
    column that is passed through stands in some row.  One that may stand where nobody looked is warned of.

    Raises:
        InputError: none can; it names the first one, and the columns or keys found there.
        StorageError: see `Store`.
    """
    readable = [item for item in objects if item.unreadable is None]
    if not readable:
        first = objects[0].unreadable if objects else "the input has no objects"
        raise InputError(f"none of {len(objects)} input objects can be read as asked: {first}")
    lines = [item for item in readable if item.rows and format_of(item.uri, spec) == "jsonl"]
    shown = next(((item.uri, keys) for item in lines if (keys := text_input.first_keys(store, item))), None)
    if shown is None:
        return
    uri, keys = shown
    _check_keys(keys, uri, spec)
    if not any(format_of(item.uri, spec) == "parquet" for item in readable):
        _check_passed(store, lines, spec, uri, keys)


def passed_columns(store: Store, objects: Sequence[InputObject], spec: InputSpec) -> dict[str, pa.DataType]:
    """The types of the columns that are passed through, for `record_schema`.

    Integers of different widths become int64; JSONL has strings (or JSON, as strings); for Parquet see `passed_types`.
    Where an object holds nothing but nulls, the others say the type; string where none does.

    Raises:
        InputError: such a column has different types in different objects, or the input is plain text.
        StorageError: see `Store`.
    """
    readable = [item for item in objects if item.unreadable is None]
    if not spec.columns or not readable:
        return {}
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="passed-columns") as pool:
        typed = list(pool.map(lambda item: _passed_types(store, item, spec), readable))
    return {name: _one_type(name, [(item, types[name]) for item, types in typed]) for name in spec.columns}


def _check_keys(keys: Sequence[str], uri: str, spec: InputSpec) -> None:
    for name in (spec.id, spec.text):
        if name not in keys:
            named = f"{uri} has no key {name!r} in its first lines; its keys are {', '.join(keys)}"
            raise InputError(named + did_you_mean(name, keys))


def _check_passed(store: Store, lines: Sequence[InputObject], spec: InputSpec, uri: str, keys: Sequence[str]) -> None:
    """Whether some row has each passed column that no folder gives; keys seldom stand so late that much is read.

    Args:
        lines: the JSONL objects that have rows.
        uri, keys: the first of them that has keys in its first lines, and these.
    """
    unseen = [name for name in spec.columns if name not in keys]
    for item in lines:
        unseen = [name for name in unseen if name in file_spec(spec, item.uri).columns]
    search = _searched(store, lines, frozenset(unseen))
    absent = next((name for name in unseen if name not in search.found), None)
    if absent is None:
        return
    way_out = did_you_mean(absent, keys)
    shown = f"the keys of {uri} are {', '.join(keys)}"
    if not search.is_whole:
        logger.warning("input.columns: no row that was looked at has the key %r; %s%s", absent, shown, way_out)
        return
    named = f"no row of {len(lines)} JSON lines {'object' if len(lines) == 1 else 'objects'} has the key {absent!r}"
    raise InputError(f"input.columns: {named}; {shown}{way_out or '; leave it out'}")


def _searched(store: Store, lines: Sequence[InputObject], names: frozenset[str]) -> text_input.KeySearch:
    search = text_input.KeySearch(names)
    shares: list[tuple[InputObject, int]] = []
    left = SEARCHED_BYTES
    for item in lines:
        shares.append((item, left))
        left -= item.size_bytes
        if left <= 0:
            break
    search.is_whole = len(shares) == len(lines)
    if not search.is_over:
        for _ in in_order(lambda share: search.read(store, *share), shares, _THREADS, ahead=1):
            if search.is_over:
                break
    return search


def _passed_types(store: Store, item: InputObject, spec: InputSpec) -> tuple[InputObject, dict[str, pa.DataType]]:
    own = file_spec(spec, item.uri).columns
    types: dict[str, pa.DataType] = dict.fromkeys(spec.columns, pa.string())
    match format_of(item.uri, spec):
        case "jsonl":
            return item, types
        case "text":
            if own:
                raise InputError(
                    f"{item.uri} is a text file, which has no column {own[0]!r} to pass; leave it out of "
                    "input.columns, or set input.format if the file's name misleads"
                )
            return item, types
        case "parquet":
            return item, types | parquet_input.passed_types(store, item, own)


def _one_type(name: str, typed: Sequence[tuple[InputObject, pa.DataType]]) -> pa.DataType:
    first_item, kind = typed[0]
    for item, other in typed[1:]:
        common = _common_type(kind, other)
        if common is None:
            raise InputError(f"column {name!r} is {kind} in {first_item.uri}, but {other} in {item.uri}")
        if kind == pa.null():
            first_item = item
        kind = common
    return pa.string() if kind == pa.null() else kind


def _common_type(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds both, if there is one: for integers the widest, else the one that is not null."""
    if pa.types.is_integer(kind) and pa.types.is_integer(other):
        return kind if kind == other else pa.int64()
    return _with_nulls(kind, other)


def _with_nulls(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Writers give null, or lists and structures of it, to what they never saw."""
    if kind == other or other == pa.null():
        return kind
    if kind == pa.null():
        return other
    if isinstance(kind, pa.ListType) and isinstance(other, pa.ListType):
        item = _with_nulls(kind.value_type, other.value_type)
        return None if item is None else pa.list_(item)
    if isinstance(kind, pa.StructType) and isinstance(other, pa.StructType):
        names = [field.name for field in kind]
        if names != [field.name for field in other]:
            return None
        types = [_with_nulls(mine.type, theirs.type) for mine, theirs in zip(kind, other, strict=True)]
        fields = [pa.field(name, common) for name, common in zip(names, types, strict=True) if common is not None]
        return pa.struct(fields) if len(fields) == len(names) else None
    return None
