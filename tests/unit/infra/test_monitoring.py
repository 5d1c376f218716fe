"""The dashboard draws what a run exports, all of it and nothing else."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ray._private.ray_constants import PROMETHEUS_SERVICE_DISCOVERY_FILE

from pipeline.core.outcome import Status
from pipeline.run.metrics import METRICS
from tests.unit.infra.files import read_json, read_yaml

RAY_LABELS = {"NodeAddress", "WorkerId", "le"}


@pytest.fixture
def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = read_json("infra/grafana/recordmill.json")
    return read


def _expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def test_every_metric_is_drawn_and_every_one_drawn_is_exported(dashboard: dict[str, Any]) -> None:
    drawn = {name.removesuffix("_bucket") for text in _expressions(dashboard) for name in re.findall(r"ray_\w+", text)}
    assert drawn == {metric.exported for metric in METRICS}


def test_expressions_use_labels_that_their_metric_has(dashboard: dict[str, Any]) -> None:
    tags = {metric.exported: {"run", *metric.tags} for metric in METRICS}
    for text in _expressions(dashboard):
        known = RAY_LABELS.union(*(tags[name.removesuffix("_bucket")] for name in re.findall(r"ray_\w+", text)))
        grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", text) for label in group.split(",")}
        matched = set(re.findall(r"[{,](\w+)[=!]", text))
        assert "run" in matched, text
        assert grouped | matched <= known, text


def test_a_value_that_an_expression_names_exists(dashboard: dict[str, Any]) -> None:
    text = " ".join(_expressions(dashboard))
    assert set(re.findall(r'kind="(\w+)"', text)) <= {"prompt", "cached", "output"}
    assert set(re.findall(r'status="(\w+)"', text)) <= {status.value for status in Status}


def test_panels_have_ids_of_their_own_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    cells: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        taken = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not taken & cells, panel["title"]
        cells |= taken
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_prometheus_looks_where_ray_writes_the_list_of_machines() -> None:
    (scrape,) = read_yaml("infra/prometheus.yml")["scrape_configs"]
    (discovery,) = scrape["file_sd_configs"]
    assert [path.rpartition("/")[2] for path in discovery["files"]] == [PROMETHEUS_SERVICE_DISCOVERY_FILE]
