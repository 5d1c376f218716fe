"""A driver in a process of its own, so that it can be killed: `start_driver` here, and the program it starts.

The spec comes on standard input, as JSON; the error of the run goes to standard error, and its exit code is the run's.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from pipeline.core.spec import JobSpec, parse_spec
from pipeline.run.job import run

__all__ = ["start_driver"]

ROOT = Path(__file__).resolve().parents[2]
START_ENGINE = "pipeline.run.engines:start_engine"
HANGS_AFTER_S = 100


def start_driver(
    spec: JobSpec, *, address: str | None = None, factory: str = START_ENGINE, errors: int | IO[str] = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Starts a submission.

    Args:
        spec: the job.
        address: of a Ray cluster; None for one of its own.
        factory: `package.module:function` that starts the engine in each worker.
        errors: where its log goes.
    """
    where = [] if address is None else ["--address", address]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.driver", "--factory", factory, *where],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    assert process.stdin is not None
    json.dump(spec.effective(), process.stdin)
    process.stdin.close()
    process.stdin = None
    return process


def _main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address")
    parser.add_argument("--factory", default=START_ENGINE)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(HANGS_AFTER_S)
    logging.basicConfig(level=logging.INFO)
    module, _, name = options.factory.partition(":")
    factory = getattr(importlib.import_module(module), name)
    spec = parse_spec(json.load(sys.stdin), source="test")
    result = run(spec, base=ROOT, address=options.address, engine_factory=factory)
    print(result.error, file=sys.stderr)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(_main())
