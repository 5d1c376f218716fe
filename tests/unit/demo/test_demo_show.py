"""Tests of `demo.show`: what it prints of a run is what the run's rows say."""

import io

import pyarrow as pa
from rich.console import Console

from demo.documents import Labelled, receipts, troublesome
from demo.show import show_records, show_scores
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.storage.arrow import outcomes_table, record_schema
from schemas.receipt import Receipt

DOCUMENTS = [*receipts(8), *troublesome()]


def _outcomes() -> pa.Table:
    """The first six receipts answered rightly, the seventh with another total, the eighth cut off."""
    made = [_closed(DOCUMENTS[0])]
    made += [Outcome(label.document_id, Status.VALID, record=_record(label)) for label in DOCUMENTS[1:6]]
    wrong = _record(DOCUMENTS[6]) | {"total": 0}
    made.append(Outcome(DOCUMENTS[6].document_id, Status.VALID, record=wrong))
    made.append(Outcome(DOCUMENTS[7].document_id, Status.TRUNCATED, Cause.BUDGET, raw='{"company":'))
    return outcomes_table(made, record_schema(Receipt), attempt="a", engine="e")


def _record(label: Labelled) -> dict[str, object]:
    return Receipt.model_validate(label.gold).model_dump()


def _closed(label: Labelled) -> Outcome:
    return Outcome(
        label.document_id,
        Status.CLOSED,
        Cause.BUDGET,
        record=_record(label),
        output_tokens=160,
        budget_tokens=160,
        shaped_fields=("items[1].name",),
        spans=(FoundSpan("company", 0, 5),),
    )


def _printed(show: object) -> str:
    console = Console(file=io.StringIO(), width=120, no_color=True)
    show(console, _outcomes(), DOCUMENTS)  # type: ignore[operator]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_two_valid_records_and_a_closed_one_are_shown_beside_their_text() -> None:
    text = _printed(show_records)
    shown = [label for label in DOCUMENTS if label.document_id in text]
    assert [label.document_id for label in shown] == ["receipt-0000", "receipt-0001", "receipt-0002"]
    for label in shown:
        assert label.text is not None
        assert label.text.splitlines()[0] in text
        assert str(label.gold["date"]) in text
    assert "shaped: items[1].name" in text


def test_the_score_counts_a_wrong_value_and_a_missing_record_as_wrong() -> None:
    lines = {line.split("│")[1].strip(): line for line in _printed(show_scores).splitlines() if line.startswith("│")}
    assert "6 of 8" in lines["total"]
    assert "7 of 8" in lines["company"]
    assert "7 of 8" in lines["items"]
