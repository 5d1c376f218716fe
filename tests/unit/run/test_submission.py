"""What a run writes down about itself: its spec without secrets, and one entry a submission."""

from __future__ import annotations

import json

from pipeline.core.spec import parse_spec
from pipeline.run.submission import SubmissionLog, write_spec
from pipeline.storage.layout import RunLayout
from tests.stores import MemoryStore

LAYOUT = RunLayout("s3://b/run/")


def test_the_stored_spec_holds_no_secret_and_is_written_once() -> None:
    """Fails when `model.engine`, which vLLM takes tokens in, is stored as it is."""
    raw = {
        "name": "notes",
        "input": {"uri": "s3://b/in/"},
        "record": "m:R",
        "model": {"name": "m", "engine": {"hf_token": "hidden", "max_model_len": 512, "deep": [{"api_key": "hidden"}]}},
        "output": {"uri": "s3://b/run/"},
    }
    store = MemoryStore()
    write_spec(store, LAYOUT, parse_spec(raw, source="test"), attempt="one")
    stored = store.get(LAYOUT.spec)
    assert b"hidden" not in stored
    assert json.loads(stored)["model"]["engine"]["max_model_len"] == 512
    write_spec(store, LAYOUT, parse_spec(raw | {"name": "other"}, source="test"), attempt="two")
    assert store.get(LAYOUT.spec) == stored


def test_an_entry_says_how_its_submission_ended_or_that_it_did_not() -> None:
    store = MemoryStore()
    log = SubmissionLog(store, LAYOUT)
    log.started("f" * 16, shards_pending=3)
    begun = json.loads(store.get(LAYOUT.submission(log.submission_id)))
    assert (begun["fingerprint"], begun["shards_pending"]) == ("f" * 16, 3)
    assert "ended_at" not in begun
    log.ended(3, "the store gave out")
    ended = json.loads(store.get(LAYOUT.submission(log.submission_id)))
    assert (ended["exit_code"], ended["reason"]) == (3, "the store gave out")
    assert ended["started_at"] == begun["started_at"] <= ended["ended_at"]
