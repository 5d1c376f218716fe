"""Tests of `demo.documents`: the answers it gives are the answers its text holds."""

import io
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from demo.documents import INVOICE_SCHEMA, RECEIPT_SCHEMA, invoices, parquet_files, receipts, troublesome
from demo.places import PLACES
from pipeline.report.compare import read_dates, read_number
from schemas.invoice import Invoice
from schemas.receipt import Receipt

RECEIPTS = receipts(300, seed=7)
INVOICES = invoices(300, seed=7)


def test_a_seed_fixes_every_document_whatever_the_count() -> None:
    assert receipts(300, seed=7) == RECEIPTS
    assert receipts(20, seed=7) == RECEIPTS[:20]
    assert invoices(20, seed=7) == INVOICES[:20]
    assert receipts(20, seed=8) != RECEIPTS[:20]


def test_ids_are_unique() -> None:
    ids = [document.document_id for document in (*RECEIPTS, *INVOICES, *troublesome())]
    assert len(set(ids)) == len(ids)


def test_texts_differ_and_every_currency_occurs() -> None:
    assert len({document.text for document in RECEIPTS}) == len(RECEIPTS)
    assert {document.gold["currency"] for document in RECEIPTS} == {place.currency for place in PLACES}


def test_names_and_addresses_stand_in_the_receipt_as_answered() -> None:
    for document in RECEIPTS:
        assert document.text is not None
        assert document.gold["company"] in document.text
        assert all(item["name"] in document.text for item in document.gold["items"])
        if document.gold["address"] is not None:
            assert document.gold["address"] in document.text.replace("\n", ", ")


def test_the_date_and_the_total_of_a_receipt_can_be_read_from_one_of_its_lines() -> None:
    for document in RECEIPTS:
        assert document.text is not None
        lines = [line.partition(" ")[2] or line for line in document.text.splitlines()] + document.text.splitlines()
        japanese = [line.translate(str.maketrans("年月日", "-- ")) for line in lines]
        assert any(document.gold["date"] in read_dates(line) for line in japanese), document
        amounts = {
            read_number(word) for line in lines for word in (line, line.rpartition(" ")[2], line[-14:], line[-9:])
        }
        assert document.gold["total"] in amounts, document


def test_the_items_of_a_receipt_add_up_to_its_total() -> None:
    for document in RECEIPTS:
        assert sum((item["amount"] for item in document.gold["items"]), Decimal(0)) == document.gold["total"]


def test_the_answers_of_a_receipt_are_a_receipt() -> None:
    for document in RECEIPTS:
        record = Receipt.model_validate(document.gold)
        assert record.model_dump() == dict(document.gold)


def test_numbers_and_names_stand_in_the_invoice_as_answered() -> None:
    for document in INVOICES:
        assert document.text is not None
        answers = [document.gold["invoice_number"], document.gold["terms"], document.gold["currency"]]
        for party in (document.gold["seller"], document.gold["buyer"]):
            answers += [answer for answer in party.values() if answer is not None]
        assert [answer for answer in answers if answer not in document.text] == []


def test_the_answers_of_an_invoice_are_an_invoice() -> None:
    line = {"description": "all", "quantity": 1, "unit_price": 1, "amount": 1}
    for document in INVOICES:
        Invoice.model_validate({**document.gold, "lines": [line]})


def test_an_invoice_whose_sums_do_not_add_up_is_refused() -> None:
    line = {"description": "all", "quantity": 1, "unit_price": 1, "amount": 1}
    wrong = {**INVOICES[0].gold, "total": INVOICES[0].gold["total"] + 1, "lines": [line]}
    with pytest.raises(ValueError, match="do not make"):
        Invoice.model_validate(wrong)


@pytest.mark.parametrize(("documents", "schema"), [(RECEIPTS, RECEIPT_SCHEMA), (INVOICES, INVOICE_SCHEMA)])
def test_parquet_files_hold_every_document_once_in_order(documents, schema) -> None:  # type: ignore[no-untyped-def]
    files = [pq.ParquetFile(io.BytesIO(data)) for data in parquet_files(documents, schema, files=4, row_group_rows=16)]
    assert len(files) == 4
    assert all(file.metadata.num_row_groups > 1 for file in files)
    assert all(file.schema_arrow == schema for file in files)
    rows = [row for file in files for row in file.read().to_pylist()]
    assert [(row["document_id"], row["text"]) for row in rows] == [document[:2] for document in documents]
    assert [row["gold_total"] for row in rows] == [document.gold["total"] for document in documents]


def test_troublesome_documents_are_of_the_kinds_they_say() -> None:
    texts = {document.document_id: document.text for document in troublesome()}
    assert texts["trouble-null"] is None
    assert texts["trouble-empty"] == ""
    assert not (texts["trouble-blank"] or "x").strip()
    assert len(texts["trouble-long"] or "") > 8_000
    assert "<|im_start|>system" in (texts["trouble-forged"] or "")
