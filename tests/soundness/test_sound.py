"""Whatever an automaton accepts is strict JSON, and a value of its type where every verdict is `enforced`.

Draws for each type: `RECORDMILL_SOUNDNESS_DRAWS` (default 60); `python -m tests.soundness` is the long form.
"""

from __future__ import annotations

import os

import pytest

from tests.soundness.checks import DuplicateKeyError, strict_json
from tests.soundness.entry import Entry
from tests.soundness.models import CATALOGUE
from tests.soundness.subject import Subject, compiled, draws, mutants

DRAWS = int(os.environ.get("RECORDMILL_SOUNDNESS_DRAWS", "60"))
MUTANTS_PER_DRAW = 10

each_entry = pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)


def _subject(entry: Entry) -> Subject:
    subject = compiled(entry.name)
    if subject.grammar is None:
        if not entry.may_be_refused:
            pytest.fail(f"refused: {subject.refusal}")
        pytest.skip(f"refused, as it may be: {subject.refusal}")
    return subject


def test_the_catalogue_names_every_entry_once() -> None:
    names = [entry.name for entry in CATALOGUE]
    assert len(names) == len(set(names))


@each_entry
def test_the_verdict_is_one_that_the_type_allows(entry: Entry) -> None:
    subject = _subject(entry)
    if not entry.may_widen:
        assert subject.verdict == "enforced", subject.reasons
    if "no_json" in entry.tags:
        assert subject.verdict != "enforced", "no JSON validates, so nothing can be enforced"


@each_entry
def test_every_draw_validates(entry: Entry) -> None:
    subject = _subject(entry)
    for text in draws(subject.grammar, DRAWS, entry.name):
        assert subject.grammar.automaton.accepts(text), f"a draw that the automaton refuses: {text!r}"
        problem = subject.complaint(text)
        assert problem is None, f"{text!r}: {problem}"


@each_entry
def test_every_accepted_mutant_validates(entry: Entry) -> None:
    subject = _subject(entry)
    texts = list(draws(subject.grammar, max(4, DRAWS // 4), f"{entry.name} to mutate"))
    for text in mutants(texts, DRAWS * MUTANTS_PER_DRAW, entry.name):
        if subject.grammar.automaton.accepts(text):
            problem = subject.complaint(text)
            assert problem is None, f"{text!r}: {problem}"


@each_entry
def test_no_proper_prefix_of_a_closed_text_is_accepted(entry: Entry) -> None:
    subject = _subject(entry)
    for text in draws(subject.grammar, max(4, DRAWS // 8), f"{entry.name} prefixes"):
        # A number may go on: `1` and `12` are both whole.  Everything else ends with a byte that closes it.
        if text[-1:] not in (b"}", b"]", b'"'):
            continue
        for end in range(len(text)):
            assert not subject.grammar.automaton.accepts(text[:end]), text[:end]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a":1,"a":2}', DuplicateKeyError),
        (b"NaN", ValueError),
        (b"[-Infinity]", ValueError),
        (b'"\xff"', UnicodeDecodeError),
        (b'"\x01"', ValueError),
        (b"01", ValueError),
        (b"[1,]", ValueError),
        (b"1 2", ValueError),
    ],
)
def test_the_check_refuses_what_is_not_strict_json(text: bytes, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        strict_json(text)
