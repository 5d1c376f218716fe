"""One Ray cluster for the whole runs of this folder: a head without a GPU, to which tests add machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ray.cluster_utils import Cluster

from demo.s3 import S3Server

OBJECT_STORE_BYTES = 80 * 1024 * 1024
SOON = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 2,
}
"""A machine that falls silent is given up within 15 seconds, as it is within a minute by default; one that is slow to
answer is not."""


@pytest.fixture(scope="package")
def cluster(s3_server: S3Server) -> Iterator[Cluster]:
    """Its machines may read and write the S3 server; no other test's cluster runs at the same time."""
    cluster = Cluster()
    try:
        with pytest.MonkeyPatch.context() as environment:
            for name, value in s3_server.environment().items():
                environment.setenv(name, value)
            cluster.add_node(num_cpus=3, object_store_memory=OBJECT_STORE_BYTES, _system_config=SOON)
        yield cluster
    finally:
        cluster.shutdown()
