"""Where engines are put on a cluster of several machines.  The GPUs are numbers; placement, actors and S3 are real."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster
from ray.util import placement_group_table

from demo.s3 import S3Server
from pipeline.core.errors import ClusterError
from pipeline.run.job import RunResult, run
from pipeline.run.progress import Snapshot
from tests.faults.engines import gathered
from tests.integration.scripted import ROOT, assert_each_once, documents, job, put_parquet, store_of
from tests.machines import machines

pytestmark = [pytest.mark.ray, pytest.mark.s3, pytest.mark.slow]

COUNT = 120


@pytest.fixture(scope="module")
def address(cluster: Cluster, s3_server: S3Server) -> Iterator[str]:
    """Two machines with two GPUs each, beside a head without one."""
    with machines(cluster, s3_server, 2, num_cpus=2, num_gpus=2):
        yield cluster.address


class Watch:
    """A progress that looks at the placement groups of the cluster while the run goes on."""

    def __init__(self) -> None:
        self.placed: dict[str, tuple[str, ...]] = {}
        """The machine of each rank, by placement group."""
        self.engines = 0

    def __call__(self, snapshot: Snapshot) -> None:
        if snapshot.phase != "extract":
            return
        self.engines = max(self.engines, snapshot.engines_ready)
        table: dict[str, dict[str, Any]] = placement_group_table()
        for name, group in table.items():
            if group["state"] == "CREATED":
                self.placed[name] = tuple(group["bundles_to_node_id"].values())


def _run(
    address: str,
    bucket: str,
    server: S3Server,
    folder: Path,
    *,
    gpus: float,
    ranks: int,
    expected: int,
    engines: int | str = "auto",
    wait_s: float = 120,
) -> tuple[RunResult, Watch]:
    """A run whose work begins when as many engines as are expected have some; `folder` is where they say so."""
    put_parquet(store_of(bucket, server.endpoint_url), f"{bucket}in/a.parquet", documents(COUNT))
    spec = job(
        bucket,
        server.endpoint_url,
        model={"engine": {"tensor_parallel_size": ranks, "token_s": 0.004}},
        cluster={"gpus_per_engine": gpus, "engines": engines, "wait_s": wait_s},
    )
    watch = Watch()
    factory = partial(gathered, folder, expected)
    result = run(spec, base=ROOT, address=address, progress=watch, engine_factory=factory)
    if result.exit_code == 0:
        assert_each_once(spec, [row["document_id"] for row in documents(COUNT)])
    return result, watch


def test_each_engine_of_two_ranks_has_a_machine_of_two_gpus_to_itself(
    address: str, s3_bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    result, watch = _run(address, s3_bucket, s3_server, tmp_path, gpus=1, ranks=2, expected=2)
    assert result.error is None
    assert watch.engines == 2
    assert len(watch.placed) == 2
    machines = [set(nodes) for nodes in watch.placed.values()]
    assert [len(of) for of in machines] == [1, 1]
    assert machines[0] != machines[1]


def test_an_engine_larger_than_any_machine_spans_two(
    address: str, s3_bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    result, watch = _run(address, s3_bucket, s3_server, tmp_path, gpus=1, ranks=4, expected=1)
    assert result.error is None
    assert watch.engines == 1
    (nodes,) = watch.placed.values()
    assert len(nodes) == 4
    assert len(set(nodes)) == 2


def test_an_engine_whose_gpus_are_all_asked_for_on_one_machine_needs_no_placement_group(
    address: str, s3_bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    result, watch = _run(address, s3_bucket, s3_server, tmp_path, gpus=2, ranks=2, expected=2)
    assert result.error is None
    assert watch.engines == 2
    assert not watch.placed


def test_an_engine_larger_than_the_cluster_ends_the_run_and_says_what_is_missing(
    address: str, s3_bucket: str, s3_server: S3Server, tmp_path: Path
) -> None:
    result, _ = _run(address, s3_bucket, s3_server, tmp_path, gpus=1, ranks=6, expected=1, engines=1, wait_s=5)
    assert result.exit_code == 3
    assert isinstance(result.error, ClusterError)
    assert "6 times 1 GPU" in str(result.error)
    assert "together have fewer GPUs" in str(result.error)
