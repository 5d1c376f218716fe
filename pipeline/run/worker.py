"""Owns one worker: a Ray actor around one engine.  Its answers are values; an error of ours is an answer too.

The driver owns retries and replacement.  A worker that cannot be trusted any more ends its process, which frees the
machine's resources for the next one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray.util import get_node_ip_address

from pipeline.core.errors import ClusterError, EngineDeadError, EngineError, RecordImportError, RecordmillError
from pipeline.core.globs import folder_asked
from pipeline.core.places import local_path
from pipeline.core.spec import JobSpec
from pipeline.decoding import Guide
from pipeline.engine.prompts import PromptBuilder, load_tokenizer
from pipeline.engine.shared_guide import shared_guide_file
from pipeline.report.use import EngineUse
from pipeline.run.attempt import Lanes, ShardWork
from pipeline.run.commit import Commit, Committer
from pipeline.run.extract import Extractor
from pipeline.run.fingerprint import schema_digest
from pipeline.run.guidance import guidance_of
from pipeline.run.loop_watch import LoopWatch
from pipeline.run.messages import EngineContext, Setup, Summary
from pipeline.run.metrics import MeteredEngine, WorkerMetrics
from pipeline.run.record import import_first, load_record
from pipeline.run.task import Task
from pipeline.storage.documents import DocumentReader
from pipeline.storage.layout import RunLayout
from pipeline.storage.store import Store, open_store

__all__ = ["Worker"]

logger = logging.getLogger(__name__)

CLOSE_S = 5.0


class Worker:
    """One engine and the shards it is given.  An asynchronous actor: two attempts at a time share the engine."""

    def __init__(self, setup: Setup, concurrency: int) -> None:
        self._setup = setup
        self._concurrency = concurrency
        self._engine: MeteredEngine | None = None
        self._lanes: Lanes | None = None

    async def hello(self) -> str:
        """Says that the worker has a place, and where: the machine's address, and the process there."""
        return f"{get_node_ip_address()} (process {os.getpid()})"

    async def start(self, guide: Any) -> str | RecordmillError:
        """Starts the engine; returns its name, or why it does not start.

        Args:
            guide: the guide's bytes as uint8[n] in shared memory, or None.
        """
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        try:
            import_first(self._setup.import_paths)
            return await self._start(guide)
        except RecordmillError as error:
            return error
        except Exception as error:
            logger.exception("the worker cannot start")
            return EngineError(f"the worker cannot start: {type(error).__name__}: {error}")

    async def _start(self, data: Any) -> str:
        setup, spec = self._setup, self._setup.spec
        record = load_record(spec.record, Path(setup.base))
        schema = record.model_json_schema()
        if schema_digest(schema) != setup.record_digest:
            raise RecordImportError(
                f"record {spec.record!r} on {get_node_ip_address()} is not the class that the driver has imported: its "
                f"JSON Schema is another; it comes from {sys.modules[record.__module__].__file__}"
            )
        source, store = open_store(spec.input.uris[0], spec.s3), open_store(spec.output.uri, spec.s3)
        await asyncio.to_thread(_check_places, store, spec)
        paths: dict[str, str] = {}
        guide = None
        if setup.guide_fingerprint is not None:
            path = shared_guide_file(setup.guide_fingerprint, memoryview(data))
            paths[setup.guide_fingerprint] = str(path)
            guide = Guide.load(path)
        engine = MeteredEngine(await setup.factory(EngineContext(spec, paths)), spec.name)
        prompts = PromptBuilder(load_tokenizer(spec.model), spec.prompt, setup.template, schema)
        extractor = Extractor(
            spec, record, engine, guidance_of(spec, guide, schema), prompts, ThreadPoolExecutor(1, "tokenise")
        )
        self._lanes = Lanes(self._concurrency)
        reader = DocumentReader(source, spec.input, spec.limits)
        self._work = ShardWork(
            extractor,
            reader.read,
            self._lanes,
            ThreadPoolExecutor(2, "read"),
            document_bytes=spec.limits.document_bytes,
            known=reader.known,
            allow_duplicates=spec.rerun is not None,
        )
        self._committer = Committer(
            store,
            RunLayout(spec.output.uri),
            setup.schema,
            fingerprint=setup.fingerprint,
            engine=engine.name,
        )
        self._metrics = WorkerMetrics(spec.name)
        self._engine = engine
        self._watch = LoopWatch(spec.limits.engine_silence_s)
        return engine.name

    async def documents_working(self) -> dict[str, int]:
        """By task, the documents done of those that are not committed; also a sign of life."""
        if self._engine is not None:
            self._engine.tell_idle()
        return {} if self._lanes is None else {name: len(done) for name, done in self._lanes.outcomes.items()}

    async def attempt(self, task: Task, number: int) -> Summary | RecordmillError:
        """One attempt at one task, from its documents to its commit; or why it failed."""
        attempt = f"{self._setup.submission_id}.{task.task_id}.{number}"
        try:
            return await self._attempt(task, attempt)
        except EngineDeadError as error:
            await self._give_up()
            return error
        except RecordmillError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends one attempt, and is told
            # What an exception says may hold text of a document: its type and its place are told, no more.
            what = type(error).__name__
            logger.error("attempt %s failed: %s\n%s", attempt, what, "".join(traceback.format_tb(error.__traceback__)))
            place = traceback.extract_tb(error.__traceback__)[-1]
            return EngineError(f"attempt {attempt}: {what} in {place.name} ({place.filename}, line {place.lineno})")
        finally:
            if self._lanes is not None:
                self._lanes.outcomes.pop(task.task_id, None)

    async def _attempt(self, task: Task, attempt: str) -> Summary:
        started = time.perf_counter()
        in_thread = asyncio.to_thread
        if (standing := await in_thread(self._committer.standing, task)) is not None:
            return Summary(task.task_id, standing, is_ours=False, wall_s=time.perf_counter() - started)
        if task.merge is not None:
            commit = await in_thread(self._committer.merge, task, attempt, self._work.rows)
        else:
            work = await self._work.run(task.shard, attempt, self._setup.spec.limits.shard_s, task.before)
            extracted = time.perf_counter()
            commit = await in_thread(self._committer.commit, task, work, attempt)
            self._metrics.shard_committed(work.timings_s.wall + time.perf_counter() - extracted)
        return Summary(
            task.task_id, commit.tally, commit.is_ours, time.perf_counter() - started, self._use(task, commit)
        )

    def _use(self, task: Task, commit: Commit) -> EngineUse:
        """What the engine did since the commit before, and what this one took.  Rows of halves count when merged."""
        use = EngineUse() if self._engine is None else self._engine.take_use()
        documents = task.shard.rows if commit.is_ours and not task.is_half else 0
        return replace(use, encode_s=commit.encode_s, put_s=commit.put_s, documents=documents)

    async def _give_up(self) -> None:
        """Ends the engine's processes, and this one soon after: the driver replaces it, or is gone itself."""
        threading.Timer(2 * CLOSE_S, os._exit, (1,)).start()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            try:
                await asyncio.wait_for(engine.close(), CLOSE_S)
            except (TimeoutError, EngineError) as error:
                logger.warning("the engine did not close: %s", error)
        sys.stderr.flush()


def _check_places(store: Store, spec: JobSpec) -> None:
    """Whether input and output are here what they are to the driver.

    A machine with files of its own would fail every document that it does not find, and keep the parts that it writes.

    Raises:
        ClusterError: they are not.
    """
    missing = next((uri for uri in spec.input.uris if not _is_here(uri)), None)
    if missing is None and store.head(RunLayout(spec.output.uri).plan) is None:
        missing = spec.output.uri
    if missing is not None:
        raise ClusterError(
            f"{missing} on {get_node_ip_address()} is not what it is on the driver's machine: input and output have to "
            "be on S3, or at the same shared path on every machine"
        )


def _is_here(uri: str) -> bool:
    """Whether the folder or file that an input's URI begins with exists; S3 is the same from everywhere."""
    return uri.startswith("s3://") or os.path.exists(local_path(folder_asked(uri)))
