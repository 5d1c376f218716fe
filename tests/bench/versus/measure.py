"""Runs one contender as a whole process and watches it from outside: wall time, and memory of all its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tests.bench.versus.figures import Figures
from tests.bench.versus.task import Result, Task

__all__ = ["ContenderFailedError", "ContenderTimeoutError", "Measured", "measure"]

_EVERY_S = 5.0
"""Looking takes some 100 ms of the processor that the contenders work on."""
_LINE_CHARACTERS = 200


class ContenderFailedError(Exception):
    """A contender ended otherwise than with a result; the message is the end of what it printed."""


class ContenderTimeoutError(ContenderFailedError):
    """It was not done in time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A run from the start of its process to the end; `peak_bytes` counts pages that processes share once."""

    task: Task
    result: Result
    began_at: float
    wall_s: float
    peak_bytes: int

    def figures(self) -> Figures:
        """What the table is made of."""
        result, moments = self.result, self.result.moments
        return Figures(
            documents=self.task.documents,
            judgement=result.judgement,
            start_s=moments.ready - self.began_at,
            first_s=None if moments.first is None else moments.first - moments.ready,
            working_s=moments.last - moments.ready,
            wall_s=self.wall_s,
            prompt_tokens=result.prompt_tokens,
            cached_tokens=result.cached_tokens,
            output_tokens=sum(result.output_tokens),
            peak_bytes=self.peak_bytes,
            seconds=result.seconds,
            steady_share=result.steady_share,
        )


class _Memory(threading.Thread):
    """The highest sum over a process and all below it."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self._ended = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, self._now())

    def _now(self) -> int:
        total = 0
        try:
            family = [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return 0
        for process in family:
            try:
                total += process.memory_full_info().pss
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return total

    def stop(self) -> int:
        self._ended.set()
        self.join()
        return self.peak_bytes


def measure(task: Task, folder: Path, environment: dict[str, str], limit_s: float = 1800.0) -> Measured:
    """Does the task once.

    Args:
        task: what to do.
        folder: for the task's and the result's file and its log.
        environment: more variables for the process.
        limit_s: the most it may take.

    Raises:
        ContenderTimeoutError: it was not done in time.
        ContenderFailedError: it ended without a result.
    """
    folder.mkdir(parents=True)
    asked, answered, log = folder / "task.json", folder / "result.json", folder / "log.txt"
    asked.write_text(json.dumps(asdict(task)))
    began_at = time.monotonic()
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.versus.child", str(asked), str(answered)],
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        memory = _Memory(process.pid)
        memory.start()
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            raise ContenderTimeoutError(f"not done in {limit_s / 60:.0f} minutes") from error
        finally:
            peak_bytes = memory.stop()
            _end_group(process.pid)
    wall_s = time.monotonic() - began_at
    if process.returncode or not answered.exists():
        raise ContenderFailedError(_ending(process.returncode, log.read_text(errors="replace")))
    return Measured(task, Result.read(answered), began_at, wall_s, peak_bytes)


def _ending(code: int, log: str) -> str:
    """One line that says how it ended, then the end of its log."""
    last = next((line for line in reversed(log.splitlines()) if line.strip()), "")
    return f"exit code {code}: {last.strip()[:_LINE_CHARACTERS]}\n{log[-2000:]}"


def _end_group(pid: int) -> None:
    """Ends what a contender left running."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
