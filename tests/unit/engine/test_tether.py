"""The tether: nothing that was tied outlives its owner, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.engine import tether as tether_module
from pipeline.engine.tether import Tether

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
OWNER = f"""
import subprocess, sys, time
from pipeline.engine.tether import Tether
tether = Tether()
family = subprocess.Popen([sys.executable, "-c", {FAMILY!r}], stdout=subprocess.PIPE)
grandchild = int(family.stdout.readline())
tether.tie(family.pid)
print(family.pid, grandchild, tether._process.pid, tether.folder, flush=True)
time.sleep(600)
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def wait_until_gone(*pids: int) -> bool:
    for _ in range(200):
        if not any(is_running(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("freeze", [False, True])
def test_children_and_grandchildren_end_with_a_killed_owner(freeze: bool) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert owner.stdout is not None
    *pids, folder = owner.stdout.readline().decode().split()
    child, grandchild, tether = map(int, pids)
    (Path(folder) / "socket").touch()
    if freeze:
        os.kill(child, signal.SIGSTOP)
    owner.kill()
    owner.wait()
    assert wait_until_gone(child, grandchild, tether)
    assert not Path(folder).exists()


def test_what_an_owner_tied_before_it_died_ends_though_the_tether_starts_later(tmp_path: Path) -> None:
    """The pipe stays open, as it does where a forked child of the owner holds it."""
    tied, former = subprocess.Popen(SLEEPER), subprocess.Popen([sys.executable, "-c", ""])
    former.wait()
    reading, writing = os.pipe()
    os.write(writing, f"{tied.pid}\n".encode())
    folder = tmp_path / "sockets"
    folder.mkdir()
    command = [sys.executable, "-I", "-S", str(tether_module.__file__), str(former.pid), str(folder)]
    try:
        late = subprocess.Popen(command, stdin=reading)
        assert late.wait(60) == 0
        assert tied.wait(60) == -signal.SIGKILL
    finally:
        tied.kill()
        os.close(reading)
        os.close(writing)
    assert not folder.exists()


def test_closing_ends_what_was_tied_and_nothing_else() -> None:
    tied, free = subprocess.Popen(SLEEPER), subprocess.Popen(SLEEPER)
    tether = Tether()
    tether.tie(tied.pid)
    tether.close()
    assert tied.wait(5) == -signal.SIGKILL
    assert not tether.folder.exists()
    assert free.poll() is None
    free.kill()
    free.wait()


def test_a_child_that_ended_by_itself_is_no_trouble() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    tether = Tether()
    tether.tie(child.pid)
    child.wait()
    tether.close()
    tether.close()
