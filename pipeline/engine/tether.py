"""A small process that outlives its parent just long enough to end what the parent left behind.

vLLM's engine core notices nothing when the process that started it is killed, and goes on holding the GPU.  So that
process ties each child to a tether: this file, run by itself, with nothing but the standard library.  It reads ids of
processes from its standard input, and when that ends (the parent closed it, or is gone) it kills those processes and
all their descendants, frozen ones included, and removes the folder that their sockets were in.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["Tether"]

_PIPE_BYTES = 1 << 16
_TICK_S = 1.0
_END_S = 5.0


class Tether:
    """Started before the children it is to end.  `close()` ends them; so does the death of this process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="recordmill-engine-"))
        """For files that need not outlive the tied processes."""
        command = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), str(self.folder)]
        # Its own session: what kills this process's group must not kill the tether with it.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._tied: set[int] = set()

    def tie(self, pid: int) -> None:
        """Ties a child of this process, and all its descendants, to this process's life."""
        if pid in self._tied or self._process.stdin is None or self._process.stdin.closed:
            return
        self._tied.add(pid)
        self._process.stdin.write(f"{pid}\n".encode())
        self._process.stdin.flush()

    def close(self) -> None:
        """Ends every tied process, at once, and waits until they are gone."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=2 * _END_S)


def _started_at(pid: int) -> str | None:
    """When the process started, in clock ticks since boot: with its id, what tells it from a later one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.extend(int(child) for child in (task / "children").read_text().split())
    return found


def _remember(pid: int, started: str | None, seen: set[tuple[int, str]]) -> None:
    """Adds a process and its descendants, if the id still belongs to the process that had it when it was tied."""
    if started is None or _started_at(pid) != started:
        return
    seen.add((pid, started))
    for child in _children(pid):
        _remember(child, _started_at(child), seen)


def _end(seen: set[tuple[int, str]]) -> None:
    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        for pid, started in list(seen):
            _remember(pid, started, seen)
        alive = [pid for pid, started in seen if _started_at(pid) == started and not _is_zombie(pid)]
        if not alive:
            return
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def _watch(parent: int, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    seen: set[tuple[int, str]] = set()
    pending = b""
    is_orphan = False
    while not is_orphan:
        # Looked at before the pipe: what a parent tied before it died is read even if this process started later.
        # The pipe's end is not waited for then, since a forked child may hold it open.
        is_orphan = os.getppid() != parent
        if select.select([0], [], [], 0.0 if is_orphan else _TICK_S)[0]:
            read = os.read(0, _PIPE_BYTES)
            if not read:
                break
            *lines, pending = (pending + read).split(b"\n")
            for line in lines:
                _remember(int(line), _started_at(int(line)), seen)
        for pid, started in list(seen):
            _remember(pid, started, seen)
    _end(seen)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _watch(int(sys.argv[1]), sys.argv[2])
