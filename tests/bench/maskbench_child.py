"""The process that compiles one schema after another and runs its instances."""

from __future__ import annotations

from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

from tests.bench.child import limit_memory
from tests.bench.engines import make_engine
from tests.bench.interface import Compiled, CompileRefusedError
from tests.bench.vocabularies import BenchVocabulary, read_vocabulary

__all__ = ["serve"]


def serve(connection: Connection, engine_name: str, vocabulary_name: str, memory_bytes: int, mask_steps: int) -> None:
    """Answers each `(schema, tests)` with one message once it is compiled and one with the answers."""
    vocabulary = read_vocabulary(vocabulary_name)
    engine = make_engine(engine_name, vocabulary)
    engine.compile({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    limit_memory(memory_bytes)
    connection.send("ready")
    while True:
        schema, tests = connection.recv()
        compiled: Compiled | None = None
        start = perf_counter()
        try:
            compiled = engine.compile(schema)
            connection.send(
                {"status": "compiled", "compile_s": perf_counter() - start, "verdict": compiled.verdict, "message": ""}
            )
            connection.send(_answers(compiled, tests, vocabulary, mask_steps))
        except CompileRefusedError as error:
            connection.send({"status": "refused", "message": str(error)[:500]})
        except MemoryError:
            connection.send({"status": "memory", "message": ""})
        except Exception as error:  # noqa: BLE001 - a worker's outermost frame; whatever a peer raises is its answer
            connection.send({"status": "error", "message": f"{type(error).__name__}: {error}"[:500]})


def _answers(
    compiled: Compiled, tests: list[tuple[bool, list[str]]], vocabulary: BenchVocabulary, mask_steps: int
) -> dict[str, Any]:
    accepted = [any(_accepts(compiled, vocabulary.encode(text)) for text in texts) for _, texts in tests]
    mask_us: list[float] = []
    for (is_valid, texts), was_accepted in zip(tests, accepted, strict=True):
        if is_valid and was_accepted and len(mask_us) < mask_steps:
            mask_us += _mask_times(compiled, vocabulary.encode(texts[0]), mask_steps - len(mask_us))
    return {"status": "compiled", "accepted": accepted, "mask_us": mask_us}


def _accepts(compiled: Compiled, token_ids: list[int]) -> bool:
    matcher = compiled.matcher()
    return all(matcher.advance(token_id) for token_id in token_ids) and matcher.is_accepting()


def _mask_times(compiled: Compiled, token_ids: list[int], steps: int) -> list[float]:
    """Microseconds to fill the mask before each id."""
    matcher = compiled.matcher()
    times: list[float] = []
    for token_id in token_ids[:steps]:
        start = perf_counter()
        matcher.write_mask()
        times.append((perf_counter() - start) * 1e6)
        if not matcher.advance(token_id):
            break
    return times
