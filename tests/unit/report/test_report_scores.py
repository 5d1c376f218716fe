"""Counting records against known answers."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pipeline.core.errors import InputError
from pipeline.report.scores import KnownAnswers, default_mapping, merge_scores, score_records

COLUMNS: dict[str, Any] = {
    "company": pa.string(),
    "date": pa.date32(),
    "total": pa.decimal128(12, 2),
    "seller": pa.struct([("city", pa.string())]),
    "_document_id": pa.string(),
    "_status": pa.string(),
    "_cause": pa.string(),
}
SCHEMA = pa.schema(COLUMNS)


def outcome(document_id: str | None, status: str = "valid", cause: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"_document_id": document_id, "_status": status, "_cause": cause, **fields}


def records(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def gold(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def test_exact_and_normalised_matches_are_counted_apart() -> None:
    table = records(
        outcome("a", company="ACME", date=dt.date(2018, 12, 25), total=Decimal("9.00")),
        outcome("b", company="Beta Ltd", date=dt.date(2018, 12, 26), total=Decimal("8.00")),
        outcome("c", company="Gamma", date=None, total=Decimal("7.00")),
    )
    known = gold(
        document_id=["a", "b", "c"],
        gold_company=["ACME", "BETA LTD.", "Delta"],
        gold_date=["25/12/2018", "26 DEC 18", "27/12/2018"],
        gold_total=["9.00", "RM 8.00", "8.00"],
    )
    by_field = {score.field: score for score in score_records(table, known)}
    assert {field: (score.exact, score.normalised) for field, score in by_field.items()} == {
        "company": (1, 2),
        "date": (0, 2),
        "total": (1, 2),
    }
    assert [score.kind for score in by_field.values()] == ["text", "date", "number"]
    assert by_field["date"].with_value == 2
    assert by_field["company"].mismatches[0].model_dump() == {"document_id": "c", "value": "Gamma", "gold": "Delta"}


def test_a_document_without_a_record_counts_as_wrong() -> None:
    table = records(outcome("a", company="ACME"), outcome("b", "truncated", "budget"))
    (score,) = score_records(table, gold(document_id=["a", "b"], company=["ACME", "BETA"]))
    assert (score.answered, score.with_record, score.exact, score.normalised_share) == (2, 1, 1, 0.5)


def test_an_unknown_answer_and_a_document_outside_the_run_are_not_scored() -> None:
    table = records(outcome("a", company="ACME"), outcome("b", company="BETA"))
    (score,) = score_records(table, gold(document_id=["a", "b", "z"], company=["ACME", None, "ZETA"]))
    assert (score.answered, score.exact) == (1, 1)


def test_a_doubled_id_is_scored_once_and_a_missing_id_never() -> None:
    table = records(
        outcome("a", company="ACME"), outcome("a", "failed", "duplicate_id"), outcome(None, "failed", "null_id")
    )
    (score,) = score_records(table, gold(document_id=["a"], company=["ACME"]))
    assert (score.answered, score.exact) == (1, 1)


def test_a_path_reaches_into_a_nested_field() -> None:
    table = records(outcome("a", seller={"city": "Ipoh"}), outcome("b", seller=None))
    (score,) = score_records(table, gold(document_id=["a", "b"], town=["IPOH", "Klang"]), {"seller.city": "town"})
    assert (score.answered, score.with_value, score.normalised) == (2, 1, 1)


def test_a_kind_can_be_set_where_a_date_is_kept_as_text() -> None:
    table = records(outcome("a", company="2018-12-25"))
    known = gold(document_id=["a"], company=["25 DEC 18"])
    assert score_records(table, known)[0].normalised == 0
    assert score_records(table, known, kinds={"company": "date"})[0].normalised == 1


def test_the_default_mapping_prefers_the_gold_column_and_leaves_audit_columns_out() -> None:
    known = pa.schema(
        [
            ("document_id", pa.string()),
            ("company", pa.string()),
            ("gold_company", pa.string()),
            ("_status", pa.string()),
        ]
    )
    assert default_mapping(SCHEMA, known) == {"company": "gold_company"}


def test_scores_of_several_parts_add_up_to_the_score_of_all() -> None:
    first, second = records(outcome("a", company="ACME")), records(outcome("b", company="x"), outcome("c", company="Y"))
    known = gold(document_id=["a", "b", "c"], company=["ACME", "X", "Z"])
    answers = KnownAnswers(known, SCHEMA)
    merged = merge_scores([answers.score(first), answers.score(second)])
    assert merged == score_records(pa.concat_tables([first, second]), known)


@pytest.mark.parametrize(
    ("mapping", "named"),
    [
        ({"company": "nowhere"}, "nowhere"),
        ({"nothing": "company"}, "nothing"),
        ({"seller.zip": "company"}, "seller.zip"),
        ({}, "company"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_refused_by_name(mapping: dict[str, str], named: str) -> None:
    with pytest.raises(InputError, match=named):
        score_records(records(), gold(document_id=[""], company=["x"]), mapping)


def test_known_answers_without_the_id_column_are_refused() -> None:
    with pytest.raises(InputError, match="document_id"):
        score_records(records(), gold(company=["x"]))


def test_what_came_from_the_input_is_not_scored_and_no_record_is_no_answer() -> None:
    """Fails when every column that both tables have is taken for the model's work."""
    passed = pa.field("country", pa.string(), metadata={b"recordmill.column": b"input"})
    assert default_mapping(
        pa.schema([*SCHEMA, passed]), pa.schema([("country", pa.string()), ("total", pa.int64())])
    ) == {"total": "total"}
    table = records(outcome("a", "failed", "refused", total=Decimal(1)), outcome("b", total=Decimal(2)))
    [score] = score_records(table, gold(document_id=["a", "b"], total=[1, 2]))
    assert (score.with_record, score.with_value, score.exact) == (1, 1, 1)
