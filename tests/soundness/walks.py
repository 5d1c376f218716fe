"""Walks a guide as a decoder would, with logits that do not want to stop, and checks what the budget promises.

`python -m tests.soundness.walks --walks 100000` is the long form; no engine is needed.
"""

from __future__ import annotations

import argparse
import random
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.decoding import Guide, Vocabulary, compile_guide, review
from tests.soundness.subject import Subject, compiled

__all__ = ["MODELS", "POLICIES", "Logits", "Walk", "check_walk", "main", "small_vocabulary", "walk"]

MODELS = (
    "model_person", "model_invoice", "model_defaults", "model_aliases", "model_depth_5", "model_shared_nested",
    "optional_fields", "union_models", "discriminated_fields", "recursive_tree", "typed_dict", "str", "str_long",
    "pattern_min_max", "list_int", "list_min_max", "list_of_lists", "tuple_fixed", "set_literal", "dict_str_int",
    "dict_max_size", "int_ge_le_signs", "float_unit", "decimal_money", "datetime", "date", "email", "literal_mixed",
)  # fmt: skip
POLICIES = ("random", "letters", "longest", "never_close", "escape", "digits", "open", "eager")

_ROWS = 509
_WORDS = (
    '{"', '":"', '":', '","', '"}', '"},', '},{', '"},{"', '"]', "],", "]}", '":[', '":[{"', '""', "null", "true",
    "false", "\\n", '\\"', "\\u00", "\\\\", "12", "2024", "-0", "00", ".5", "e+1", "-01", "T00:", ":00", "the", " the",
    "name", "value", "total", "item", "INV", "EUR", "é", "☃", "🎉", "ab", "abc", "   ", '", "', "a@b.co", "https://",
)  # fmt: skip


def small_vocabulary(seed: int = 0) -> Vocabulary:
    """Every byte, common pieces of JSON and some random strings of two to five letters or digits, then the end."""
    rng = random.Random(seed)
    pieces = [bytes([value]) for value in range(256)]
    pieces += [word.encode() for word in _WORDS]
    for _ in range(120):
        pieces.append("".join(rng.choice("abcdenrst 0123456789") for _ in range(rng.randrange(2, 6))).encode())
    tokens: list[bytes | None] = [*dict.fromkeys(pieces), None]
    return Vocabulary(tokens, {len(tokens) - 1})


class Logits:
    """Pseudo-random logits that depend on the whole prefix, plus the leaning of a policy."""

    def __init__(self, vocabulary: Vocabulary, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._rows = rng.standard_normal((_ROWS, vocabulary.size)).astype(np.float32)
        tokens = [token or b"" for token in vocabulary.tokens]
        self._leaning = {policy: _leaning(policy, tokens, vocabulary.eos_ids) for policy in POLICIES}

    def of(self, prefix_hash: int, policy: str) -> np.ndarray[Any, Any]:
        """float32[V] for the prefix with that hash."""
        return self._rows[prefix_hash % _ROWS] + self._leaning[policy]


def _leaning(policy: str, tokens: Sequence[bytes], eos_ids: Sequence[int]) -> np.ndarray[Any, Any]:
    bias = np.zeros(len(tokens), np.float32)
    for index, token in enumerate(tokens):
        closes = sum(token.count(byte) for byte in (b'"', b"]", b"}"))
        if policy == "letters":
            bias[index] = 50 if token.isalpha() else 0
        elif policy == "longest":
            bias[index] = 10 * len(token) - 30 * closes
        elif policy == "never_close":
            bias[index] = -50 * closes
        elif policy == "escape":
            bias[index] = 50 if token.startswith(b"\\") else 0
        elif policy == "digits":
            bias[index] = 50 if token.isdigit() else 0
        elif policy == "open":
            bias[index] = 50 * sum(token.count(byte) for byte in (b"{", b"[", b","))
        elif policy == "eager":
            bias[index] = 50 * closes + 50 * (token.count(b"]") + token.count(b"}"))
    if policy != "random":
        bias[list(eos_ids)] = 100 if policy == "eager" else -100
    return bias


@dataclass(frozen=True, slots=True)
class Walk:
    """Ids taken, the end-of-sequence id left out.  `ended`: that id was chosen; otherwise the tokens ran out."""

    token_ids: tuple[int, ...]
    ended: bool
    is_accepting: bool


def walk(
    guide: Guide,
    logits: Logits,
    policy: str,
    *,
    seed: int,
    budget: int | None,
    most: int,
    reserve: Sequence[int] = (),
) -> Walk:
    """At most `most` ids, each the allowed one with the highest logit.

    Raises:
        AssertionError: a mask is empty, or allows an id that `advance` then refuses.
    """
    cursor = guide.cursor(budget, reserve)
    mask = np.zeros((guide.vocab_size + 31) // 32, np.int32)
    address = mask.ctypes.data
    prefix_hash, taken = seed, []
    while len(taken) < most:
        cursor.write_mask(address)
        allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: guide.vocab_size].astype(bool)
        assert allowed.any(), f"an empty mask after {taken}"
        chosen = int(np.where(allowed, logits.of(prefix_hash, policy), -np.inf).argmax())
        assert cursor.advance(chosen), f"the mask allows {chosen} after {taken}, advance refuses it"
        if cursor.is_terminated:
            return Walk(tuple(taken), True, cursor.is_accepting)
        taken.append(chosen)
        prefix_hash = zlib.crc32(chosen.to_bytes(4, "little"), prefix_hash)
    return Walk(tuple(taken), False, cursor.is_accepting)


def check_walk(
    subject: Subject,
    guide: Guide,
    logits: Logits,
    policy: str,
    *,
    seed: int,
    budget: int,
    reserve: Sequence[int] = (),
) -> bool:
    """One walk with a budget against the same walk without; whether the budget changed it.

    Raises:
        AssertionError: the record does not close within the budget, is not what the grammar promises, or is marked as
            untouched by the budget although the walk without one differs, or differs before the marked step.
    """
    bounded = walk(guide, logits, policy, seed=seed, budget=budget, most=budget, reserve=reserve)
    assert bounded.is_accepting, f"not closed within {budget}: {guide.decode(bounded.token_ids)!r}"
    text = guide.decode(bounded.token_ids)
    assert subject.grammar is not None
    assert subject.grammar.automaton.accepts(text), text
    problem = subject.complaint(text)
    assert problem is None, f"{text!r}: {problem}"

    marks = review(guide, bounded.token_ids, budget, reserve)
    assert marks.is_complete
    assert marks.slack_tokens == budget - len(bounded.token_ids)
    free = walk(guide, logits, policy, seed=seed, budget=None, most=len(bounded.token_ids) + 1)
    is_same = free.ended and free.token_ids == bounded.token_ids
    if marks.first_tightened is None:
        assert is_same, f"unmarked, yet without the budget it would be {guide.decode(free.token_ids)!r}, not {text!r}"
    else:
        before = marks.first_tightened
        assert free.token_ids[:before] == bounded.token_ids[:before], f"changed before the marked step {before}"
    return not is_same


def _random_budget(rng: random.Random, guide: Guide) -> int:
    return guide.least_tokens + rng.choice((0, 0, 1, 2, 3, 5, 8, 13, 21, 34, 80))


def _random_reserve(rng: random.Random, guide: Guide) -> tuple[int, ...]:
    if rng.random() < 0.5:
        return ()
    return tuple(rng.choice((0, 0, 1, 4, 30)) for _ in guide.fields)


def _vocabulary(folder: str | None) -> Vocabulary:
    if folder is None:
        return small_vocabulary()
    from transformers import AutoTokenizer

    return Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(folder))


def main(argv: list[str] | None = None) -> int:
    """Walks each model in turn; 1 where any walk breaks a promise."""
    parser = argparse.ArgumentParser(prog="python -m tests.soundness.walks", description=__doc__)
    parser.add_argument("--walks", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--tokenizer", help="folder of a tokenizer; a small made-up vocabulary without it")
    arguments = parser.parse_args(argv)
    vocabulary = _vocabulary(arguments.tokenizer)
    logits = Logits(vocabulary, arguments.seed)
    names = arguments.models.split(",")
    broken = 0
    for position, name in enumerate(names):
        rng = random.Random(f"{arguments.seed} {name}")
        subject = compiled(name)
        if subject.grammar is None:
            print(f"{name}: refused: {subject.refusal}")
            continue
        guide = compile_guide(subject.grammar, vocabulary)
        counts: Counter[str] = Counter()
        share = arguments.walks // len(names) + (position < arguments.walks % len(names))
        for _ in range(share):
            policy, budget = rng.choice(POLICIES), _random_budget(rng, guide)
            reserve, seed = _random_reserve(rng, guide), rng.randrange(2**31)
            try:
                changed = check_walk(subject, guide, logits, policy, seed=seed, budget=budget, reserve=reserve)
                counts["shaped" if changed else "untouched"] += 1
            except AssertionError as error:
                counts["broken"] += 1
                if counts["broken"] <= 3:
                    print(f"  {name} {policy} seed {seed} budget {budget} reserve {reserve}: {error}")
        broken += counts["broken"]
        print(f"{name:24} least {guide.least_tokens:4}  {dict(counts)}", flush=True)
    print(f"{arguments.walks} walks, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
