"""Ray Data LLM's own engine stage, which also says when the engine was ready and when each row was done.

Imports vLLM: only Ray Data's processes and whoever builds the processor may import this module.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ray.llm._internal.batch.stages.vllm_engine_stage import vLLMEngineStageUDF

__all__ = ["TimedStage"]


class TimedStage(vLLMEngineStageUDF):  # type: ignore[misc]
    """Adds `ready_at` and `done_at` to every row; see `Moments`.

    The first row is asked for one token before all others, so that `ready_at` holds what others do before they start:
    compiling the schema.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ready_at: float | None = None
        self._first = asyncio.Lock()

    async def _generate_with_error_handling(self, row: dict[str, Any], batch_uuid: Any) -> dict[str, Any]:
        async with self._first:
            if self._ready_at is None:
                await self.llm.generate_async({**row, "sampling_params": {**row["sampling_params"], "max_tokens": 1}})
                self._ready_at = time.monotonic()
        found: dict[str, Any] = await super()._generate_with_error_handling(row, batch_uuid)
        return {**found, "ready_at": self._ready_at, "done_at": time.monotonic()}
