"""A signal while Ray starts ends the run at once and is written down, also where Ray swallows it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline.core.errors import InterruptedRunError
from pipeline.run import cluster
from pipeline.run.stop import stoppable_ray
from pipeline.run.submission import SubmissionLog
from pipeline.storage.layout import RunLayout
from pipeline.storage.local import LocalStore

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def log(tmp_path: Path) -> SubmissionLog:
    log = SubmissionLog(LocalStore(), RunLayout(f"{tmp_path}/run/"))
    log.started("f" * 16, shards_pending=1)
    return log


def _starting(monkeypatch: pytest.MonkeyPatch, number: signal.Signals, *, kind: str) -> None:
    @contextmanager
    def ray_connection(address: str | None) -> Iterator[bool]:
        if kind == "exiting":
            signal.signal(number, lambda *_: sys.exit(15))
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            if kind != "swallowing":
                raise
        yield True

    monkeypatch.setattr(cluster, "ray_connection", ray_connection)


@pytest.mark.parametrize("kind", ["plain", "exiting"])
@pytest.mark.parametrize("number", NUMBERS)
def test_it_ends_at_once_with_how_to_go_on(
    number: signal.Signals, kind: str, log: SubmissionLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _starting(monkeypatch, number, kind=kind)
    before = signal.getsignal(number)
    with pytest.raises(InterruptedRunError) as caught, stoppable_ray("notes", None, log):
        pytest.fail("Ray is said to be up")
    expected = number.name if kind == "plain" else "SIGTERM"
    assert str(caught.value) == (
        f"run notes was stopped by {expected} while Ray started (run the same command again to resume)"
    )
    [written] = (tmp_path / "run" / "_run" / "submissions").iterdir()
    assert '"exit_code": 130' in written.read_text()
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", NUMBERS)
def test_one_that_was_swallowed_stops_the_driver(
    number: signal.Signals, log: SubmissionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    _starting(monkeypatch, number, kind="swallowing")
    with stoppable_ray("notes", None, log) as (is_local, stop):
        assert is_local
        assert stop.reason == number.name


@pytest.mark.parametrize("number", NUMBERS)
def test_one_that_comes_later_sets_the_flag(
    number: signal.Signals, log: SubmissionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def ray_connection(address: str | None) -> Iterator[bool]:
        signal.signal(number, signal.SIG_IGN)
        yield False

    monkeypatch.setattr(cluster, "ray_connection", ray_connection)
    with stoppable_ray("notes", "auto", log) as (is_local, stop):
        signal.raise_signal(number)
        assert (is_local, stop.reason) == (False, number.name)
