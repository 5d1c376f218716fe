"""Job specs and the environment that benchmarks of whole jobs share: one engine on this machine, no GPU."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.core.spec import JobSpec, parse_spec

__all__ = ["CHECKOUT", "bench_spec", "set_bench_environment"]

CHECKOUT = Path(__file__).resolve().parents[2]


def set_bench_environment(cache_gib: int = 1) -> None:
    """Call before vLLM or Ray is imported; what the caller's environment says of the cache stands."""
    logging.basicConfig(level=logging.ERROR)
    os.environ.update(HF_HUB_OFFLINE="1", RAY_USAGE_STATS_ENABLED="0", TOKENIZERS_PARALLELISM="false")
    os.environ.update(VLLM_NO_USAGE_STATS="1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(cache_gib))


def bench_spec(
    name: str,
    *,
    record: str,
    prompt: Mapping[str, Any],
    model: Path | str,
    decoding: Mapping[str, Any],
    truncation: Mapping[str, Any],
    at_once: int,
    engine: Mapping[str, Any] | None = None,
    **sections: Any,
) -> JobSpec:
    """A job spec with one engine.

    Args:
        at_once: documents in flight.
        engine: more of vLLM's arguments.
        sections: whole sections in place of the usual ones, such as `input` and `output`, which name nothing that is
            there.
    """
    arguments = {"enforce_eager": True, "max_model_len": 4096, "max_num_seqs": at_once}
    content = {
        "name": name,
        "input": {"uri": "/none/in/"},
        "record": record,
        "prompt": dict(prompt),
        "model": {"name": str(model), "engine": arguments | dict(engine or {})},
        "decoding": dict(decoding),
        "truncation": dict(truncation),
        "output": {"uri": "/none/out/"},
        "cluster": {"engines": 1, "gpus_per_engine": 0, "concurrency": at_once},
    }
    return parse_spec(content | sections, source=name)
