"""The process that compiles one model for one engine and times its masks, one thread."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tests.bench.child import limit_memory
from tests.bench.engines import make_engine
from tests.bench.interface import BenchEngine, Compiled
from tests.bench.records import MODELS, records_of
from tests.bench.vllm_calls import bitmask, vllm_grammar
from tests.bench.vocabularies import BenchVocabulary, read_vocabulary

__all__ = ["serve"]

_BATCH = 256
_BATCH_STEPS = 8
_RECORDS = 12
_SLOW_COMPILE_S = 3.0
_PAGE_BYTES = resource.getpagesize()
SPARE_TOKENS = 2
"""Budget of `ours-budget` beyond the longest record: few enough that the last masks are tight ones."""


def serve(connection: Connection, engine_name: str, vocabulary_name: str, memory_bytes: int) -> None:
    """Answers each model's name with its compile time, then with its other times."""
    vocabulary = read_vocabulary(vocabulary_name)
    engine = make_engine(engine_name.removesuffix("-budget"), vocabulary)
    engine.compile({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    limit_memory(memory_bytes)
    connection.send(engine.version)
    while True:
        name = connection.recv()
        try:
            compiled, times = _compile(engine, name)
            connection.send(times)
            connection.send(_measure(engine_name, compiled, name, vocabulary))
        except Exception as error:  # noqa: BLE001 - a worker's outermost frame; whatever a peer raises is its answer
            connection.send({"error": f"{type(error).__name__}: {error}"[:300]})


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


def _compile(engine: BenchEngine, name: str) -> tuple[Compiled, dict[str, Any]]:
    before, seconds = _resident_bytes(), []
    for _ in range(3):
        start = perf_counter()
        compiled = engine.compile(MODELS[name])
        seconds.append(perf_counter() - start)
        if len(seconds) == 1:
            grown = _resident_bytes() - before
        if seconds[0] > _SLOW_COMPILE_S:
            break
    size = compiled.size_bytes
    return compiled, {
        "compile_ms": statistics.median(seconds) * 1e3,
        "size_mb": (grown if size is None else size) / 1e6,
        "size_is_growth": size is None,
    }


def _measure(engine_name: str, compiled: Compiled, name: str, vocabulary: BenchVocabulary) -> dict[str, Any]:
    records = [vocabulary.encode(text) for text in records_of(name, _RECORDS)]
    budget = max(map(len, records)) + SPARE_TOKENS if engine_name.endswith("-budget") else None
    cold = _replays(compiled, records, budget)
    warm = _replays(compiled, records, budget)

    def grammar() -> Any:
        return vllm_grammar(engine_name, compiled, vocabulary, budget)

    return {
        "steps": len(warm["mask"]),
        "rejected": warm["rejected"],
        "cold_both_us_max": float(np.max(np.add(cold["mask"], cold["advance"]))),
        "mask_us": _quantiles(warm["mask"]),
        "advance_us": _quantiles(warm["advance"]),
        "both_us": _quantiles(list(np.add(warm["mask"], warm["advance"]))),
        "vllm_both_us": _quantiles(_vllm_steps(grammar, records, vocabulary.size)),
        "vllm_batch_ms": _vllm_batch(grammar, records, vocabulary.size),
    }


def _quantiles(values: list[float]) -> tuple[float, float]:
    """p50 and p99."""
    middle, high = np.percentile(values, (50, 99))
    return float(middle), float(high)


def _replays(compiled: Compiled, records: list[list[int]], budget: int | None) -> dict[str, Any]:
    """Microseconds of each mask and each advance over all records, and how many records the engine does not accept."""
    mask: list[float] = []
    advance: list[float] = []
    rejected = 0
    for token_ids in records:
        matcher = compiled.matcher(budget)
        for token_id in token_ids:
            start = perf_counter()
            matcher.write_mask()
            middle = perf_counter()
            took = matcher.advance(token_id)
            end = perf_counter()
            mask.append((middle - start) * 1e6)
            advance.append((end - middle) * 1e6)
            if not took:
                break
        rejected += not (took and matcher.is_accepting())
    return {"mask": mask, "advance": advance, "rejected": rejected}


def _vllm_steps(grammar: Callable[[], Any], records: list[list[int]], vocab_size: int) -> list[float]:
    """Microseconds of `fill_bitmask` and `accept_tokens` together, a step."""
    mask, times = bitmask(1, vocab_size), []
    for token_ids in records:
        one = grammar()
        for token_id in token_ids:
            start = perf_counter()
            one.fill_bitmask(mask, 0)
            one.accept_tokens("bench", [token_id])
            times.append((perf_counter() - start) * 1e6)
    return times


def _vllm_batch(grammar: Callable[[], Any], records: list[list[int]], vocab_size: int) -> float:
    """Median milliseconds of one step of 256 sequences, each somewhere else in its record."""
    mask, batch = bitmask(_BATCH, vocab_size), []
    for index in range(_BATCH):
        token_ids = records[index % len(records)]
        place = index * 7 % max(1, len(token_ids) - _BATCH_STEPS)
        one = grammar()
        one.accept_tokens("bench", token_ids[:place])
        batch.append((one, token_ids[place : place + _BATCH_STEPS]))
    times = []
    for step in range(min(len(following) for _, following in batch)):
        start = perf_counter()
        for row, (one, _) in enumerate(batch):
            one.fill_bitmask(mask, row)
        for one, following in batch:
            one.accept_tokens("bench", [following[step]])
        times.append((perf_counter() - start) * 1e3)
    return statistics.median(times)
