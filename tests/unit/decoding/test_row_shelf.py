"""Rows of strings, which are put together of unescaped characters and the rest, against each token by itself."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decoding import Guide, Vocabulary, compile_grammar, compile_guide
from pipeline.decoding import rows as rows_module
from pipeline.decoding.costs import Costs
from pipeline.decoding.unescaped_kernels import APART, legal_lengths, unescaped_next
from tests.unit.decoding.support import legal_ids

WORDS = (
    "a", "b", "ab", "abab", "é", "aé", "日本", "日a", "𝄞", "\x7f", "\x80", "a" * 32,
    "a" * 33, '"', 'a"', '"}', '","', "\\",
    "\\n", "a\\", "\n", "null", '{"', '":"', "1", "12",
)  # fmt: skip
PARTS = (
    b"\xc3",
    b"\xa9",
    b"\xe6",
    b"\xe6\x97",
    b"\xa5",
    b"a\xc3",
    b"\xa9a",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\xf4\x90\x80\x80",
)
TOKENS: tuple[bytes | None, ...] = (
    None,
    *(word.encode() for word in WORDS),
    *PARTS,
    *(bytes([n]) for n in range(256)),
)
VOCABULARY = Vocabulary((*TOKENS, None), {len(TOKENS)})
PATTERNS = (None, None, "^.{0,3}[ab]*$", "^[^a]*$", "^a", "^[a-zé]+$", "^[ -~]*$", "^.*b$")

strings = st.builds(
    lambda least, more, pattern: {
        "type": "string",
        "minLength": least,
        **({} if more is None else {"maxLength": max(1, least + more)}),
        **({} if pattern is None else {"pattern": pattern}),
    },
    st.integers(0, 3), st.sampled_from((None, 0, 1, 4, 40)), st.sampled_from(PATTERNS),
)  # fmt: skip


def _path(guide: Guide, state: int, token: bytes) -> list[int]:
    """The states on the way of a token; empty where it is not legal."""
    path = []
    for byte in token:
        state = int(guide.table[state, guide.class_of_byte[byte]])
        if state == guide.state_count:
            return []
        path.append(state)
    return path


def _compiled(schema: dict[str, Any]) -> Guide:
    return compile_guide(compile_grammar(schema), VOCABULARY)


@given(strings, st.booleans(), st.data())
def test_a_row_holds_the_legal_ids_whether_made_ahead_or_when_needed(
    schema: dict[str, Any], is_ahead: bool, data: st.DataObject
) -> None:
    """Fails when an automaton whose characters lead apart is taken for one of a plain string."""
    with mock.patch.object(rows_module, "_ROW_BYTES_KEPT", rows_module._ROW_BYTES_KEPT if is_ahead else 0):
        guide = _compiled({"type": "object", "properties": {"a": schema}, "required": ["a"]})
    for state in _some_states(guide, data):
        legal = [index for index, token in enumerate(TOKENS) if token and _path(guide, state, token)]
        assert legal_ids(guide.row(state).words, len(TOKENS)) == legal


@given(strings, st.booleans(), st.data())
def test_a_tight_row_holds_the_ids_after_which_closing_can_be_afforded(
    schema: dict[str, Any], is_optional: bool, data: st.DataObject
) -> None:
    """Fails when a gate on the way, or a length between two that are too dear, is not looked at."""
    kind = {"anyOf": [schema, {"type": "null"}]} if is_optional else schema
    guide = _compiled({"type": "object", "properties": {"a": kind, "b": schema}, "required": ["a", "b"]})
    costs = guide.closing.costs((data.draw(st.integers(1, 9)),) * len(guide.fields) if data.draw(st.booleans()) else ())
    for state in _some_states(guide, data):
        limit = data.draw(st.integers(0, costs.most))
        legal = [
            index for index, token in enumerate(TOKENS) if token and _is_afforded(guide, costs, state, limit, token)
        ]
        assert legal_ids(guide.tight_row(state, limit, costs).words, len(TOKENS)) == legal


def _some_states(guide: Guide, data: st.DataObject) -> list[int]:
    return data.draw(st.lists(st.integers(0, guide.state_count - 1), min_size=8, max_size=8, unique=True))


def _is_afforded(guide: Guide, costs: Costs, state: int, limit: int, token: bytes) -> bool:
    path = _path(guide, state, token)
    if not path:
        return False
    if not costs.has_gate(state):
        return bool(costs.cost[path[-1]] <= limit)
    assert costs.entry is not None
    assert costs.gate is not None
    return bool(costs.entry[path[-1]] <= limit) and all(
        costs.entry[passed] <= limit for passed in path if costs.gate[passed]
    )


@pytest.mark.parametrize("kept_bytes", [0, rows_module._ROW_BYTES_KEPT])
def test_equal_rows_are_one(kept_bytes: int) -> None:
    """Fails when a row made when needed is kept beside one of the same ids."""
    with mock.patch.object(rows_module, "_ROW_BYTES_KEPT", kept_bytes):
        guide = _compiled({"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 3})
    costs = guide.closing.costs()
    rows = [guide.row(state) for state in range(guide.state_count)]
    rows += [guide.tight_row(state, limit, costs) for state in range(guide.state_count) for limit in range(costs.most)]
    by_words = {row.words.tobytes(): row for row in rows}
    assert len({id(row) for row in rows}) == len(by_words) < guide.state_count
    assert all(by_words[row.words.tobytes()] is row for row in rows)
    assert {row.is_empty for row in rows} == {False, True}
    assert all(row.is_empty is (not row.words.any()) for row in rows)


@pytest.mark.parametrize(
    "char", ["a", "\x7f", "\x80", "é", "\u07ff", "\u0800", "日", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff"]
)
def test_characters_that_lead_apart_are_told(char: str) -> None:
    """Fails when characters of some length in bytes are not looked at."""
    anything, but_some = _compiled({"type": "string"}), _compiled({"type": "string", "pattern": f"^[^{char}]*$"})
    inside = int(anything.table[0, anything.class_of_byte[ord('"')]])
    assert unescaped_next(anything.table, anything.class_of_byte)[inside] == inside
    inside = int(but_some.table[0, but_some.class_of_byte[ord('"')]])
    assert unescaped_next(but_some.table, but_some.class_of_byte)[inside] == APART


def test_most_ids_need_no_walk() -> None:
    ids = VOCABULARY.unescaped
    assert not np.isin(ids.rest.ids, legal_ids(ids.rows[-1], len(TOKENS))).any()
    spelt = {token for token in TOKENS if token and _is_plain(token)}
    assert {TOKENS[index] for index in legal_ids(ids.rows[-1], len(TOKENS))} == spelt
    assert {TOKENS[index] for index in legal_ids(ids.rows[2], len(TOKENS))} == {
        t for t in spelt if len(t.decode()) <= 2
    }


def _is_plain(token: bytes) -> bool:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return False
    return len(text) <= 32 and all(char >= " " and char not in '"\\' for char in text)


def test_lengths_end_at_a_gate_that_cannot_be_afforded() -> None:
    """Fails when it is passed, as it may be where what lies behind it costs less."""
    onward, cost = np.array([1, 2, 3, 4], np.int32), np.array([5, 1, 9, 1])
    for gates, wanted in ([], [0, 1, 0, 1]), ([2], [0, 1, 0, 0]), ([1], [0, 1, 0, 1]):
        gate, legal = np.isin(np.arange(4), gates), np.zeros(5, np.uint8)
        assert legal_lengths(onward, 0, cost, gate, 3, legal)
        assert legal.tolist() == [*wanted, 0]


def test_rows_made_ahead_are_ready_to_be_written_once_a_guide_is_warm() -> None:
    """Fails when the first step at a row waits for its writer, and the very first one for machine code."""
    guide = _compiled({"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 3})
    made_ahead = guide._rows._saved
    assert made_ahead
    assert all(row.write is None for row in made_ahead)
    guide.warm()
    assert all(row.write is not None for row in made_ahead)
