"""What `import pipeline` offers is what it says, and costs nothing that is not used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pipeline


@pytest.mark.parametrize("first", ["run_job", "read_records", "compile_guide"])
def test_each_name_is_there_in_a_fresh_process_and_none_is_a_package(first: str) -> None:
    """Fails when a function has the name of a package below: the first import of that one would hide it."""
    names = [first, *pipeline.__all__]
    code = "\n".join(
        (
            "import types, pipeline",
            f"for name in {names!r} * 2:",
            "    found = getattr(pipeline, name)",
            "    assert not isinstance(found, types.ModuleType), name",
            "    assert callable(found), name",
        )
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_it_loads_no_engine() -> None:
    code = "import sys, pipeline; assert not {'ray', 'vllm', 'torch', 'numba'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
