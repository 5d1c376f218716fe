"""Soundness on JSON Schemas: what is drawn from each MaskBench schema is checked by a validator.

`python -m tests.soundness.schemas --sample 300 --draws 50`
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from multiprocessing.connection import Connection
from typing import Any

from tests.bench.child import Child
from tests.bench.maskbench import DATA, SchemaCase, read_cases
from tests.soundness.checks import DuplicateKeyError, strict_json
from tests.soundness.json_schema import schema_complaint, schema_validator

__all__ = ["main", "serve"]


def serve(connection: Connection, draws: int, most_bytes: int) -> None:
    """Answers each schema with `(verdict, complaints)`, every complaint a text and why it breaks the schema."""
    from pipeline.core.errors import SchemaRefusedError
    from pipeline.decoding import compile_grammar

    connection.send("ready")
    while True:
        name, schema = connection.recv()
        try:
            grammar = compile_grammar(schema)
        except SchemaRefusedError as error:
            connection.send(("refused", [str(error)]))
            continue
        verdict = "enforced" if all(field.verdict == "enforced" for field in grammar.verdicts) else "widened"
        validator, rng = schema_validator(schema), random.Random(name)
        complaints = []
        for _ in range(draws):
            text = grammar.automaton.sample(rng, most_bytes)
            problem = _problem(text, validator if verdict == "enforced" else None)
            if problem is not None:
                complaints.append(f"{text[:300]!r}: {problem}")
        connection.send((verdict, complaints))


def _problem(text: bytes, validator: Any) -> str | None:
    try:
        value = strict_json(text)
    except DuplicateKeyError:
        # Keys of free choice may repeat; readers keep the last.
        value = json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}"
    return None if validator is None else schema_complaint(validator, value)


def _check(child: Child, case: SchemaCase, timeout_s: float) -> tuple[str, list[str]]:
    child.send((case.name, case.schema))
    ending, reply = child.reply(timeout_s)
    return (ending, []) if ending != "reply" else reply


def main(argv: list[str] | None = None) -> int:
    """Prints the texts that break their schemas; 1 where there are any under an `enforced` schema."""
    parser = argparse.ArgumentParser(prog="python -m tests.soundness.schemas", description=__doc__)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--most-bytes", type=int, default=600)
    parser.add_argument("--timeout", type=float, default=30.0)
    arguments = parser.parse_args(argv)
    if not DATA.exists():
        print(f"no data at {DATA}", file=sys.stderr)
        return 2
    counts: Counter[str] = Counter()
    with Child(serve, arguments.draws, arguments.most_bytes) as child:
        for case in read_cases(DATA, sample=arguments.sample, seed=arguments.seed):
            verdict, complaints = _check(child, case, arguments.timeout)
            unsound = verdict in ("enforced", "widened") and bool(complaints)
            counts["unsound" if unsound else verdict] += 1
            if unsound:
                print(f"{case.name} {verdict}: {len(complaints)} of {arguments.draws}\n    {complaints[0]}", flush=True)
    print(dict(counts))
    return 1 if counts["unsound"] else 0


if __name__ == "__main__":
    sys.exit(main())
