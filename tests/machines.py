"""The one Ray cluster that whole runs share: a head without a GPU, to which tests add machines, and how they do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from demo.s3 import S3Server

__all__ = ["head_alone", "machines"]

_OBJECT_STORE_BYTES = 80 * 1024 * 1024
_SOON = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 2,
}
"""A machine that falls silent is given up within 15 seconds, as it is within a minute by default; one that is slow to
answer is not."""


@contextmanager
def head_alone(server: S3Server) -> Iterator[Cluster]:
    """A cluster whose machines may read and write the server."""
    cluster = Cluster()
    try:
        _add(cluster, server, num_cpus=3, include_dashboard=False, _system_config=_SOON)
        yield cluster
    finally:
        cluster.shutdown()


@contextmanager
def machines(cluster: Cluster, server: S3Server, count: int, **options: Any) -> Iterator[list[Any]]:
    """Machines that are there for a while; options are those of `ray start`, as `num_gpus`, which is but a number."""
    nodes: list[Any] = []
    try:
        while len(nodes) < count:
            nodes.append(_add(cluster, server, **options))
        yield nodes
    finally:
        for node in nodes:
            if node in cluster.worker_nodes:
                cluster.remove_node(node, allow_graceful=False)


def _add(cluster: Cluster, server: S3Server, **options: Any) -> Any:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in server.environment().items():
            environment.setenv(name, value)
        return cluster.add_node(object_store_memory=_OBJECT_STORE_BYTES, **options)
