"""`SqlStore`: threads and the journal in a database. Safe to use from several processes.

It has one connection on one worker thread. The SQL is in `rows` and the modules beside it, the schema in `migrations`.
What a process does with its own runs is in `runs.process_runs`. What lists of runs and threads don't need is imported
when it is first used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from llm_do.errors import ThreadConflict
from llm_do.runtime.record.store.store_writes import EventRow
from llm_do.runtime.record.stored_records import (
    Filter,
    Observation,
    RunFilter,
    RunRecord,
    Spending,
    SpendingBy,
    StoredMessage,
    ThreadRecord,
    ThreadTotals,
)
from llm_do.text.generated_ids import new_id
from llm_do.text.json_data import json_text
from llm_do.threads.sql import rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import project_rows, question_rows
from llm_do.threads.sql.open_store import OpenStore
from llm_do.threads.sql.runs import run_rows
from llm_do.threads.sql.runs.killed_runs import KilledRuns
from llm_do.threads.sql.runs.thread_totals import threads_with_totals
from llm_do.threads.sql.store_errors import ReadOnlyStoreError, thread_conflict
from llm_do.threads.store.codec import same_json, state_text
from llm_do.threads.store.thread_settings import config_data

if TYPE_CHECKING:
    from pathlib import Path

    from llm_do.runtime.record.exchanges import Exchange
    from llm_do.runtime.record.recording import AgentState, ThreadConfig
    from llm_do.runtime.record.store.opened_runs import OpenedRun, ResumedRun
    from llm_do.runtime.record.store.store_writes import Batch, MessageRow, ProjectRow, RunEnd
    from llm_do.runtime.record.store.stored_questions import KeptAnswer, QuestionRow
    from llm_do.threads.sql.batch_store import SqlBatches
    from llm_do.threads.sql.memories.memory_store import SqlMemories
    from llm_do.threads.sql.retention import Retention
    from llm_do.threads.sql.runs.process_runs import ProcessRuns

__all__ = ["SqlStore"]

T = TypeVar("T")


class SqlStore:
    """Stores threads and the journal in a database. A subclass says which.

    Args:
        opened: What this process has of the store.
    """

    def __init__(self, opened: OpenStore) -> None:
        self._share(opened)

    def _share(self, opened: OpenStore) -> None:
        self._opened = opened
        self._owners = opened.owners
        self._active = opened.active
        self._worker = opened.worker
        self._killed = KilledRuns(opened)

    @property
    def name(self) -> str:
        """The store's name in messages."""
        return self._opened.name

    @property
    def batches(self) -> SqlBatches:
        """Its batches: many inputs of one entry."""
        from llm_do.threads.sql.batch_store import SqlBatches

        return SqlBatches(self._opened, self._killed.finish)

    @property
    def memories(self) -> SqlMemories:
        """What agents remember in it."""
        from llm_do.threads.sql.memories.memory_store import SqlMemories

        return SqlMemories(self._opened)

    @property
    def _retention(self) -> Retention:
        from llm_do.threads.sql.retention import Retention

        return Retention(self._opened, self.recover)

    @property
    def _runs(self) -> ProcessRuns:
        from llm_do.threads.sql.runs.process_runs import ProcessRuns

        return ProcessRuns(self._opened, self._killed)

    def add_project(self, root: Path) -> None:
        """Say that the runs of a project are recorded here; a deleted thread then takes what is kept to undo its runs.

        `open_store` and the first run of a `Runtime` do this. A process that opens another file or a database by its
        class, and deletes threads without running anything, has to do it itself.

        Args:
            root: The project's folder.

        Example:
            >>> from pathlib import Path
            >>> from llm_do.threads import memory_store
            >>> memory_store().add_project(Path("desk"))
        """
        self._opened.roots.add(root.resolve())

    # -- threads

    async def thread(self, thread_id: str, user_id: str | None = None) -> ThreadRecord | None:
        """Return a user's thread, or None if there is none with that id."""
        for id in (thread_id, user_id):
            if not isinstance(id, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] (a database may refuse it)
                return None
        return await self._read(lambda db: rows.thread_record(db, user_id, thread_id))

    async def threads(
        self, user_id: str | None = None, *, every_user: bool = False, limit: int | None = None
    ) -> list[ThreadRecord]:
        """List a user's threads, or every user's, most recent first."""
        return await self._read(lambda db: rows.thread_records(db, user_id, every_user=every_user, limit=limit))

    async def threads_with_totals(
        self, user_id: str | None = None, *, every_user: bool = False, limit: int | None = None
    ) -> list[tuple[ThreadRecord, ThreadTotals]]:
        """List threads as `threads` does, each with what its recorded runs have used."""
        return await self._read(lambda db: threads_with_totals(db, user_id, every_user=every_user, limit=limit))

    async def save_thread(
        self, record: ThreadRecord, *, expected: str | None, messages: Sequence[MessageRow] = ()
    ) -> ThreadRecord:
        """Save a thread with new messages; raise `ThreadConflict` if it has another revision."""
        now = time.time()
        texts = (
            json_text(config_data(record.config)),
            state_text(record.state, f"thread {record.id!r}"),
            state_text(record.toolkits, f"the toolkits of thread {record.id!r}"),
            record.head,
            json.dumps(record.branches),
            json_text(record.carried),
            new_id(),
        )

        def save(db: Database) -> ThreadRecord:
            stored = rows.thread_record(db, record.user_id, record.id)
            if (stored.revision if stored is not None else None) != expected:
                raise thread_conflict(record.id)
            rows.insert_messages(db, None, messages)
            if (
                record.head is not None
                and not db.execute("SELECT 1 FROM messages WHERE id = ?", (record.head,)).fetchone()
            ):
                raise thread_conflict(record.id)
            turn = stored.turn if stored is not None and _same_turn(stored, record) else new_id()
            created = stored.created if stored is not None else record.created or now
            db.execute(
                "INSERT INTO threads (user, id, config, state, toolkits, head, branches, carried, revision, turn,"
                " created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (user, id) DO UPDATE SET"
                " config = excluded.config, state = excluded.state, toolkits = excluded.toolkits,"
                " head = excluded.head, branches = excluded.branches, carried = excluded.carried,"
                " revision = excluded.revision, turn = excluded.turn, updated = excluded.updated",
                (record.user_id or "", record.id, *texts, turn, created, max(now, created)),
            )
            saved = rows.thread_record(db, record.user_id, record.id)
            return saved if saved is not None else record

        return await self._write(save)

    async def delete_thread(self, thread_id: str, user_id: str | None = None, *, expected: str | None = None) -> bool:
        """Delete a thread, its memories, its messages that no other thread shares, and its runs in the journal.

        What `llm-do undo` has kept of these runs is dropped in the folders of the projects that use the store.

        Raises:
            StoreError: The thread is deleted, but what is kept of its runs couldn't be.
            ThreadConflict: The thread doesn't have the expected revision.
        """
        return await self._retention.delete_thread(thread_id, user_id, expected)

    async def history(
        self, head: str | None, *, limit: int | None = None, stop: str | None = None, before: str | None = None
    ) -> list[StoredMessage]:
        """Read the history that ends at `head`, in order."""

        def read(db: Database) -> list[StoredMessage]:
            newest = head if before is None else rows.parent_of(db, before, head)
            return rows.read_history(db, newest, limit=limit, stop=stop)

        return await self._read(read)

    async def message(self, message_id: str) -> StoredMessage | None:
        """Return a message by its id."""
        found = await self._read(lambda db: rows.read_history(db, message_id, limit=1))
        return found[0] if found else None

    async def user_state(self, user_id: str) -> tuple[AgentState, str | None]:
        """Return a user's state and its revision."""

        def read(db: Database) -> tuple[AgentState, str | None]:
            row = db.execute("SELECT state, revision FROM users WHERE id = ?", (user_id,)).fetchone()
            return ({}, None) if row is None else (json.loads(row[0]), row[1])

        return await self._read(read)

    async def save_user_state(self, user_id: str, state: AgentState, *, expected: str | None) -> str:
        """Save a user's state; raise `ThreadConflict` if it has another revision."""
        text, revision = state_text(state, f"user {user_id!r}"), new_id()

        def save(db: Database) -> str:
            row = db.execute("SELECT revision FROM users WHERE id = ?", (user_id,)).fetchone()
            if (row[0] if row is not None else None) != expected:
                raise ThreadConflict(f"the state of user {user_id!r} was changed meanwhile", hint="Read it again.")
            rows.save_user(db, user_id, text, revision)
            return revision

        return await self._write(save)

    # -- runs

    async def begin_run(
        self,
        run: RunRecord,
        defaults: ThreadConfig,
        beginning: str | None = None,
        project: ProjectRow | None = None,
    ) -> OpenedRun:
        """Start a run: finish killed runs on its thread, create the thread if necessary, and read it.

        A run that has lost a conflict on the thread goes first, so that it doesn't lose again and again.
        """
        return await self._runs.begin(run, defaults, beginning, project)

    async def write(self, batch: Batch) -> None:
        """Write what a run has done since the last batch."""
        await self._runs.write(batch)

    async def resume_run(self, run_id: str) -> ResumedRun:
        """Begin another attempt at a durable run that no process has."""
        return await self._runs.resume(run_id)

    async def stop_run(self, batch: Batch, status: str) -> None:
        """Leave a durable run to be resumed."""
        await self._runs.stop(batch, status)

    async def drop_run(self, run_id: str) -> None:
        """End a durable run that waits to be resumed."""
        await self._runs.drop(run_id)

    async def run_texts(self, run_id: str) -> tuple[str | None, str | None]:
        """Return what a durable run began with, and its result if it has ended."""
        query = "SELECT beginning, result FROM runs WHERE id = ?"
        row = await self._read(lambda db: db.execute(query, (run_id,)).fetchone())
        return (None, None) if row is None else (row[0], row[1])

    async def project_files(self, run_id: str) -> ProjectRow | None:
        """Return the files of the project that a durable run began with; None if they weren't kept."""
        return await self._read(lambda db: project_rows.project_files(db, run_id))

    async def questions(self, run_id: str | None = None, *, answered: bool = False) -> tuple[QuestionRow, ...]:
        """Read the questions that wait for an answer, of one run or of all; those of a run also with the answered."""
        if answered and run_id is not None:
            return await self._read(lambda db: question_rows.of_run(db, run_id))
        return await self._read(lambda db: question_rows.pending(db, run_id))

    async def answer_question(self, question_id: str, answer: str, by: str) -> KeptAnswer:
        """Answer a question unless it has been answered; returns which answer counts."""
        return await self._write(lambda db: question_rows.answer(db, question_id, answer, by))

    async def finish_run(self, ending: RunEnd) -> None:
        """End a run; raise `ThreadConflict` if another run has continued the thread."""
        await self._runs.finish(ending)

    async def recover(self) -> list[str]:
        """Finish every run whose process is gone, and return their ids; none in a store that can only be read."""
        try:
            return await self._write(self._killed.finish)
        except ReadOnlyStoreError:
            return []

    async def runs(
        self, *, thread_id: str | None = None, limit: int | None = None, filter: RunFilter | None = None
    ) -> list[RunRecord]:
        """List runs, most recent first: those of a thread, those that a filter selects, or all."""
        chosen = filter or RunFilter()
        if thread_id is not None:
            chosen = replace(chosen, thread_id=thread_id)
        return await self._read(lambda db: run_rows.run_records(db, chosen, limit=limit))

    async def spending(self, by: SpendingBy, filter: RunFilter | None = None) -> list[Spending]:
        """Sum up what the requests of runs have used: by day, the latest first, or by agent or model, by cost."""
        return await self._read(lambda db: run_rows.spending(db, by, filter or RunFilter()))

    async def run(self, run_id: str) -> RunRecord | None:
        """Return a run by its id or an unambiguous prefix of it."""
        found = await self._read(lambda db: run_rows.run_records(db, RunFilter(), prefix=run_id, limit=2))
        return found[0] if len(found) == 1 else next((run for run in found if run.id == run_id), None)

    async def prune_runs(self, before: float, *, dry_run: bool = False) -> int:
        """Delete the record of runs that ended before a time: events, requests, steps, and what is kept to undo them.

        Threads keep their messages until they are deleted. A batch of `llm-do map` goes as a whole, once all
        of its inputs have ended before that time, since inputs without a run would be run again. Other processes may
        go on using the store.

        Args:
            before: Seconds since the epoch.
            dry_run: Whether to count the runs without deleting any.

        Returns:
            The number of runs.

        Raises:
            StoreError: The runs are deleted, but what is kept to undo them couldn't be.
        """
        return await self._retention.prune_runs(before, dry_run=dry_run)

    async def prune_threads(self, before: float, *, dry_run: bool = False, seconds: float | None = None) -> int:
        """Delete the threads that haven't been continued or changed since a time, each as `delete_thread` does.

        A thread is kept as long as one of its runs is running, waits for an answer or can be resumed. Other processes
        can use the store meanwhile.

        Args:
            before: Seconds since the epoch.
            dry_run: Whether to count the threads without deleting any.
            seconds: How long it may take; what is left then, the next call deletes. None for as long as it takes.

        Returns:
            The number of threads.

        Raises:
            StoreError: The threads are deleted, but what is kept to undo their runs couldn't be.
        """
        if dry_run:
            return await self._retention.count_old_threads(before)
        return await self._retention.prune_threads(before, seconds)

    async def observations(
        self, filter: Filter, *, limit: int | None = None, earliest: bool = False
    ) -> list[Observation]:
        """Read journal entries in the order they were written; with a limit, only the latest, or the `earliest`."""
        return await self._read(lambda db: rows.observations(db, filter, limit, earliest=earliest))

    async def exchanges(self, run_id: str) -> list[Exchange]:
        """Read the exchanges of a run in the order in which they ended."""
        from llm_do.threads.sql import exchange_rows

        return await self._read(lambda db: exchange_rows.read(db, run_id))

    async def add_observation(self, observation: Observation) -> None:
        """Add an application's own entry, with an id of its own instead of a run's."""
        run = RunRecord(observation.run_id, "", "", observation.thread_id, observation.user_id, observation.time)
        text = json_text(observation.data)
        row = EventRow(observation.seq, observation.time, observation.type, text)
        await self._write(lambda db: rows.insert_events(db, run, [row]))

    async def aclose(self) -> None:
        """Close the connection unless runs are active; it reopens when used again. A store in memory stays open."""
        with self._opened.claiming:
            idle = self._opened.closes and not self._active and not self._opened.claimed
            if idle:
                self._owners.release()
        if idle:
            await self._worker.aclose()

    # -- transactions

    async def _read(self, job: Callable[[Database], T]) -> T:
        """Read in one transaction, which sees a consistent snapshot."""
        return await self._worker.read(job)

    async def _write(self, job: Callable[[Database], T]) -> T:
        """Write in one transaction."""
        return await self._worker.write(job)


def _same_turn(stored: ThreadRecord, record: ThreadRecord) -> bool:
    """Check that history, state and toolkits are unchanged."""
    return stored.head == record.head and same_json(
        [stored.state, dict(stored.toolkits)], [record.state, dict(record.toolkits)]
    )
