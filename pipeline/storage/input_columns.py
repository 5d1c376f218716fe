"""The columns of an input: whether it has those that the spec names, and which types are passed through."""

from __future__ import annotations

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

_THREADS = 16


def check_columns(store: Store, objects: Sequence[InputObject], spec: InputSpec) -> None:
    """Whether the input can be read as the spec asks: at least one object of it can, as `list_input` found, and each
    column that is passed through stands in some row.

    Raises:
        InputError: none can; it names the first one, and the columns or keys found there.
        StorageError: see `Store`.
    """
    readable = [item for item in objects if item.unreadable is None]
    if not readable:
        first = objects[0].unreadable if objects else "the input has no objects"
        raise InputError(f"none of {len(objects)} input objects can be read as asked: {first}")
    lines = [item for item in readable if item.rows and format_of(item.uri, spec) == "jsonl"]
    keys = text_input.first_keys(store, lines[0]) if lines else []
    if not keys:
        return
    _check_keys(keys, lines[0].uri, spec)
    has_parquet = any(format_of(item.uri, spec) == "parquet" for item in readable)
    if not has_parquet and (absent := _absent(store, lines, spec, keys)):
        named = f"no row of {len(lines)} JSON lines {'object' if len(lines) == 1 else 'objects'} has the key {absent!r}"
        shown = f"the keys of {lines[0].uri} are {', '.join(keys)}"
        way_out = did_you_mean(absent, keys) or "; leave it out"
        raise InputError(f"input.columns: {named}; {shown}{way_out}")


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


def _absent(store: Store, lines: Sequence[InputObject], spec: InputSpec, keys: Sequence[str]) -> str | None:
    """A passed column that neither a folder gives nor any row has; keys seldom stand so late that all is read.

    Args:
        lines: the JSONL objects that have rows.
        keys: those of the first lines.
    """
    unseen = [name for name in spec.columns if name not in keys]
    for item in lines:
        unseen = [name for name in unseen if name in file_spec(spec, item.uri).columns]
    if not unseen:
        return None
    left = set(unseen)
    for seen in in_order(lambda item: text_input.keys_among(store, item, unseen), lines, _THREADS, ahead=1):
        left -= seen
        if not left:
            return None
    return next((name for name in unseen if name in left), None)


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
