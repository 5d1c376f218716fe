"""The tutorial, carried out word for word in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs_blocks import DOCS, Command, blocks, commands

pytestmark = [pytest.mark.ray, pytest.mark.slow]

DEADLINE_S = 180


class Reader:
    """Does what the page says: saves files, types commands, runs the Python."""

    def __init__(self, home: Path) -> None:
        self._folder = home
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "200",
        }
        for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "PYTHONPATH"):
            self._environment.pop(name, None)

    def save(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    def type(self, command: Command) -> None:
        if command.line.startswith("cd "):
            self._folder /= command.line.removeprefix("cd ")
            return
        done = self._run(["bash", "-c", command.line])
        said = done.stdout + done.stderr
        assert done.returncode == command.exit_code, f"{command.line}\n{said}"
        assert not command.not_shown_by(said), f"{command.line}\n{said}"

    def python(self, text: str) -> None:
        done = self._run([sys.executable, "-c", text])
        assert done.returncode == 0, done.stderr

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=DEADLINE_S
        )


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    done = 0
    for block in blocks(DOCS / "tutorial.md"):
        if block.saved_as is not None:
            reader.save(block.saved_as, block.text)
        elif block.language == "python":
            reader.python(block.text)
        elif block.language == "console":
            for command in commands(block):
                reader.type(command)
                done += 1
    assert done >= 10
