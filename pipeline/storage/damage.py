"""What Arrow raises for bytes that are not what they should be, as an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from pipeline.core.errors import RecordmillError

__all__ = ["damage_means"]


@contextmanager
def damage_means(refusal: RecordmillError) -> Iterator[None]:
    """Raises `refusal` for damaged bytes; want of memory, and errors of a store (see `Store`), pass as they are."""
    try:
        yield
    except MemoryError:  # Arrow's own is an ArrowException too.
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise refusal from error
