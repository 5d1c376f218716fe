"""Parts: what is damaged, incomplete or contradictory is never taken for a part."""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, ValidationError

from pipeline.core.errors import VerificationError
from pipeline.core.outcome import Cause, FoundSpan, Outcome, Status
from pipeline.storage.arrow import outcomes_table, record_schema
from pipeline.storage.footer import NO_CAUSE, PartFooter, Problem, Timings, histogram, part_footer
from pipeline.storage.parts import _digest, encode_part, merge_parts, read_footer, read_part, read_statuses
from pipeline.storage.store import Store
from tests.stores import MemoryStore
from tests.unit.storage.earlier import without_copied

NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
URI = "s3://memory/run/parts/part-0000000000000000.parquet"


class Record(BaseModel):
    title: str


SCHEMA = record_schema(Record)
ROWS = [
    Outcome(
        "a",
        Status.VALID,
        record={"title": "t" * 50},
        prompt_tokens=100,
        output_tokens=7,
        budget_tokens=8,
        slack_tokens=1,
    ),
    Outcome(
        "b",
        Status.CLOSED,
        Cause.BUDGET,
        record={"title": ""},
        prompt_tokens=50,
        output_tokens=8,
        slack_tokens=0,
        shaped_fields=("items[0].name", "items[1].name", "title"),
        spans=(FoundSpan("title", 3, 5), FoundSpan("total", 7, 7, is_ambiguous=True)),
    ),
    Outcome("c", Status.FAILED, Cause.EMPTY),
    Outcome(None, Status.FAILED, Cause.NULL_ID),
    Outcome("d", Status.FAILED, Cause.EMPTY),
    Outcome("e", Status.TRUNCATED, Cause.BUDGET, raw='{"title": "'),
]


def _part(rows: list[Outcome], **changes: Any) -> tuple[pa.Table, PartFooter]:
    given: dict[str, Any] = {
        "shard_id": "0" * 16,
        "fingerprint": "f" * 64,
        "attempt": "attempt-1",
        "engine": "scripted 1",
        "started_at": NOW,
        "finished_at": NOW + dt.timedelta(seconds=5),
        "timings_s": Timings(decode=1.5, wall=5),
        "cached_tokens": 20,
        **changes,
    }
    table = outcomes_table(rows, SCHEMA, attempt=given["attempt"], engine=given["engine"])
    return table, part_footer(rows, **given)


def _stored(data: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put(URI, data)
    return store


def test_the_counts_are_those_of_the_rows() -> None:
    _, footer = _part(ROWS)
    assert footer.rows == 6
    assert footer.counts == {
        Status.VALID: {NO_CAUSE: 1},
        Status.CLOSED: {"budget": 1},
        Status.TRUNCATED: {"budget": 1},
        Status.FAILED: {"empty": 2, "null_id": 1},
    }
    assert [footer.of(status) for status in Status] == [1, 1, 1, 0, 3]
    assert (footer.tokens.prompt, footer.tokens.output, footer.tokens.cached) == (150, 15, 20)
    assert footer.output_tokens_histogram == (0, 0, 0, 1, 1)
    assert footer.slack_tokens_histogram == (1, 1)
    assert footer.shaped_fields == {"items[].name": 1, "title": 1}
    assert (footer.spans.grounded, footer.spans.ambiguous, footer.spans.empty) == (2, 1, 1)
    assert footer.problems[:2] == (
        Problem(document_id="c", status=Status.FAILED, cause=Cause.EMPTY),
        Problem(document_id=None, status=Status.FAILED, cause=Cause.NULL_ID),
    )
    assert len(footer.problems) == 3


def test_a_histogram_holds_each_value_once() -> None:
    assert histogram([0, 1, 2, 3, 4, None, 7, 8]) == (1, 1, 2, 2, 1)
    assert histogram([]) == ()


def test_a_part_is_read_as_it_was_encoded() -> None:
    table, footer = _part(ROWS)
    store = _stored(encode_part(table, footer))
    assert read_footer(store, URI) == footer
    assert read_part(store, URI).equals(table)


def test_a_part_of_no_rows_is_a_part() -> None:
    table, footer = _part([])
    store = _stored(encode_part(table, footer))
    assert read_footer(store, URI).rows == 0
    assert read_part(store, URI).schema.equals(SCHEMA)


def test_a_footer_costs_the_end_of_the_object_only() -> None:
    draw = random.Random(0)
    rows = [Outcome(str(n), Status.VALID, record={"title": draw.randbytes(100).hex()}) for n in range(5000)]
    data = encode_part(*_part(rows))
    store = _stored(data)
    read: list[int] = []
    open_input = store.open_input

    def counted(uri: str, *, etag: str | None = None) -> Any:
        file = open_input(uri, etag=etag)

        class Counted:
            closed = False

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def read(self, size: int = -1) -> bytes:
                data = file.read(size)
                read.append(len(data))
                return data

        return Counted()

    store.open_input = counted  # type: ignore[method-assign]
    assert read_footer(store, URI).rows == 5000
    assert 0 < sum(read) <= 128 * 1024 < len(data)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_table_that_lost_rows_is_not_encoded(lost: int) -> None:
    table, footer = _part(ROWS)
    with pytest.raises(VerificationError, match="contradict"):
        encode_part(table.slice(lost), footer)


def test_a_footer_that_does_not_add_up_cannot_be_made() -> None:
    _, footer = _part(ROWS)
    with pytest.raises(ValidationError, match="add up to 6"):
        PartFooter.model_validate({**footer.model_dump(), "rows": 7})


def test_a_flipped_bit_is_refused_or_alters_no_row() -> None:
    """One bit in every seventh byte; what neither a page's checksum nor our digest covers must be harmless."""
    table, footer = _part(ROWS)
    data = encode_part(table, footer)
    altered = []
    for position in range(0, len(data), 7):
        damaged = data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
        try:
            read = read_part(_stored(damaged), URI)
        except VerificationError:
            continue
        if not read.equals(table):
            altered.append(position)
    assert not altered


@pytest.mark.parametrize("cut", [0, 3, 4, 100, -1, -9])
def test_a_cut_object_is_not_a_part(cut: int) -> None:
    data = encode_part(*_part(ROWS))
    for read in (read_footer, read_part):
        with pytest.raises(VerificationError, match="Parquet"):
            read(_stored(data[:cut]), URI)


def test_a_stranger_is_not_a_part() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    for read in (read_footer, read_part):
        with pytest.raises(VerificationError, match="no intact footer"):
            read(_stored(sink.getvalue().to_pybytes()), URI)


def test_a_footer_of_other_rows_is_found() -> None:
    table, footer = _part(ROWS)
    good = pq.ParquetFile(pa.BufferReader(encode_part(table, footer)))
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, good.schema_arrow, compression="zstd") as writer:
        writer.write_table(good.read().slice(2))
        writer.add_key_value_metadata(dict(good.metadata.metadata))
    for read in (read_footer, read_part):
        with pytest.raises(VerificationError, match="4 rows, but its footer says 6"):
            read(_stored(sink.getvalue().to_pybytes()), URI)


def test_a_footer_of_a_later_version_is_refused() -> None:
    table, footer = _part(ROWS)
    # The digest would refuse it too, so a right one is put in.
    later = footer.model_dump_json().replace('"version":1', '"version":2')
    assert later != footer.model_dump_json()
    changed = _with_footer(table, later.encode())
    with pytest.raises(VerificationError, match="does not know"):
        read_footer(_stored(changed), URI)


@pytest.mark.parametrize("read", [read_part, read_statuses])
def test_rows_that_contradict_an_intact_footer_are_refused(read: Callable[[Store, str], object]) -> None:
    """Fails when the counts of a part are believed without a look at its rows."""
    _, footer = _part(ROWS)
    table, _ = _part([*ROWS[:-1], Outcome("e", Status.FAILED, Cause.EMPTY)])
    with pytest.raises(VerificationError, match="contradict the counts"):
        read(_stored(_with_footer(table, footer.model_dump_json().encode())), URI)


def test_a_part_that_does_not_read_back_as_it_was_written_is_not_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a version of Arrow writes what it reads otherwise; fails when nothing is read back."""
    table, footer = _part(ROWS)
    ids = pa.array(["other", *table["_document_id"].to_pylist()[1:]], pa.string())
    write = pq.write_table

    def altered(given: pa.Table, sink: Any, **options: Any) -> None:
        index = given.schema.get_field_index("_document_id")
        write(given.set_column(index, given.schema.field(index), ids), sink, **options)

    monkeypatch.setattr(pq, "write_table", altered)
    with pytest.raises(VerificationError, match="does not read back"):
        encode_part(table, footer)


def _with_footer(table: pa.Table, text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    metadata: Any = {
        b"recordmill.part": text,
        b"recordmill.part.sha256": _digest(text, table.schema),
    }
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue().to_pybytes()


def test_pages_carry_checksums_and_compress() -> None:
    rows = [Outcome(str(n), Status.VALID, record={"title": "title " * 20}) for n in range(1000)]
    data = encode_part(*_part(rows))
    metadata = pq.read_metadata(pa.BufferReader(data))
    assert {metadata.row_group(0).column(index).compression for index in range(metadata.num_columns)} == {"ZSTD"}
    start = metadata.row_group(0).column(0).data_page_offset
    damaged = data[: start + 20] + struct.pack("B", data[start + 20] ^ 1) + data[start + 21 :]
    with pytest.raises(VerificationError, match=r"damaged|contradict"):
        read_part(_stored(damaged), URI)


def test_halves_merge_into_the_part_that_one_attempt_would_have_made() -> None:
    whole_table, whole = _part(ROWS, attempt="attempt-9")
    table, merged = merge_parts(
        [
            _part(ROWS[:2], shard_id="1" * 16, timings_s=Timings(decode=1, wall=2), cached_tokens=5),
            _part(ROWS[2:], shard_id="2" * 16, timings_s=Timings(decode=0.5, wall=3), cached_tokens=15),
        ],
        shard_id="0" * 16,
        attempt="attempt-9",
    )
    assert merged == whole
    assert table.drop_columns(["_attempt"]).equals(whole_table.drop_columns(["_attempt"]))
    assert set(table["_attempt"].to_pylist()) == {"attempt-1"}
    store = _stored(encode_part(table, merged))
    assert read_part(store, URI).num_rows == 6


def test_halves_that_were_read_back_merge_too() -> None:
    halves = [_part(ROWS[:3]), _part(ROWS[3:])]
    read = [(read_part(_stored(encode_part(*half)), URI), half[1]) for half in halves]
    table, merged = merge_parts(read, shard_id="0" * 16, attempt="attempt-2")
    assert read_part(_stored(encode_part(table, merged)), URI)["_document_id"].to_pylist() == [
        "a",
        "b",
        "c",
        None,
        "d",
        "e",
    ]


@pytest.mark.parametrize("old", [0, 1])
def test_a_half_of_an_earlier_version_merges_with_one_of_this(old: int) -> None:
    """An earlier version's `_spans` had no `copied`."""
    halves = [_part(ROWS[:2]), _part(ROWS[2:])]
    table, footer = halves[old]
    earlier = without_copied(table)
    halves[old] = read_part(_stored(encode_part(earlier, footer)), URI), footer
    merged = merge_parts(halves, shard_id="0" * 16, attempt="a")
    read = read_part(_stored(encode_part(*merged)), URI)
    assert earlier.schema != SCHEMA
    assert read.schema.equals(SCHEMA)
    assert read["_spans"].to_pylist() == _part(ROWS)[0]["_spans"].to_pylist()


def test_halves_of_different_runs_do_not_merge() -> None:
    with pytest.raises(VerificationError, match="different runs"):
        merge_parts([_part(ROWS[:2]), _part(ROWS[2:], fingerprint="e" * 64)], shard_id="0" * 16, attempt="a")


def test_the_footer_holds_no_text_of_documents_or_records() -> None:
    secret = "what the document says"
    rows = [
        Outcome("a", Status.VALID, record={"title": secret}),
        Outcome("b", Status.INVALID, Cause.VALIDATOR, detail=secret, raw=secret),
    ]
    assert (
        secret
        not in part_footer(
            rows, shard_id="0" * 16, fingerprint="f", attempt="a", engine="e", started_at=NOW, finished_at=NOW
        ).model_dump_json()
    )
