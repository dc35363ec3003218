"""`StoreRecorder`: begins the records of a project's runs, or continues those of durable ones."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.errors import StoreError
from llm_do.project.store_location import is_own_file, shared_name, with_store
from llm_do.runtime.record.recording import RecordedRun
from llm_do.runtime.record.redaction import Redactor, redactor
from llm_do.runtime.record.store.memories import ProjectMemories
from llm_do.runtime.record.store.opened_runs import OpenedRun
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.runtime.record.thread_store import ThreadStore
from llm_do.threads.exchange_log import ExchangeLog, SessionSetups
from llm_do.threads.expiry import ThreadExpiry
from llm_do.threads.opened_stores import has_store, memory_store, open_store, reason_unrecorded
from llm_do.threads.run_recording import StoreRecording
from llm_do.threads.sql.sql_store import SqlStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm_do.project.project import Project, RecordSettings
    from llm_do.runtime.record.store.batches import BatchStore
    from llm_do.runtime.record.store.opened_runs import ResumedRun
    from llm_do.runtime.record.store.store_writes import ProjectRow

__all__ = ["StoreRecorder"]


class StoreRecorder:
    """Starts the recording of each of a project's runs.

    Args:
        project: The project.
        store: Where to record: a store, or what names one; None for the project's own store.
        notice: Called with a message when nothing can be recorded.
    """

    def __init__(self, project: Project, store: ThreadStore | Path | str | None, notice: Callable[[str], None]) -> None:
        if isinstance(store, Path | str):
            project, store = with_store(project, str(store)), None
        self._project = project
        self._store = store
        self._own = store is None
        self._notice = notice
        self._setups: SessionSetups | None = None
        self._expiry = ThreadExpiry(project.threads.keep_days, notice)
        if isinstance(store, SqlStore):
            store.add_project(project.root)

    async def begin(
        self,
        run: RecordedRun,
        entry: str,
        settings: RecordSettings,
        beginning: str | None = None,
        project: ProjectRow | None = None,
    ) -> StoreRecording | None:
        """Open the run's thread and start its record; a run without a thread continues even if it can't be recorded."""
        record = RunRecord(run.run_id, "running", entry, run.thread_id, run.user_id, time.time())
        has_state = run.thread_id is not None or run.user_id is not None
        try:
            store = self.store()
            opened = await store.begin_run(record, self._project.threads.config, beginning, project)
        except StoreError as error:
            if beginning is not None or (has_state and reason_unrecorded(self._project) is None):
                raise
            self._notice(f"this run is not recorded: {error.message}{f'. {error.hint}' if error.hint else ''}")
            if not has_state:
                return None
            store = self._store = memory_store()
            opened = await store.begin_run(record, self._project.threads.config)
        if opened.recovered:
            self._notice(f"thread {run.thread_id!r}: its last run was interrupted; the work it had saved is kept")
        return self._recording(store, run, opened, settings, 0 if beginning is None else 1)

    async def resume(self, run: RecordedRun, settings: RecordSettings) -> tuple[StoreRecording, ResumedRun]:
        """Begin another attempt at a durable run."""
        store = self.store()
        resumed = await store.resume_run(run.run_id)
        return self._recording(store, run, resumed.opened, settings, resumed.run.attempt), resumed

    def _recording(
        self, store: ThreadStore, run: RecordedRun, opened: OpenedRun, settings: RecordSettings, attempt: int
    ) -> StoreRecording:
        redact = redactor()
        log = ExchangeLog(self._session_setups(redact) if settings.exchanges else None)
        return StoreRecording(store, run, opened, self._notice, redact, log, settings, self._expiry, attempt=attempt)

    async def find(self, run_id: str) -> tuple[RunRecord, str | None, str | None] | None:
        """A run by its id; of a durable one its beginning and its result, as text."""
        store = self.store()
        await store.recover()
        run = await store.run(run_id)
        if run is None or run.id != run_id:
            return None
        return run, *await store.run_texts(run.id)

    def batches(self) -> BatchStore:
        """Return the batches of its store."""
        return self.store().batches

    def memories(self, *, writes: bool) -> ProjectMemories:
        """Return what the project's agents remember; a store that can only be read is good enough to look into."""
        project = self._project
        own = self._own and is_own_file(project.threads.store)
        fault = reason_unrecorded(project) if own else None
        if fault is None or not has_store(project.root):
            store: ThreadStore = self.store()
        elif writes:
            raise fault
        else:
            store = open_store(project)
        return ProjectMemories(store.memories, "" if own else shared_name(project))

    async def project_files(self, run_id: str) -> ProjectRow | None:
        """The files of the project that a durable run began with; None if they weren't kept."""
        return await self.store().project_files(run_id)

    async def aclose(self) -> None:
        """Close the project's own store."""
        if self._own and self._store is not None:
            await self._store.aclose()

    def _session_setups(self, redact: Redactor) -> SessionSetups:
        if self._setups is None or self._setups.redact is not redact:  # the environment has other secrets now
            self._setups = SessionSetups(redact)
        return self._setups

    def store(self) -> ThreadStore:
        """The store that runs are recorded in, opened at its first use."""
        if self._store is None:
            reason = reason_unrecorded(self._project)
            if reason is not None:
                raise reason
            self._store = open_store(self._project)
        return self._store
