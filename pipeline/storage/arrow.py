"""Outcomes as an Arrow table: the schema of a run's parts, and rows that fit it.

The schema comes from the record model once and is imposed on every part, so that a part without one valid record has
the same types as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa

from pipeline.core.errors import SpecError
from pipeline.core.outcome import Cause, Outcome, Status
from pipeline.storage.columns import model_fields
from pipeline.storage.values import NotStorableError, json_text, stored, well_formed

__all__ = [
    "AUDIT_FIELDS",
    "AUDIT_NAMES",
    "input_names",
    "outcomes_table",
    "record_schema",
    "storable",
    "with_audit_fields",
]

_SPAN = pa.struct(
    [
        ("field", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("is_ambiguous", pa.bool_()),
        ("copied", pa.string()),
    ]
)

AUDIT_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field("_document_id", pa.string()),
    pa.field("_status", pa.string(), nullable=False),
    pa.field("_cause", pa.string()),
    pa.field("_detail", pa.string()),
    pa.field("_raw", pa.string()),
    pa.field("_prompt_tokens", pa.int32()),
    pa.field("_output_tokens", pa.int32()),
    pa.field("_budget_tokens", pa.int32()),
    pa.field("_slack_tokens", pa.int32()),
    pa.field("_shaped_fields", pa.list_(pa.field("element", pa.string()))),
    pa.field("_spans", pa.list_(pa.field("element", _SPAN))),
    pa.field("_attempt", pa.string(), nullable=False),
    pa.field("_engine", pa.string(), nullable=False),
)
"""What every part says of each document, beside the record.  Span offsets count characters of the document's text."""

_ORIGIN = b"recordmill.column"
AUDIT_NAMES = frozenset(field.name for field in AUDIT_FIELDS)
_RECORD, _INPUT, _AUDIT = b"record", b"input", b"audit"


def record_schema(model: type, extra: Mapping[str, pa.DataType] | None = None) -> pa.Schema:
    """The schema of a part: the model's fields, then input columns passed through, then `AUDIT_FIELDS`.

    A datetime is stored as an instant (`timestamp[us, UTC]`; one without an offset is read as UTC) unless the model
    says `NaiveDatetime`; a Decimal as decimal128 where `decimal_places` is known, else as text; unions, `Any` and
    recursion as JSON text, which the field's metadata notes under `recordmill.encoding`.

    Args:
        model: a Pydantic model (or a dataclass or TypedDict that pydantic can validate).
        extra: name and type of each input column that is passed through.

    Raises:
        SpecError: the model is no object, or two columns would have one name.
    """
    record = model_fields(model)
    passed = [pa.field(name, kind) for name, kind in ({} if extra is None else extra).items()]
    owners: dict[str, str] = {field.name.casefold(): "an audit column" for field in AUDIT_FIELDS}
    named = f"a field of {model.__name__}"
    # Warehouses fold case: `Total` and `total` would be one column there.
    for field, owner in [*((field, "an input column") for field in passed), *((field, named) for field in record)]:
        taken = owners.setdefault(field.name.casefold(), owner)
        if taken is not owner:
            raise SpecError(f"{field.name!r} names {owner} as well as {taken}; rename one of them")
    groups = ((record, _RECORD), (passed, _INPUT), (AUDIT_FIELDS, _AUDIT))
    return pa.schema([_marked(field, origin) for fields, origin in groups for field in fields])


def storable(outcome: Outcome, schema: pa.Schema) -> Outcome:
    """The outcome itself where its row fits the schema.

    Otherwise the document is `invalid` with the cause `not_storable`: `detail` names the field and says why, `raw`
    keeps the record (the generation's text, or else the record as JSON).  A passed-through value that does not fit is
    null in an outcome that has no record to lose.
    """
    try:
        _check(outcome, schema)
    except NotStorableError as error:
        extra = {name: value for name, value in outcome.extra.items() if _fits(value, name, schema)}
        if outcome.record is None:
            return replace(outcome, extra=extra)
        return replace(
            outcome,
            status=Status.INVALID,
            cause=Cause.NOT_STORABLE,
            detail=str(error),
            record=None,
            raw=_raw(outcome),
            extra=extra,
        )
    return outcome


def outcomes_table(outcomes: Sequence[Outcome], schema: pa.Schema, *, attempt: str, engine: str) -> pa.Table:
    """One row an outcome, in order, with exactly this schema.

    A record that does not fit is stored as `storable` would have it, so no outcome is lost here.
    """
    rows = [storable(outcome, schema) for outcome in outcomes]
    columns = []
    for field in schema:
        match _origin(field):
            case b"record":
                values: list[object] = [
                    None if row.record is None else stored(row.record.get(field.name), field, field.name)
                    for row in rows
                ]
            case b"input":
                values = [stored(row.extra.get(field.name), field, field.name) for row in rows]
            case _:
                values = [_audit(row, field.name, attempt, engine) for row in rows]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def with_audit_fields(schema: pa.Schema) -> pa.Schema:
    """The schema of a part of this or an earlier version, with each audit column as this version writes it."""
    for field in AUDIT_FIELDS:
        if (index := schema.get_field_index(field.name)) >= 0:
            schema = schema.set(index, _marked(field, _AUDIT))
    return schema


def input_names(schema: pa.Schema) -> frozenset[str]:
    """Names of a part's columns that were passed through."""
    return frozenset(field.name for field in _fields(schema, _INPUT))


def _marked(field: pa.Field[Any], origin: bytes) -> pa.Field[Any]:
    metadata: dict[Any, Any] = {**(field.metadata or {}), _ORIGIN: origin}
    return field.with_metadata(metadata)


def _origin(field: pa.Field[Any]) -> bytes | None:
    return (field.metadata or {}).get(_ORIGIN)


def _fields(schema: pa.Schema, origin: bytes) -> Iterator[pa.Field[Any]]:
    return (field for field in schema if _origin(field) == origin)


def _check(outcome: Outcome, schema: pa.Schema) -> None:
    names = set()
    for field in _fields(schema, _RECORD):
        names.add(field.name)
        if outcome.record is not None:
            stored(outcome.record.get(field.name), field, field.name)
    for name in outcome.record or ():
        if name not in names:
            raise NotStorableError(name, "no column holds it")
    for field in _fields(schema, _INPUT):
        stored(outcome.extra.get(field.name), field, field.name)


def _fits(value: object, name: str, schema: pa.Schema) -> bool:
    try:
        stored(value, schema.field(name), name)
    except NotStorableError:
        return False
    return True


def _raw(outcome: Outcome) -> str | None:
    if outcome.raw is not None:
        return outcome.raw
    try:
        return json_text(outcome.record)
    except ValueError:
        return None


def _audit(outcome: Outcome, name: str, attempt: str, engine: str) -> Any:
    match name:
        case "_status":
            return outcome.status.value
        case "_cause":
            return None if outcome.cause is None else outcome.cause.value
        case "_attempt":
            return attempt
        case "_engine":
            return engine
        case "_shaped_fields":
            return list(outcome.shaped_fields)
        case "_spans":
            return [asdict(span) for span in outcome.spans]
        case _:
            value = getattr(outcome, name.removeprefix("_"))
            return well_formed(value) if isinstance(value, str) else value
