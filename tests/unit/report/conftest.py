"""Fixtures of the report's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.storage.layout import RunLayout
from tests.unit.report.runs import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(RunLayout(str(tmp_path / "run[1]")))
