"""The one place that knows where third-party data is: `RECORDMILL_BENCH_DATA`, or `shared/data` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["DATA_VARIABLE", "data_folder", "maskbench_file", "receipts_file"]

DATA_VARIABLE = "RECORDMILL_BENCH_DATA"


def data_folder() -> Path:
    """A folder that holds `receipts/` and `maskbench/`, whether or not it is there."""
    named = os.environ.get(DATA_VARIABLE)
    return Path(named) if named else Path(__file__).resolve().parents[3] / "shared" / "data"


def receipts_file() -> Path:
    """Of the ICDAR 2019 SROIE challenge: `document_id`, `text`, `gold_...`."""
    return data_folder() / "receipts" / "receipts.parquet"


def maskbench_file() -> Path:
    """JSONSchemaBench's schemas: `name`, `schema`, `tests`."""
    return data_folder() / "maskbench" / "maskbench.parquet"
