"""Guides against oracles that walk every token by itself: rows, distances, storage."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from pydantic import BaseModel, Field

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding import Guide, Vocabulary, compile_grammar, compile_guide
from pipeline.decoding.arrays import pack
from tests.unit.decoding.support import EOS, legal_ids, successors, vocabulary


class Line(BaseModel):
    name: str = Field(max_length=6)
    amount: decimal.Decimal = Field(max_digits=5, decimal_places=2)


class Sheet(BaseModel):
    company: Annotated[str, Field(min_length=1, max_length=9)]
    day: dt.date | None = None
    lines: list[Line] = Field(max_length=2)


@pytest.fixture(scope="module")
def guide() -> Guide:
    return compile_guide(compile_grammar(Sheet), vocabulary())


def test_distances_are_exact(guide: Guide) -> None:
    reached = successors(guide)
    distance = [0 if guide.is_accepting(state) else 10**6 for state in range(guide.state_count)]
    for _ in range(guide.state_count):
        shorter = [
            min([distance[state], *(distance[after] + 1 for after in reached[state])])
            for state in range(guide.state_count)
        ]
        if shorter == distance:
            break
        distance = shorter
    assert np.asarray(guide.distance).tolist() == distance
    far = guide.closing.costs().far
    for state in range(guide.state_count):
        assert far[state] >= max((distance[after] for after in reached[state]), default=-1)


def test_rows_hold_the_legal_tokens_and_the_end_where_a_record_is_whole(guide: Guide) -> None:
    for state in range(0, guide.state_count, 3):
        legal = {index for index in range(guide.vocab_size) if guide.next_state(state, index) >= 0}
        if guide.is_accepting(state):
            legal.add(EOS)
        assert set(legal_ids(guide.row(state).words, guide.vocab_size)) == legal


def test_a_guide_reads_back_as_it_was_stored(guide: Guide, tmp_path: Path) -> None:
    guide.save(tmp_path / "guide.bin")
    again = Guide.load(tmp_path / "guide.bin")
    assert again.fingerprint == guide.fingerprint
    assert again.fields == guide.fields
    assert again.least_tokens == guide.least_tokens
    assert (again.table == guide.table).all()
    assert [path.name for path in tmp_path.iterdir()] == ["guide.bin"]


def test_what_is_no_guide_is_refused(guide: Guide) -> None:
    data = guide.to_bytes()
    for broken in (b"", b"nonsense" * 9, data[: len(data) // 2], pack({"format": 0}, {})):
        with pytest.raises(ValueError, match="guide"):
            Guide.from_bytes(broken)


def test_fields_are_named_in_declared_order(guide: Guide) -> None:
    assert guide.fields == ("company", "day", "lines", "lines[]", "lines[].name", "lines[].amount")


def test_a_vocabulary_that_cannot_spell_a_record_is_refused_by_name() -> None:
    digits = Vocabulary([None, *(bytes([value]) for value in range(0x30, 0x3A))], {0})
    with pytest.raises(SchemaRefusedError, match="Sheet"):
        compile_guide(compile_grammar(Sheet), digits)


def test_states_that_tokens_cannot_leave_are_never_entered() -> None:
    """Without a token for `b`, strings that need one are dead although bytes could spell them."""
    tokens = [None, *(bytes([value]) for value in range(256) if value != ord("b"))]
    guide = compile_guide(compile_grammar({"enum": ["ab", "ac"]}), Vocabulary(tokens, {0}))
    cursor = guide.cursor()
    spelt = b""
    while not cursor.is_accepting:
        (only,) = legal_ids(cursor.row().words, guide.vocab_size)
        assert cursor.advance(only)
        spelt += guide.decode((only,))
    assert spelt == b'"ac"'
