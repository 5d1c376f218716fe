"""Scores of records against known answers: the counting, over one table of outcomes or many.

It reads no storage; how two values are compared is `compare`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline.core.errors import InputError
from pipeline.core.outcome import RECORD_STATUSES, Cause
from pipeline.core.span import DateOrder
from pipeline.report.compare import Kind, is_match, written
from pipeline.report.documents import FieldScore, KnownAnswersUse, Mismatch
from pipeline.storage.arrow import AUDIT_NAMES, input_names

__all__ = ["KnownAnswers", "default_mapping", "merge_scores", "score_records"]

UNMATCHED_KEPT = 5
MISMATCHES_KEPT = 5
"""Differing values that a score names, for each field."""

AUDIT_COLUMNS = ("_document_id", "_status", "_cause")
_NOT_A_DOCUMENT = frozenset({Cause.NULL_ID.value, Cause.DUPLICATE_ID.value})


def default_mapping(records: pa.Schema, gold: pa.Schema) -> dict[str, str]:
    """Record fields to the gold columns named like them, with `gold_` in front or without.

    What the model did not write, audit columns and those of the input, is left out.
    """
    left_out = AUDIT_NAMES | input_names(records)
    mapping = {}
    for name in records.names:
        column = next((column for column in (f"gold_{name}", name) if column in gold.names), None)
        if column is not None and name not in left_out:
            mapping[name] = column
    return mapping


@dataclass(frozen=True, slots=True)
class _Answers:
    """The known answers of one field."""

    field: str
    column: str
    kind: Kind
    by_document: Mapping[str, Any]

    def score(self, rows: Sequence[tuple[str, bool, Any]], date_order: DateOrder) -> FieldScore:
        """Scores `(document id, whether it has a record, value)` rows."""
        answered = with_record = with_value = exact = normalised = 0
        mismatches: list[Mismatch] = []
        for document_id, has_record, value in rows:
            gold = self.by_document.get(document_id)
            if gold is None:
                continue
            answered += 1
            with_record += has_record
            with_value += value is not None
            is_exact = value is not None and (value == gold or written(value) == written(gold))
            is_same = is_exact or (value is not None and is_match(value, gold, self.kind, date_order=date_order))
            exact += is_exact
            normalised += is_same
            if not is_same and len(mismatches) < MISMATCHES_KEPT:
                shown = None if value is None else written(value)
                mismatches.append(Mismatch(document_id=document_id, value=shown, gold=written(gold)))
        return FieldScore(
            field=self.field,
            gold_column=self.column,
            kind=self.kind,
            answered=answered,
            with_record=with_record,
            with_value=with_value,
            exact=exact,
            normalised=normalised,
            mismatches=tuple(mismatches),
        )


class KnownAnswers:
    """A gold table, made ready to score the parts of a run one after the other.

    Args:
        gold: a row a document; a null answer is unknown and is not scored.
        records: schema of the records, audit columns included.
        mapping: record field (a path such as `vendor.name` reaches into structs) to gold column; by name when None.
        gold_id: the gold table's column of document ids.
        kinds: how a field is compared, where its column's type does not say it (dates kept as strings).
        date_order: how numeric dates are read.

    Raises:
        InputError: a column is not there, or nothing is mapped.
    """

    def __init__(
        self,
        gold: pa.Table,
        records: pa.Schema,
        mapping: Mapping[str, str] | None = None,
        *,
        gold_id: str = "document_id",
        kinds: Mapping[str, Kind] | None = None,
        date_order: DateOrder = "any",
    ) -> None:
        chosen = default_mapping(records, gold.schema) if mapping is None else dict(mapping)
        if gold_id not in gold.column_names:
            raise InputError(f"the known answers have no column {gold_id!r}; they have {', '.join(gold.column_names)}")
        if absent := [column for column in chosen.values() if column not in gold.column_names]:
            raise InputError(
                f"the known answers have no column {absent[0]!r}; they have {', '.join(gold.column_names)}"
            )
        if not chosen:
            raise InputError(
                f"no known answer is named like a record field; the columns are {', '.join(gold.column_names)}"
            )
        ids = [str(value) for value in gold.column(gold_id).to_pylist()]
        self._ids = Counter(ids)
        self._unused_columns = _unused(gold.column_names, gold_id, chosen.values())
        self._date_order: DateOrder = date_order
        self._answers = tuple(
            _Answers(
                field=field,
                column=column,
                kind=(kinds or {}).get(field) or _kind_of(_type_at(records, field), gold.schema.field(column).type),
                by_document=dict(zip(ids, gold.column(column).to_pylist(), strict=True)),
            )
            for field, column in chosen.items()
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a part that `score` needs."""
        return (*dict.fromkeys(answers.field.split(".")[0] for answers in self._answers), *AUDIT_COLUMNS)

    def known_of(self, records: pa.Table) -> frozenset[str]:
        """The ids with known answers that stand in one table of outcomes."""
        return frozenset(self._ids.keys() & set(records["_document_id"].to_pylist()))

    def use(self, matched: Collection[str]) -> KnownAnswersUse:
        """What was not used, of all tables' `known_of`."""
        unmatched = [document_id for document_id in self._ids if document_id not in matched]
        return KnownAnswersUse(
            unused_columns=self._unused_columns,
            ids=len(self._ids),
            ids_unmatched=len(unmatched),
            unmatched=tuple(unmatched[:UNMATCHED_KEPT]),
            ids_repeated=sum(number > 1 for number in self._ids.values()),
        )

    def score(self, records: pa.Table) -> tuple[FieldScore, ...]:
        """Scores one table of outcomes; rows that stand for no document of their own (a doubled id) are left out."""
        rows = [row for row in records.select(self.columns).to_pylist() if row["_cause"] not in _NOT_A_DOCUMENT]
        has_record = [row["_status"] in RECORD_STATUSES for row in rows]
        return tuple(
            answers.score(
                [
                    (row["_document_id"], has, _value_at(row, answers.field) if has else None)
                    for row, has in zip(rows, has_record, strict=True)
                ],
                self._date_order,
            )
            for answers in self._answers
        )


def merge_scores(scores: Iterable[tuple[FieldScore, ...]]) -> tuple[FieldScore, ...]:
    """Adds up the scores of several tables under the same known answers."""
    merged: dict[str, FieldScore] = {}
    counts = ("answered", "with_record", "with_value", "exact", "normalised")
    for table in scores:
        for score in table:
            if (before := merged.get(score.field)) is None:
                merged[score.field] = score
                continue
            sums = {name: getattr(before, name) + getattr(score, name) for name in counts}
            kept = (before.mismatches + score.mismatches)[:MISMATCHES_KEPT]
            merged[score.field] = before.model_copy(update={**sums, "mismatches": kept})
    return tuple(merged.values())


def score_records(
    records: pa.Table,
    gold: pa.Table,
    mapping: Mapping[str, str] | None = None,
    *,
    gold_id: str = "document_id",
    kinds: Mapping[str, Kind] | None = None,
    date_order: DateOrder = "any",
) -> tuple[FieldScore, ...]:
    """Scores one table of outcomes against a gold table; the arguments and errors are those of `KnownAnswers`."""
    answers = KnownAnswers(gold, records.schema, mapping, gold_id=gold_id, kinds=kinds, date_order=date_order)
    return answers.score(records)


def _unused(columns: Sequence[str], gold_id: str, used: Collection[str]) -> tuple[str, ...]:
    """Columns that were meant as answers and are none: where some begin with `gold_`, the others are no answers."""
    meant = [name for name in columns if name.startswith("gold_")] or columns
    return tuple(name for name in meant if name != gold_id and name not in used)


def _kind_of(*types: pa.DataType) -> Kind:
    for data_type in types:
        if pa.types.is_date(data_type) or pa.types.is_timestamp(data_type):
            return "date"
        if pa.types.is_integer(data_type) or pa.types.is_floating(data_type) or pa.types.is_decimal(data_type):
            return "number"
    return "text"


def _type_at(schema: pa.Schema, path: str) -> pa.DataType:
    first, *rest = path.split(".")
    if first not in schema.names:
        raise InputError(f"the records have no field {path!r}; they have {', '.join(schema.names)}")
    found: pa.DataType = schema.field(first).type
    for name in rest:
        if not pa.types.is_struct(found) or found.get_field_index(name) < 0:
            raise InputError(f"the records have no field {path!r}; {first!r} is {found}")
        found = found.field(name).type
    return found


def _value_at(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        if value is None:
            return None
        value = value[name]
    return value
