"""MaskBench: which schemas an engine compiles, and whether it tells valid instances from invalid ones.

`python -m tests.bench.maskbench --sample 600 --seed 1 --engines ours,outlines,xgrammar,llguidance --out result.json`

Each instance is compact JSON (no white space, non-ASCII characters as they are).  It is tried with its keys in the
order that the schema declares, which every engine here asks for, and as it was written: a valid instance is accepted if
either text is, an invalid one is refused if both are.  The schemas are JSONSchemaBench's (arXiv 2501.10868).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.bench.child import Child
from tests.bench.data import maskbench_file
from tests.bench.heading import heading
from tests.bench.maskbench_child import serve
from tests.bench.maskbench_report import print_report, summary
from tests.soundness.ordering import in_declared_order

__all__ = ["Answer", "Result", "SchemaCase", "main", "read_cases"]

_WRITTEN_EVERY = 50
DATA = maskbench_file()


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema and its instances as texts: `[(is_valid, [text, ...]), ...]`."""

    name: str
    schema: Any
    tests: list[tuple[bool, list[str]]]


@dataclass(slots=True)
class Answer:
    """One instance: what it is, and what the engine took it for."""

    is_valid: bool
    is_accepted: bool


@dataclass(slots=True)
class Result:
    """What one engine made of one schema.

    `status` is `compiled`, `refused` (by the engine's own word), `error` (an exception of the engine), `timeout`,
    `crash` or `memory`; `stage` is where it ended, `compile` or `tests`.
    """

    name: str
    status: str
    stage: str = "compile"
    message: str = ""
    verdict: str = "-"
    compile_s: float | None = None
    tests: list[Answer] = field(default_factory=list)
    mask_us: list[float] = field(default_factory=list)

    @property
    def passes(self) -> bool:
        return self.status == "compiled" and all(test.is_valid == test.is_accepted for test in self.tests)

    @property
    def accepts_invalid(self) -> bool:
        return any(test.is_accepted and not test.is_valid for test in self.tests)

    @property
    def refuses_valid(self) -> bool:
        return any(test.is_valid and not test.is_accepted for test in self.tests)


def _texts(instance: Any, schema: Any) -> list[str]:
    forms = (in_declared_order(instance, schema), instance)
    return list(dict.fromkeys(json.dumps(form, ensure_ascii=False, separators=(",", ":")) for form in forms))


def read_cases(path: Path, *, sample: int | None, seed: int) -> list[SchemaCase]:
    """All schemas of the file in its order, or a random sample of them."""
    rows = pq.read_table(path).to_pylist()
    if sample is not None and sample < len(rows):
        rows = random.Random(seed).sample(rows, sample)
    cases = []
    for row in rows:
        schema = json.loads(row["schema"])
        tests = [(test["valid"], _texts(test["data"], schema)) for test in json.loads(row["tests"])]
        cases.append(SchemaCase(row["name"], schema, tests))
    return cases


def _run_case(child: Child, case: SchemaCase, timeout_s: float) -> Result:
    child.send((case.schema, case.tests))
    result = Result(case.name, "compiled")
    for stage in ("compile", "tests"):
        result.stage = stage
        ending, reply = child.reply(timeout_s)
        if ending != "reply":
            result.status = ending
            return result
        if reply["status"] != "compiled":
            result.status, result.message = reply["status"], reply["message"]
            return result
        if stage == "compile":
            result.compile_s, result.verdict = reply["compile_s"], reply["verdict"]
        else:
            result.tests = [
                Answer(valid, accepted) for (valid, _), accepted in zip(case.tests, reply["accepted"], strict=True)
            ]
            result.mask_us = reply["mask_us"]
    return result


def _run_engine(name: str, cases: list[SchemaCase], arguments: argparse.Namespace) -> Iterator[Result]:
    memory = int(arguments.memory_gib * 2**30)
    with Child(serve, name, arguments.vocabulary, memory, arguments.mask_steps) as child:
        for index, case in enumerate(cases):
            yield _run_case(child, case, arguments.timeout)
            if sys.stderr.isatty():
                print(f"\r{name} {index + 1}/{len(cases)}", end="", file=sys.stderr)


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.maskbench", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sample", type=int, help="random schemas; all without it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", default="ours,outlines,xgrammar-strict,xgrammar,llguidance")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds to compile; again to run the instances")
    parser.add_argument("--memory-gib", type=float, default=6.0, help="growth of the compiling process")
    parser.add_argument("--vocabulary", default="bytes", help="bytes, FOLDER of a tokenizer, or FOLDER:N")
    parser.add_argument("--mask-steps", type=int, default=0, help="masks timed for each schema, in its valid instances")
    parser.add_argument("--list", action="store_true", help="name the schemas that fail, by kind")
    parser.add_argument("--out", type=Path, help="results as JSON")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Runs the engines one after another; 1 where ours accepts an invalid instance under a schema it calls enforced."""
    arguments = _arguments(argv)
    if not arguments.data.exists():
        print(f"no data at {arguments.data}; pass --data", file=sys.stderr)
        return 2
    cases = read_cases(arguments.data, sample=arguments.sample, seed=arguments.seed)
    document: dict[str, Any] = {
        **heading("maskbench", arguments, "outlines_core", "xgrammar", "llguidance", "numpy", "numba"),
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "summary": {},
        "engines": {},
    }
    print("\n".join(f"{key:8} {document[key]}" for key in ("command", "machine", "versions")))
    print(
        f"{len(cases)} schemas; instances as compact JSON, keys in declared order or as written; {arguments.vocabulary}"
    )
    unsound = False
    for name in arguments.engines.split(","):
        results: list[Result] = []
        document["engines"][name] = answers = []
        for result in _run_engine(name, cases, arguments):
            results.append(result)
            answers.append(asdict(result))
            document["summary"][name] = summary(results)
            if arguments.out and (len(results) % _WRITTEN_EVERY == 0 or len(results) == len(cases)):
                arguments.out.write_text(json.dumps(document))
        print_report(name, results, is_listing=arguments.list)
        unsound |= any(result.accepts_invalid and result.verdict == "enforced" for result in results)
    return 1 if unsound else 0


if __name__ == "__main__":
    sys.exit(main())
