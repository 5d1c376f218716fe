"""Times of masks and of compiling, side by side, one thread.

`python -m tests.bench.masks --vocabularies .cache/models/gemma3-270m,.cache/models/gemma3-270m:131072`

Each engine compiles each model in a process of its own and replays the same records, tokenised by the same tokenizer:
before each token the mask is filled, then the token is taken.  The ratio is to `ours`, of the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.child import Child
from tests.bench.heading import heading
from tests.bench.masks_child import serve
from tests.bench.records import MODELS, RECEIPTS

__all__ = ["main"]

ENGINES = "ours,ours-budget,outlines,xgrammar-strict,xgrammar,llguidance"
_GEMMA = ".cache/models/gemma3-270m"
_HEAD = (
    f"{'engine':16} {'compile ms':>11} {'MB':>8} {'mask us':>14} {'advance us':>14} {'both us':>14} {'ratio':>7} "
    f"{'cold max':>9} {'vLLM both us':>16} {'ratio':>7} {'256 ms':>8} {'rejected':>8}"
)


def _measure(engine: str, vocabulary: str, models: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Results by model; the engine starts anew after a timeout."""
    results: dict[str, Any] = {}
    with Child(serve, engine, vocabulary, int(arguments.memory_gib * 2**30)) as child:
        for model in models:
            child.send(model)
            found: dict[str, Any] = {}
            for _ in range(2):
                ending, reply = child.reply(arguments.timeout)
                if ending != "reply":
                    found["error"] = ending
                    break
                found.update(reply)
                if "error" in reply:
                    break
            results[model] = found
    return results


def _pair(values: tuple[float, float]) -> str:
    return f"{values[0]:.3g}/{values[1]:.3g}"


def _row(engine: str, found: dict[str, Any], ours: dict[str, Any]) -> str:
    compiled = f"{found['compile_ms']:11.1f}" if "compile_ms" in found else f"{'-':>11}"
    if "error" in found:
        return f"{engine:16} {compiled} {found['error'][:120]}"
    size = f"{'~' if found['size_is_growth'] else ''}{found['size_mb']:.1f}"

    def ratio(key: str) -> str:
        return f"{found[key][0] / ours[key][0]:.1f}" if key in ours else "-"

    return (
        f"{engine:16} {compiled} {size:>8} {_pair(found['mask_us']):>14} {_pair(found['advance_us']):>14} "
        f"{_pair(found['both_us']):>14} {ratio('both_us'):>7} {found['cold_both_us_max']:9.0f} "
        f"{_pair(found['vllm_both_us']):>16} {ratio('vllm_both_us'):>7} {found['vllm_batch_ms']:8.2f} "
        f"{found['rejected']:8}"
    )


def _print(vocabulary: str, models: list[str], by_engine: dict[str, dict[str, Any]]) -> None:
    print(f"\nvocabulary {vocabulary}; p50/p99; ~ is growth of the process, where the engine gives no size")
    for model in models:
        print(f"\n{model}\n{_HEAD}")
        ours = by_engine.get("ours", {}).get(model, {})
        for engine, results in by_engine.items():
            print(_row(engine, results[model], ours))


def main(argv: list[str] | None = None) -> int:
    """Prints a table for each vocabulary; JSON with `--out`."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.masks", description=__doc__)
    parser.add_argument("--vocabularies", default=f"{_GEMMA},{_GEMMA}:131072", help="FOLDER or FOLDER:N, with commas")
    parser.add_argument("--engines", default=ENGINES)
    parser.add_argument("--models", default=",".join(name.replace(",", ";") for name in MODELS))
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds to compile; again to measure")
    parser.add_argument("--memory-gib", type=float, default=12.0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    models = [name.replace(";", ",") for name in arguments.models.split(",")]
    document: dict[str, Any] = {
        **heading("masks", arguments, "outlines_core", "xgrammar", "llguidance", "vllm", "numpy", "numba"),
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "records": "of real receipts" if RECEIPTS.exists() else "built in",
        "vocabularies": {},
    }
    print("\n".join(f"{key}: {document[key]}" for key in ("command", "machine", "versions", "started_at", "records")))
    for vocabulary in arguments.vocabularies.split(","):
        by_engine = {}
        for engine in arguments.engines.split(","):
            by_engine[engine] = _measure(engine, vocabulary, models, arguments)
        document["vocabularies"][vocabulary] = by_engine
        if arguments.out:
            arguments.out.write_text(json.dumps(document, indent=1))
        _print(vocabulary, models, by_engine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
