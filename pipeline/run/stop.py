"""Owns what SIGTERM and SIGINT do to a run: they end a Ray that starts, and set the flag of a driver that works."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from pipeline.core.errors import InterruptedRunError
from pipeline.run.submission import SubmissionLog

__all__ = ["StopFlag", "stoppable_ray"]


class StopFlag:
    """Set from a signal handler."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def set(self, reason: str) -> None:
        """Says why to stop; the first reason stays."""
        self.reason = self.reason or reason


@contextlib.contextmanager
def stoppable_ray(name: str, address: str | None, log: SubmissionLog) -> Iterator[tuple[bool, StopFlag]]:
    """A connection to Ray, whether it is this machine's own, and the flag that SIGTERM and SIGINT set.

    Args:
        name: the run's, for the message.
        address: see `cluster.ray_connection`.
        log: told of an end while Ray starts, before which there may be no time for more.

    Raises:
        ClusterError: see `cluster.ray_connection`.
        InterruptedRunError: one of them came while Ray started, which they end at once.
    """
    stop = StopFlag()
    with contextlib.ExitStack() as stack:
        try:
            # Also where Ray loses the exception, as it may, the flag is set.
            with _signals(stop, is_raising=True):
                from pipeline.run.cluster import ray_connection

                is_local = stack.enter_context(ray_connection(address))
        except (KeyboardInterrupt, SystemExit):
            # Ray's own handler for SIGTERM, in the midst of its start, exits the process.
            error = InterruptedRunError(f"run {name} was stopped by {stop.reason or 'SIGTERM'} while Ray started")
            log.ended(error.exit_code, error.message)
            raise error from None
        stack.enter_context(_signals(stop))
        yield is_local, stop


@contextlib.contextmanager
def _signals(stop: StopFlag, *, is_raising: bool = False) -> Iterator[None]:
    """SIGTERM and SIGINT set a flag.  To be entered anew when Ray is up, which installs handlers of its own."""

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set(signal.Signals(number).name)
        if is_raising:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
