"""The files under test, read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

__all__ = ["ROOT", "locked", "read_json", "read_yaml"]

ROOT = Path(__file__).resolve().parents[3]


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def read_json(path: str) -> Any:
    return json.loads((ROOT / path).read_text())


def locked(name: str) -> dict[str, str]:
    """Versions by normalised name of a lock file in `infra/`."""
    lines = (ROOT / "infra" / name).read_text().splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {distribution.lower().replace("_", "-"): version for distribution, version in pins}
