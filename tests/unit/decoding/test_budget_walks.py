"""What a token budget promises, by walking guides with logits that do not want to stop.

Walks of each model: `RECORDMILL_BUDGET_WALKS` (default 24); `python -m tests.soundness.walks` is the long form.
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from pipeline.decoding import Guide, Vocabulary, compile_guide, review
from tests.soundness.subject import compiled
from tests.soundness.walks import MODELS, POLICIES, Logits, check_walk, small_vocabulary, walk

WALKS = int(os.environ.get("RECORDMILL_BUDGET_WALKS", "24"))


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_vocabulary()


@pytest.fixture(scope="module")
def logits(vocabulary: Vocabulary) -> Logits:
    return Logits(vocabulary, seed=7)


def _guide(name: str, vocabulary: Vocabulary) -> Guide:
    subject = compiled(name)
    if subject.grammar is None:
        pytest.skip(f"refused: {subject.refusal}")
    return compile_guide(subject.grammar, vocabulary)


@pytest.mark.parametrize("name", MODELS)
def test_every_walk_closes_within_its_budget_and_says_whether_it_was_bent(
    name: str, vocabulary: Vocabulary, logits: Logits
) -> None:
    guide, rng = _guide(name, vocabulary), random.Random(name)
    for index in range(WALKS):
        policy = POLICIES[index % len(POLICIES)]
        budget = guide.least_tokens + rng.choice((0, 1, 2, 5, 13, 40))
        reserve = tuple(rng.choice((0, 1, 9)) for _ in guide.fields) if index % 3 == 2 else ()
        check_walk(compiled(name), guide, logits, policy, seed=rng.randrange(2**31), budget=budget, reserve=reserve)


@pytest.mark.parametrize("name", MODELS)
def test_a_budget_that_the_walk_just_fits_changes_nothing(name: str, vocabulary: Vocabulary, logits: Logits) -> None:
    guide = _guide(name, vocabulary)
    for seed in range(WALKS):
        free = walk(guide, logits, ("eager", "random")[seed % 2], seed=seed, budget=None, most=300)
        if free.ended:
            budget = len(free.token_ids)
            bounded = walk(guide, logits, ("eager", "random")[seed % 2], seed=seed, budget=budget, most=budget)
            assert bounded.token_ids == free.token_ids


@pytest.mark.parametrize("name", MODELS)
def test_a_record_with_room_to_spare_is_not_marked(name: str, vocabulary: Vocabulary, logits: Logits) -> None:
    guide = _guide(name, vocabulary)
    least = guide.least_tokens
    path = walk(guide, logits, "random", seed=3, budget=least, most=least).token_ids
    budget = len(path) + guide.state_count + 400
    marks = review(guide, path, budget)
    assert marks.is_complete
    assert marks.first_tightened is None
    assert marks.slack_tokens == budget - len(path)


@pytest.mark.parametrize("name", MODELS)
def test_a_budget_below_the_least_is_refused(name: str, vocabulary: Vocabulary) -> None:
    guide = _guide(name, vocabulary)
    with pytest.raises(ValueError, match=str(guide.least_tokens)):
        guide.cursor(guide.least_tokens - 1)


@pytest.mark.parametrize("name", ["literal_mixed", "int_ge_le_signs", "list_min_max", "set_literal", "union_models"])
def test_the_least_budget_is_the_fewest_tokens_of_any_record(name: str, vocabulary: Vocabulary) -> None:
    guide = _guide(name, vocabulary)
    assert guide.least_tokens == _fewest_tokens(guide)


def _fewest_tokens(guide: Guide) -> int:
    """Breadth first over the cursor's states, by the cursor's own masks."""
    start = guide.cursor()
    frontier: dict[int, list[int]] = {start.state: []}
    seen = set(frontier)
    while frontier:
        following: dict[int, list[int]] = {}
        for path in frontier.values():
            cursor = guide.cursor()
            assert all(cursor.advance(token_id) for token_id in path)
            if cursor.is_accepting:
                return len(path)
            for token_id in _allowed(guide, cursor.row().words):
                assert cursor.advance(token_id)
                if cursor.state not in seen:
                    seen.add(cursor.state)
                    following[cursor.state] = [*path, token_id]
                cursor.rollback(1)
        frontier = following
    raise AssertionError("no record can be spelt")


def _allowed(guide: Guide, words: np.ndarray) -> list[int]:
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little")[: guide.vocab_size]
    return [int(index) for index in np.flatnonzero(bits) if index not in guide.eos_ids]


@pytest.mark.parametrize("name", ["model_person", "model_invoice", "discriminated_fields", "dict_str_int"])
def test_mask_and_advance_agree_on_every_id_at_every_step(name: str, vocabulary: Vocabulary, logits: Logits) -> None:
    guide = _guide(name, vocabulary)
    for budget in (None, guide.least_tokens + 4):
        most = guide.least_tokens + 4
        path = walk(guide, logits, "random", seed=11, budget=budget, most=most).token_ids
        cursor = guide.cursor(budget)
        for token_id in path:
            allowed = set(_allowed(guide, cursor.row().words))
            for candidate in range(guide.vocab_size):
                if candidate in guide.eos_ids:
                    continue
                before = (cursor.state, cursor.emitted)
                took = cursor.advance(candidate)
                assert took == (candidate in allowed), (candidate, cursor.emitted)
                cursor.rollback(int(took))
                assert (cursor.state, cursor.emitted) == before
            assert cursor.advance(token_id)


@pytest.mark.parametrize("name", ["model_person", "model_invoice", "recursive_tree"])
def test_rollback_and_validate_leave_no_trace(name: str, vocabulary: Vocabulary, logits: Logits) -> None:
    guide = _guide(name, vocabulary)
    budget = guide.least_tokens + 6
    path = list(walk(guide, logits, "random", seed=5, budget=budget, most=budget).token_ids)
    cursor, fresh, rng = guide.cursor(budget), guide.cursor(budget), random.Random(name)
    for position, token_id in enumerate(path):
        assert cursor.validate([*path[position:], -1]) == path[position:]
        count = rng.randrange(position + 1)
        cursor.rollback(count)
        assert cursor.validate(path[position - count : position]) == path[position - count : position]
        assert all(cursor.advance(again) for again in path[position - count : position])
        assert np.array_equal(cursor.row().words, fresh.row().words)
        assert cursor.advance(token_id)
        assert fresh.advance(token_id)
    assert cursor.is_accepting
