"""Each package's map names every module in it, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "pipeline"


@pytest.mark.parametrize("folder", ["core", "decoding", "engine", "report", "run", "spans", "storage"])
def test_the_map_of_a_package_names_its_modules(folder: str) -> None:
    """Fails when a module is added, renamed or taken away without a word in the map."""
    named = set(re.findall(r"`(\w+)\.py`", (PACKAGE / folder / "README.md").read_text(encoding="utf-8")))
    there = {path.stem for path in (PACKAGE / folder).glob("*.py")} - {"__init__"}
    assert named == there
