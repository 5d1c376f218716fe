"""One child process at a time, with a time limit a reply and a memory limit, replaced when it breaks either."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

__all__ = ["Child", "Ending", "limit_memory"]

Ending = Literal["timeout", "crash"]
_START_S = 300.0
_PAGE_BYTES = resource.getpagesize()


def limit_memory(growth_bytes: int) -> None:
    """From here on, this process may grow by so many bytes of address space; beyond, allocation fails."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (mapped + growth_bytes, mapped + growth_bytes))


class Child:
    """Runs `target(connection, *arguments)` in a spawned process; the target first sends anything once it is ready."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._target, self._arguments = target, arguments
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _started(self) -> Connection:
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            self._process = context.Process(target=self._target, args=(theirs, *self._arguments), daemon=True)
            self._process.start()
            theirs.close()
            self._connection = ours
            if not ours.poll(_START_S):
                self.stop()
                raise TimeoutError(f"the child was not ready in {_START_S:.0f} s")
            ours.recv()
        return self._connection

    def send(self, task: Any) -> None:
        """Hands over one task, starting the process where there is none.

        Raises:
            EOFError: the child ended before it was ready.
        """
        self._started().send(task)

    def reply(self, timeout_s: float) -> tuple[Literal["reply"], Any] | tuple[Ending, None]:
        """The next message, or how the child ended: it is then killed, and the next `send` starts another."""
        connection = self._started()
        if not connection.poll(timeout_s):
            self.stop()
            return "timeout", None
        try:
            return "reply", connection.recv()
        except (EOFError, ConnectionResetError):
            self.stop()
            return "crash", None

    def stop(self) -> None:
        """Kills the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
