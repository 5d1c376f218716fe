"""What a submission writes down of its engines' wall time: made by `run`, read by the report."""

from __future__ import annotations

from dataclasses import dataclass, fields

from pipeline.report.values import Count, Seconds

__all__ = ["ENTRY", "EngineUse"]

ENTRY = "engine_use"
"""Its name among a submission's entries."""


@dataclass(frozen=True, slots=True)
class EngineUse:
    """Wall time of one engine up to the commit of a shard, since the commit before; or the sum of several."""

    wall_s: Seconds = 0.0
    """From the engine's first request on, the commit included."""
    request_wall_s: Seconds = 0.0
    """The same, up to the end of the engine's last request: without the start and the last commit."""
    busy_s: Seconds = 0.0
    """With at least one request in the engine."""
    mask_s: Seconds = 0.0
    """Filling masks, for all requests; 0 where the engine does not say."""
    encode_s: Seconds = 0.0
    """Making the part's bytes and reading them back, table and checks included."""
    put_s: Seconds = 0.0
    """In the store's conditional put, its retries included."""
    documents: Count = 0
    """Whose outcomes that commit holds; 0 where another attempt's part stands."""

    def plus(self, other: EngineUse) -> EngineUse:
        return EngineUse(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))
