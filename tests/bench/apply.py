"""What a step pays for masks beyond filling them, on a CPU: vLLM's way and ours, side by side.

`python -m tests.bench.apply`

Prints, for each number of requests and of ids, medians in milliseconds: masks with few legal ids (between the fields of
a record), with all legal but a few (inside a string), and half of each kind.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from tests.bench.heading import print_heading
from tests.bench.tables import Sheet, write_sheets

_SHAPES = ((64, 49152), (256, 131072), (32, 262144))
_ROUNDS = 31


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.apply", description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    print_heading("apply", chosen, "vllm", "xgrammar", "torch", "numpy")
    sheet = Sheet("Applying masks, medians", ("masks", "requests", "ids", "vLLM ms", "ours ms", "ratio"))
    for requests, ids in _SHAPES:
        for name, masks in _masks(requests, ids).items():
            theirs, ours = (_median_ms(way, requests, ids, masks) for way in (_vllm_way, _our_way))
            sheet.add(name, requests, f"{ids:,}", f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.1f}")
    sheet.print()
    write_sheets([sheet], chosen.out)
    return 0


def _masks(requests: int, ids: int) -> dict[str, Any]:
    words = ids // 32
    few = np.zeros((requests, words), np.int32)
    few[:, :: words // 4] = 3
    most = np.full((requests, words), -1, np.int32)
    most[:, :: words // 400] = 0x0FF0FF0F
    both = few.copy()
    both[::2] = most[::2]
    return {"few": few, "most": most, "both": both}


def _median_ms(way: Callable[[Any, Any], None], requests: int, ids: int, masks: Any) -> float:
    fresh = torch.randn(requests, ids).to(torch.bfloat16)
    times = []
    for _ in range(_ROUNDS):
        logits = fresh.clone()
        started = time.perf_counter()
        way(logits, masks)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


def _vllm_way(logits: Any, masks: Any) -> None:
    from vllm.v1.structured_output.utils import apply_grammar_bitmask

    names = [f"r{number}" for number in range(len(masks))]
    guides = SimpleNamespace(structured_output_request_ids=names, grammar_bitmask=masks)
    apply_grammar_bitmask(
        SimpleNamespace(scheduled_spec_decode_tokens={}), guides, SimpleNamespace(req_ids=names), logits
    )


def _our_way(logits: Any, masks: Any) -> None:
    from pipeline.engine.cpu_worker import forbid

    forbid(logits, masks, list(range(len(masks))))


if __name__ == "__main__":
    sys.exit(main())
