"""Owns the check that extractive values stand in their documents where their spans say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.core.document import Document
from pipeline.run.intake import Row
from pipeline.run.located import value_at
from pipeline.spans.choices import is_alike
from pipeline.spans.folding import folded

__all__ = ["has_spans", "misplaced", "with_grounded"]


def has_spans(table: pa.Table) -> bool:
    """Whether any outcome of a part has an extractive value."""
    return bool(_spans_of(table).any())


def with_grounded(table: pa.Table, rows: Iterable[Row]) -> Iterator[tuple[Row, dict[str, Any] | None]]:
    """Each planned row, with its outcome where that has extractive values and the row can still be read."""
    positions, ids = set(np.flatnonzero(_spans_of(table)).tolist()), table["_document_id"].to_pylist()
    for position, row in enumerate(rows):
        outcome = None
        is_read = position in positions and isinstance(row.content, Document)
        if is_read and ids[position] == row.content.document_id:
            outcome = table.slice(position, 1).to_pylist(maps_as_pydicts="lossy")[0]
        yield row, outcome


def _spans_of(table: pa.Table) -> NDArray[np.int64]:
    """int[n]: extractive values of each outcome."""
    return np.asarray(pc.list_value_length(table["_spans"]).fill_null(0))


def misplaced(row: Mapping[str, Any], text: str) -> list[str]:
    """What does not hold of one outcome's spans, a phrase each.

    Args:
        row: an outcome as `read_part` gives it: the record's fields, and `_spans`.
        text: the document.

    A string must be the folded text of its span (an enum in any case of letters); a date or an amount is written
    otherwise than it stands there, so of those only the place is checked.  Where a validator made another string of
    what was copied, the copied one is looked at.
    """
    problems = []
    for span in row["_spans"] or ():
        start, end, field = span["start"], span["end"], span["field"]
        if not 0 <= start < end <= len(text):
            problems.append(f"{field} at [{start}, {end}) of {len(text)} characters")
            continue
        value = value_at(row, field) if span.get("copied") is None else span["copied"]
        if not isinstance(value, str) or _is_number(value):
            continue
        stands = folded(text[start:end])
        if stands.casefold() != value.casefold() and not is_alike(stands, value):
            problems.append(f"{field} is not what stands at [{start}, {end})")
    return problems


def _is_number(value: str) -> bool:
    """Whether a string is a decimal kept as text."""
    try:
        Decimal(value)
    except InvalidOperation:
        return False
    return True
