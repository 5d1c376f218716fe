"""The long form of the soundness proof, as a table: `python -m tests.soundness --draws 10000`."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.soundness.entry import Entry
from tests.soundness.instances import instances_of
from tests.soundness.models import CATALOGUE
from tests.soundness.subject import Subject, compiled, draws, mutants

__all__ = ["main"]

_SHOWN = 3


@dataclass(slots=True)
class Tally:
    """Counts of one entry; `examples` are the first few texts that break the proof, each with why."""

    draws: int = 0
    distinct: int = 0
    unsound: int = 0
    refused_by_type: int = 0
    mutants_accepted: int = 0
    mutants_unsound: int = 0
    instances: int = 0
    instances_refused: int = 0
    examples: list[str] | None = None

    def note(self, text: bytes, problem: str) -> None:
        self.examples = self.examples or []
        if len(self.examples) < _SHOWN:
            self.examples.append(f"{text[:160]!r}: {problem}")


def _check_draws(subject: Subject, tally: Tally, count: int, seed: int) -> list[bytes]:
    seen: set[bytes] = set()
    kept: list[bytes] = []
    for text in draws(subject.grammar, count, f"{subject.entry.name} {seed}"):
        tally.draws += 1
        if text in seen:
            continue
        seen.add(text)
        if len(kept) < 200:
            kept.append(text)
        tally.refused_by_type += subject.type_refuses(text)
        problem = subject.complaint(text)
        if problem is not None:
            tally.unsound += 1
            tally.note(text, problem)
    tally.distinct = len(seen)
    return kept


def _check_mutants(subject: Subject, tally: Tally, texts: list[bytes], count: int, seed: int) -> None:
    assert subject.grammar is not None
    for text in mutants(texts, count, f"{subject.entry.name} {seed}"):
        if not subject.grammar.automaton.accepts(text):
            continue
        tally.mutants_accepted += 1
        problem = subject.complaint(text)
        if problem is not None:
            tally.mutants_unsound += 1
            tally.note(text, f"(a mutant) {problem}")


def _check_instances(subject: Subject, tally: Tally, count: int) -> None:
    grammar = subject.grammar
    assert grammar is not None

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(instances_of(subject.entry))
    def check(text: bytes) -> None:
        tally.instances += 1
        if not grammar.automaton.accepts(text):
            tally.instances_refused += 1
            tally.note(text, "a valid instance that the automaton refuses")

    try:
        check()
    except Unsatisfiable:
        tally.note(b"", "no valid instance was found to try")


def _tallies(entries: list[Entry], arguments: argparse.Namespace) -> Iterator[tuple[Subject, Tally]]:
    for entry in entries:
        subject, tally = compiled(entry.name), Tally()
        if subject.grammar is not None:
            texts = _check_draws(subject, tally, arguments.draws, arguments.seed)
            _check_mutants(subject, tally, texts, arguments.mutants, arguments.seed)
            if arguments.instances and not entry.tags & {"no_json", "unwritten"}:
                _check_instances(subject, tally, arguments.instances)
        yield subject, tally


def _row(subject: Subject, tally: Tally) -> str:
    states = subject.grammar.automaton.state_count if subject.grammar is not None else 0
    return (
        f"{subject.entry.name:30} {subject.verdict:9} {states:7} {subject.compile_s * 1e3:9.1f} {tally.draws:7} "
        f"{tally.distinct:8} {tally.unsound:8} {tally.refused_by_type:8} {tally.mutants_accepted:8} "
        f"{tally.mutants_unsound:8} {tally.instances:6} {tally.instances_refused:8}"
    )


_HEAD = (
    f"{'type':30} {'verdict':9} {'states':>7} {'ms':>9} {'draws':>7} {'distinct':>8} {'unsound':>8} {'refused':>8} "
    f"{'mutants':>8} {'unsound':>8} {'inst.':>6} {'refused':>8}"
)


def _is_wrong(subject: Subject, tally: Tally) -> bool:
    entry = subject.entry
    is_exact = entry.over_restricting is None or entry.instances is not None
    return (
        tally.unsound > 0
        or tally.mutants_unsound > 0
        or (is_exact and tally.instances_refused > 0)
        or (subject.verdict == "widened" and not entry.may_widen)
        or (subject.verdict == "refused" and not entry.may_be_refused)
    )


def main(argv: list[str] | None = None) -> int:
    """Prints a row a type, and under it what breaks the proof; 1 where anything does."""
    parser = argparse.ArgumentParser(prog="python -m tests.soundness", description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=100, help="valid instances tried for acceptance")
    parser.add_argument("--only", default="*", help="names, as a shell pattern; several with commas")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    patterns = arguments.only.split(",")
    entries = [entry for entry in CATALOGUE if any(fnmatch.fnmatch(entry.name, pattern) for pattern in patterns)]
    print(_HEAD)
    wrong = 0
    for subject, tally in _tallies(entries, arguments):
        print(_row(subject, tally), flush=True)
        if subject.verdict != "enforced":
            print(f"    {subject.verdict}: {subject.reasons[:200]}")
        for example in tally.examples or ():
            print(f"    {example}")
        wrong += _is_wrong(subject, tally)
    print(f"{len(entries)} types, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
