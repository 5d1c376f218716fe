"""`recordmill verify`: a long list is summed up for people and whole for machines; shared ids are a warning."""

from __future__ import annotations

import pytest

from pipeline.cli import results
from pipeline.run.shared_ids import SharedId, SharedIds
from pipeline.run.verify import Verification
from tests.unit.cli.conftest import Say

NONE = SharedIds()
SHARED = SharedIds(1200, (SharedId("i\x1b1", ("s1", "s2")),))


def _found(monkeypatch: pytest.MonkeyPatch, *, missing: int, shared: SharedIds = NONE) -> None:
    lines = tuple(f"shard {number} has no part: 2 documents have no outcome" for number in range(missing))
    wrong = ("parts/x is damaged",) if missing else ()
    verification = Verification(6000, 12_000, 12_000 - 2 * missing, wrong, lines, shared)
    monkeypatch.setattr(results, "verify_run", lambda prefix, s3: verification)


def test_missing_shards_beyond_the_tenth_are_summed_up(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    _found(monkeypatch, missing=5000)
    shown = say("verify", "run/")
    assert shown.code == 1
    assert shown.out.count("has no part") == 10
    assert "parts/x is damaged" in shown.out
    assert "and 4,990 more shards without a part" in shown.out
    assert "5,001 problems in 12,000 planned documents" in shown.out
    assert len(say("verify", "run/", "--json").json["problems"]) == 5001


def test_ids_in_several_shards_are_named_and_leave_the_exit_code(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    _found(monkeypatch, missing=0, shared=SHARED)
    shown = say("verify", "run/")
    assert shown.code == 0
    assert "sound" in shown.out
    assert "1,200 document ids stand in more than one shard" in shown.out
    assert "in shards s1, s2" in shown.out
    assert "and 1,199 more" in shown.out
    assert "\x1b" not in shown.out
    said = say("verify", "run/", "--json").json
    assert said["is_sound"]
    assert said["ids_in_several_shards"] == {
        "count": 1200,
        "examples": [{"document_id": "i\x1b1", "shard_ids": ["s1", "s2"]}],
    }


def test_a_run_without_shared_ids_says_nothing_of_them(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    _found(monkeypatch, missing=0)
    assert say("verify", "run/").out.count("\n") == 1
