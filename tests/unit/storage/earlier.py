"""Tables as an earlier version wrote them."""

from __future__ import annotations

import pyarrow as pa


def without_copied(table: pa.Table) -> pa.Table:
    """The table from before `_spans` said what was copied."""
    index = table.schema.get_field_index("_spans")
    spans = table.schema.field(index)
    members = [member for member in spans.type.value_type if member.name != "copied"]
    earlier = spans.with_type(pa.list_(pa.field("element", pa.struct(members))))
    return table.cast(table.schema.set(index, earlier))
