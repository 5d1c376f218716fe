"""Arrow types inside of Arrow types."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

__all__ = ["with_leaves"]


def with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with `leaf` of each one inside of its lists, structures and maps in that one's place."""
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(with_leaves(field.type, leaf)) for field in kind])
    if isinstance(kind, pa.MapType):
        return pa.map_(with_leaves(kind.key_type, leaf), with_leaves(kind.item_type, leaf))
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        item = kind.value_field.with_type(with_leaves(kind.value_type, leaf))
        if isinstance(kind, pa.FixedSizeListType):
            return pa.list_(item, kind.list_size)
        return pa.list_(item) if isinstance(kind, pa.ListType) else pa.large_list(item)
    return leaf(kind)
