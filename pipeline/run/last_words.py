"""Owns what is told of an error of Ray's own: its words, in one line, and where the log of the worker is.

Of an exception that a worker raised itself nothing is told: its text may be that of a document.
"""

from __future__ import annotations

import re

import ray.exceptions as raised

__all__ = ["last_words"]

MOST_CHARS = 300
_OF_ITS_OWN = (
    raised.RayActorError,
    raised.NodeDiedError,
    raised.LocalRayletDiedError,
    raised.WorkerCrashedError,
    raised.ObjectLostError,
    raised.OutOfDiskError,
    raised.ActorUnschedulableError,
    raised.ActorPlacementGroupRemoved,
    raised.RuntimeEnvSetupError,
)
"""Errors whose first sentences are Ray's."""
_FIELDS = re.compile(r"^\t(class_name|actor_id|pid|name|namespace|ip): .*\n?", re.MULTILINE)
_SENTENCE_ENDS = re.compile(r"(?<=\.)\s+")


def last_words(error: raised.RayError, *, is_local: bool) -> str:
    """What Ray says of how a worker ended, and what shows more.

    Args:
        is_local: whether the cluster ends with the run, so that nobody can ask it for a log.
    """
    actor_id = error.actor_id if isinstance(error, raised.RayActorError) else None
    log = "`ray logs cluster`" if actor_id is None else f"`ray logs actor --id {actor_id} --err`"
    more = "its log is in the folder of Ray's session" if is_local else f"{log} shows more"
    return f"{_words(error)[:MOST_CHARS] or type(error).__name__}; {more}"


def _words(error: raised.RayError) -> str:
    """Two sentences: the third may quote what the worker raised, and any of them where it did so before it stood."""
    if not isinstance(error, _OF_ITS_OWN) or (isinstance(error, raised.RayActorError) and error.actor_init_failed):
        return ""
    text = _FIELDS.sub("", str(error)).removeprefix(raised.ActorDiedError.BASE_ERROR_MSG).strip()
    return " ".join(" ".join(_SENTENCE_ENDS.split(text)[:2]).split()).rstrip(".")
