"""`ProcessRuns`: the runs of a store that this process has, from their beginnings to their ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from llm_do.runtime.record.store.opened_runs import OpenedRun, ResumedRun
from llm_do.runtime.record.store.store_writes import Batch, ProjectRow, RunEnd
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import attempts, project_rows
from llm_do.threads.sql.open_store import OpenStore
from llm_do.threads.sql.runs import run_rows
from llm_do.threads.sql.runs.killed_runs import KilledRuns
from llm_do.threads.sql.runs.run_batches import write_batch
from llm_do.threads.sql.runs.run_beginnings import begin as begin_in, run_exists
from llm_do.threads.sql.runs.run_endings import finish
from llm_do.threads.sql.runs.run_owners import owned_again

if TYPE_CHECKING:
    from llm_do.runtime.record.recording import ThreadConfig

__all__ = ["ProcessRuns"]

T = TypeVar("T")

THREAD_PATIENCE = 30.0
"""Seconds that a run waits for others that have lost a conflict on its thread."""


class ProcessRuns:
    """The runs of one store in this process.

    Args:
        opened: What this process has of the store.
        killed: The runs whose process is gone.
    """

    def __init__(self, opened: OpenStore, killed: KilledRuns) -> None:
        self._opened = opened
        self._killed = killed
        self._owners = opened.owners
        self._active = opened.active
        self._worker = opened.worker

    async def begin(
        self, run: RunRecord, defaults: ThreadConfig, beginning: str | None, project: ProjectRow | None
    ) -> OpenedRun:
        """Start a run: finish killed runs on its thread, create the thread if necessary, and read it."""
        waits = run.thread_id is not None and not _is_nested()
        with self._opened.claiming:
            again = run.id in self._opened.conflicted
            if run.id in self._active and not again:
                raise run_exists(run.id, "running")
            run = replace(run, owner=self._owners.own, status="running")
            self._active[run.id] = run
            self._opened.conflicted.discard(run.id)

        def begin(db: Database) -> tuple[str, OpenedRun] | None:
            owned = _owned_by(run, self._owners.claim())
            stored, alone = run_rows.before_beginning(db, run)
            if waits and not alone and self._is_claimed(db, run):
                return None
            if stored == "running" and not again and run.id not in self._opened.claimed:
                self._killed.finish(db)
                stored, alone = run_rows.before_beginning(db, run)
            killed = [] if alone else self._killed.finish_of(db, run.user_id, run.thread_id)
            opened = begin_in(
                db,
                owned,
                defaults,
                killed,
                stored=stored,
                again=again,
                alone=alone,
                beginning=beginning,
                project=project,
            )
            return owned.owner, opened

        try:
            begun = await self._worker.write(begin)
            if begun is None:
                await self._wait_for_thread(run)
                waits = False
                begun = await self._worker.write(begin)
            assert begun is not None
            owner, opened = begun
            self._active[run.id] = _owned_by(run, owner)
            self._opened.claimed.discard(run.id)
            return opened
        except BaseException as error:
            self._active.pop(run.id, None)
            if isinstance(error, asyncio.CancelledError):  # the job still starts the run, and nothing would end it
                self._worker.post(self._killed.finish)
            raise

    async def _wait_for_thread(self, run: RunRecord) -> None:
        until = time.monotonic() + THREAD_PATIENCE
        pause = 0.01
        while await self._worker.read(lambda db: self._is_claimed(db, run)) and time.monotonic() < until:
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.1)

    def _is_claimed(self, db: Database, run: RunRecord) -> bool:
        return any(id in self._active or self._owners.alive(db, owner) for id, owner in run_rows.claims(db, run))

    async def write(self, batch: Batch) -> None:
        """Write what a run has done since the last batch."""
        run = self._active.get(batch.run_id)
        if run is not None:
            await self._write_of(run, batch, lambda db, run: write_batch(db, run, batch))

    async def resume(self, run_id: str) -> ResumedRun:
        """Begin another attempt at a durable run that no process has."""
        with self._opened.claiming:
            if run_id in self._active:
                raise run_exists(run_id, "running")

        def begin(db: Database) -> ResumedRun:
            owner = self._owners.claim()
            self._killed.finish(db)
            run = attempts.waiting_run(db, run_id)
            resumed = attempts.resume(db, replace(run, owner=owner))
            self._active[run_id] = resumed.run  # before any other job may take it for one that was killed
            return resumed

        try:
            return await self._worker.write(begin)
        except BaseException:
            self._active.pop(run_id, None)
            raise

    async def stop(self, batch: Batch, status: str) -> None:
        """Leave a durable run to be resumed."""
        run = self._active.get(batch.run_id)
        if run is None:
            return

        def stop(db: Database, run: RunRecord) -> None:
            write_batch(db, run, batch)
            attempts.stop(db, run, status)

        try:
            await self._write_of(run, batch, stop)
        finally:
            self._active.pop(run.id, None)

    async def drop(self, run_id: str) -> None:
        """End a durable run that waits to be resumed."""

        def drop(db: Database) -> None:
            from llm_do.threads.sql.runs import recovery  # heavy

            self._killed.finish(db)
            recovery.finish_killed(db, attempts.waiting_run(db, run_id))
            project_rows.drop_unused_projects(db)

        await self._worker.write(drop)

    async def finish(self, ending: RunEnd) -> None:
        """End a run; raise `ThreadConflict` if another run has continued the thread."""
        run = self._active.get(ending.batch.run_id)
        if run is None:
            return
        try:
            clash = await self._write_of(run, ending.batch, lambda db, run: finish(db, run, ending))
        except BaseException:
            # Its end can't be saved; the next run on the thread finishes it like a killed one.
            self._active.pop(run.id, None)
            raise
        if clash is not None:
            self._opened.conflicted.add(run.id)
            raise clash
        self._active.pop(run.id, None)

    async def _write_of(self, run: RunRecord, batch: Batch, job: Callable[[Database, RunRecord], T]) -> T:
        """Write something of a run that this process still has."""

        def write(db: Database) -> tuple[RunRecord, T]:
            kept = run
            if not self._owners.holds(run.owner):
                kept = owned_again(db, run, batch.attempt, self._owners)
            return kept, job(db, kept)

        kept, value = await self._worker.write(write)
        if kept is not run and self._active.get(run.id) is run:
            self._active[run.id] = kept
        return value


def _owned_by(run: RunRecord, owner: str) -> RunRecord:
    return run if run.owner == owner else replace(run, owner=owner)


def _is_nested() -> bool:
    """Whether the code of another run starts this one, which that one may be waiting for."""
    from llm_do.runtime.context.call_context import CURRENT_CALL

    return CURRENT_CALL.get(None) is not None
