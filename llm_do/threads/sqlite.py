"""`SqliteStore`: threads and the journal in one SQLite file, or in memory. Safe with several processes.

Write-ahead logging, every commit on disk before anything goes on (`synchronous=FULL`); one connection on one worker
thread. The SQL is in `rows`, what happens to killed runs in `recovery`, the schema in `migrations`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llm_do.errors import LlmDoError, StoreError, ThreadConflict
from llm_do.runtime.recording import AgentState
from llm_do.threads import recovery, rows
from llm_do.threads.codec import state_text
from llm_do.threads.migrations import migrate
from llm_do.threads.owners import Owners
from llm_do.threads.store import Batch, Begun, Ending, EventRow, MessageRow
from llm_do.threads.values import Filter, Observation, RunRecord, StoredMessage, ThreadRecord, config_data
from llm_do.threads.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Generator

    from llm_do.runtime.recording import ThreadConfig

__all__ = ["SqliteStore", "conflict"]

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds that a transaction waits for another process's."""


class SqliteStore:
    """Keeps threads and the journal in a SQLite file.

    Args:
        path: The file; None keeps everything in memory, for this object only.

    Example:
        >>> import asyncio
        >>> store = SqliteStore(None)
        >>> asyncio.run(store.threads())
        []
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._owners = Owners(path.parent / "owners" if path is not None else None)
        self._active: dict[str, RunRecord] = {}
        name = self.name

        def connect() -> sqlite3.Connection:
            with _told(name):
                return _connect(path, name)

        self._worker = Worker(connect)
        self._closing = weakref.finalize(self, _close, self._worker, self._owners)

    @property
    def name(self) -> str:
        """The file's path."""
        return str(self.path) if self.path is not None else "the store in memory"

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r})"

    # -- threads

    async def thread(self, thread_id: str, user_id: str | None = None) -> ThreadRecord | None:
        """One thread; None when this user has none of that name."""
        return await self._do(lambda db: rows.thread_record(db, user_id, thread_id))

    async def threads(
        self, user_id: str | None = None, *, every_user: bool = False, limit: int | None = None
    ) -> list[ThreadRecord]:
        """A user's threads or everybody's, the latest first."""
        return await self._do(lambda db: rows.thread_records(db, user_id, every_user=every_user, limit=limit))

    async def save_thread(
        self, record: ThreadRecord, *, expected: str | None, messages: Sequence[MessageRow] = ()
    ) -> ThreadRecord:
        """Save a thread and messages that its history gains; raises `ThreadConflict` at another revision."""
        now = time.time()
        texts = (
            json.dumps(config_data(record.config), ensure_ascii=False),
            state_text(record.state, f"thread {record.id!r}"),
            state_text(record.toolkits, f"the toolkits of thread {record.id!r}"),
            record.head,
            json.dumps(record.branches),
            json.dumps(record.carried, ensure_ascii=False),
            rows.new_token(),
        )

        def save(db: sqlite3.Connection) -> ThreadRecord:
            there = rows.thread_record(db, record.user_id, record.id)
            if (there.revision if there is not None else None) != expected:
                raise conflict(record.id)
            rows.insert_messages(db, None, messages)
            if (
                record.head is not None
                and not db.execute("SELECT 1 FROM messages WHERE id = ?", (record.head,)).fetchone()
            ):
                raise conflict(record.id)
            same = there is not None and (there.head, there.state, there.toolkits) == (
                record.head,
                record.state,
                record.toolkits,
            )
            turn = there.turn if same and there is not None else rows.new_token()
            created = there.created if there is not None else record.created or now
            db.execute(
                "INSERT OR REPLACE INTO threads (user, id, config, state, toolkits, head, branches, carried, revision,"
                " turn, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (record.user_id or "", record.id, *texts, turn, created, now),
            )
            saved = rows.thread_record(db, record.user_id, record.id)
            return saved if saved is not None else record

        return await self._change(save)

    async def delete_thread(self, thread_id: str, user_id: str | None = None, *, expected: str | None = None) -> bool:
        """Delete a thread, its messages that no other thread shares, and its runs in the journal."""

        def delete(db: sqlite3.Connection) -> bool:
            record = rows.thread_record(db, user_id, thread_id)
            if expected is not None and (record is None or record.revision != expected):
                raise conflict(thread_id)
            if record is not None:
                rows.delete_thread(db, record)
            return record is not None

        return await self._change(delete)

    async def history(
        self, head: str | None, *, limit: int | None = None, stop: str | None = None
    ) -> list[StoredMessage]:
        """The messages that end with `head`, in order."""
        return await self._do(lambda db: rows.history(db, head, limit=limit, stop=stop))

    async def message(self, message_id: str) -> StoredMessage | None:
        """One message by its id."""
        found = await self._do(lambda db: rows.history(db, message_id, limit=1))
        return found[0] if found else None

    async def user_state(self, user_id: str) -> tuple[AgentState, str | None]:
        """A user's state, and its revision."""

        def read(db: sqlite3.Connection) -> tuple[AgentState, str | None]:
            row = db.execute("SELECT state, revision FROM users WHERE id = ?", (user_id,)).fetchone()
            return ({}, None) if row is None else (json.loads(row[0]), row[1])

        return await self._do(read)

    async def save_user_state(self, user_id: str, state: AgentState, *, expected: str | None) -> str:
        """Save a user's state; raises `ThreadConflict` at another revision."""
        text, revision = state_text(state, f"user {user_id!r}"), rows.new_token()

        def save(db: sqlite3.Connection) -> str:
            row = db.execute("SELECT revision FROM users WHERE id = ?", (user_id,)).fetchone()
            if (row[0] if row is not None else None) != expected:
                raise ThreadConflict(f"the state of user {user_id!r} was changed meanwhile", hint="Read it again.")
            db.execute("INSERT OR REPLACE INTO users VALUES (?, ?, ?)", (user_id, text, revision))
            return revision

        return await self._change(save)

    # -- runs

    async def begin_run(self, run: RunRecord, defaults: ThreadConfig) -> Begun:
        """Begin a run: finish those on its thread that were killed, make the thread if need be, and read it."""
        try:
            run = replace(run, owner=self._owners.claim(), status="running")
        except OSError as error:
            raise StoreError(f"{self.name} can't be written: {error.strerror or error}") from error
        self._active[run.id] = run

        def begin(db: sqlite3.Connection) -> Begun:
            killed = self._finish_killed(db, run.user_id, run.thread_id) if run.thread_id is not None else []
            thread = None
            if run.thread_id is not None:
                rows.add_thread(db, run.user_id, run.thread_id, defaults)
                thread = rows.thread_record(db, run.user_id, run.thread_id)
                thread = _with_closed_tail(db, run, thread)
            db.execute(
                "INSERT OR REPLACE INTO runs (id, status, entry, thread, user, started, owner, turn)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    run.id,
                    run.status,
                    run.entry,
                    run.thread_id,
                    run.user_id,
                    run.started,
                    run.owner,
                    thread and thread.turn,
                ),
            )
            user = db.execute("SELECT state FROM users WHERE id = ?", (run.user_id,)).fetchone()
            return Begun(
                thread,
                rows.history(db, thread.head, limit=thread.config.history_limit) if thread is not None else [],
                json.loads(user[0]) if user is not None else {},
                user[0] if user is not None else None,
                killed,
            )

        try:
            return await self._change(begin)
        except BaseException:
            self._active.pop(run.id, None)
            raise

    async def write(self, batch: Batch) -> None:
        """Write what a run has done since."""
        run = self._active.get(batch.run_id)
        if run is not None:
            await self._change(lambda db: rows.write_batch(db, run, batch))

    async def finish_run(self, ending: Ending) -> None:
        """End a run; raises `ThreadConflict` when another run has continued the thread."""
        run = self._active.get(ending.batch.run_id)
        if run is None:
            return
        clash = await self._change(lambda db: _finish(db, run, ending))
        if clash is None:
            self._active.pop(run.id, None)
        else:
            raise clash

    async def recover(self) -> list[str]:
        """Finish every run whose process is gone; their ids."""
        return await self._change(lambda db: self._finish_killed(db, None, None))

    async def runs(self, *, thread_id: str | None = None, limit: int | None = None) -> list[RunRecord]:
        """Runs, the latest first."""
        return await self._do(lambda db: rows.run_records(db, thread_id=thread_id, limit=limit))

    async def run(self, run_id: str) -> RunRecord | None:
        """One run, by its id or the only beginning of one."""
        found = await self._do(lambda db: rows.run_records(db, prefix=run_id, limit=2))
        return found[0] if len(found) == 1 else next((run for run in found if run.id == run_id), None)

    async def observations(self, filter: Filter, *, limit: int | None = None) -> list[Observation]:
        """Entries of the journal in the order they were written; with a limit, the latest ones."""
        return await self._do(lambda db: rows.observations(db, filter, limit))

    async def add_observation(self, observation: Observation) -> None:
        """Add an entry of an application's own, with an id of its own in the place of a run's."""
        run = RunRecord(observation.run_id, "", "", observation.thread_id, observation.user_id, observation.time)
        text = json.dumps(observation.data, ensure_ascii=False)
        row = EventRow(observation.seq, observation.time, observation.type, text)
        await self._change(lambda db: rows.insert_events(db, run, [row]))

    async def aclose(self) -> None:
        """Close the file, unless runs go on; it opens again when it is used. A store in memory stays as it is."""
        if self.path is not None and not self._active:
            self._worker.close()
            self._owners.release()

    # -- transactions

    async def _do(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Read: what is read is one moment's."""
        return await self._worker.run(lambda db: _transaction(db, "BEGIN", self.name, job))

    async def _change(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Write, all or nothing."""
        return await self._worker.run(lambda db: _transaction(db, "BEGIN IMMEDIATE", self.name, job))

    def _finish_killed(self, db: sqlite3.Connection, user: str | None, thread_id: str | None) -> list[str]:
        finished: list[str] = []
        alive: dict[str, bool] = {}
        for run in rows.open_runs(db, user, thread_id):
            if run.id in self._active:
                continue
            if run.owner not in alive:
                alive[run.owner] = run.owner != self._owners.own and self._owners.alive(run.owner)
            if not alive[run.owner]:
                recovery.finish_killed(db, run)
                finished.append(run.id)
        return finished


def conflict(thread_id: str) -> ThreadConflict:
    """What a writer gets who comes second."""
    return ThreadConflict(
        f"thread {thread_id!r} was continued or changed by somebody else meanwhile",
        hint="Run again to continue from the thread as it is now; what this run did is kept as a branch of it.",
    )


def _with_closed_tail(db: sqlite3.Connection, run: RunRecord, thread: ThreadRecord | None) -> ThreadRecord | None:
    """The thread a run continues; one that was taken back to open tool calls gets their results first."""
    if thread is None:
        return None
    head = recovery.close_tail(db, run, thread.head)
    if head == thread.head:
        return thread
    key = (thread.user_id or "", thread.id)
    db.execute(
        "UPDATE threads SET head = ?, revision = ?, turn = ? WHERE user = ? AND id = ?",
        (head, rows.new_token(), rows.new_token(), *key),
    )
    return rows.thread_record(db, thread.user_id, thread.id)


def _finish(db: sqlite3.Connection, run: RunRecord, ending: Ending) -> ThreadConflict | None:
    """End a run in one transaction; what stands against it, if anything does."""
    clash: ThreadConflict | None = None
    user_state = ending.user_state
    if ending.turn is not None and run.thread_id is not None:
        row = db.execute(
            "SELECT turn FROM threads WHERE user = ? AND id = ?", (run.user_id or "", run.thread_id)
        ).fetchone()
        clash = conflict(run.thread_id) if row is None or row[0] != ending.turn else None
    if user_state is not None:
        row = db.execute("SELECT state FROM users WHERE id = ?", (run.user_id,)).fetchone()
        there = row[0] if row is not None else None
        if there != ending.user_text:
            user_state = _merged(ending.user_text, there, user_state)
            if user_state is None and clash is None:
                clash = ThreadConflict(f"the state of user {run.user_id!r} was changed meanwhile", hint="Run again.")
    if clash is not None:
        _put_aside(db, run, ending)
        return clash
    rows.write_batch(db, run, ending.batch)
    if ending.turn is not None and run.thread_id is not None:
        db.execute(
            "UPDATE threads SET head = coalesce(?, head), state = coalesce(?, state), toolkits = coalesce(?, toolkits),"
            " carried = coalesce(?, carried), revision = ?, turn = ?, updated = ? WHERE user = ? AND id = ?",
            (
                ending.head,
                ending.state,
                ending.toolkits,
                ending.carried,
                rows.new_token(),
                rows.new_token(),
                ending.time,
                run.user_id or "",
                run.thread_id,
            ),
        )
    if user_state is not None:
        db.execute("INSERT OR REPLACE INTO users VALUES (?, ?, ?)", (run.user_id, user_state, rows.new_token()))
    db.execute(
        f"UPDATE runs SET status = ?, finished = ?, {rows.NO_DRAFT} WHERE id = ?",
        (ending.status, ending.time, run.id),
    )
    return None


def _put_aside(db: sqlite3.Connection, run: RunRecord, ending: Ending) -> None:
    """Keep what a run did beside the thread's history, or nothing of it where it will be done again."""
    if ending.keep:
        rows.write_batch(db, run, replace(ending.batch, events=ending.batch.events[:-1]))
        own = db.execute("SELECT 1 FROM messages WHERE id = ? AND run = ?", (ending.head, run.id)).fetchone()
        if own is not None and ending.head is not None:
            recovery.add_branch(db, run, ending.head)
    else:
        db.execute("DELETE FROM messages WHERE run = ?", (run.id,))
    db.execute(f"UPDATE runs SET turn = NULL, {rows.NO_DRAFT} WHERE id = ?", (run.id,))


def _merged(before: str | None, there: str | None, now: str) -> str | None:
    """A user's state with both changes, where they are of different keys; else None."""
    read: list[Any] = [json.loads(text) if text else {} for text in (before, there, now)]
    if not all(isinstance(each, dict) for each in read):
        return None
    base, theirs, ours = cast("list[dict[str, Any]]", read)
    missing = object()
    merged: dict[str, Any] = dict(theirs)
    for key in {*base, *ours}:
        was, is_now, other = base.get(key, missing), ours.get(key, missing), theirs.get(key, missing)
        if was == is_now or is_now == other:
            continue
        if was != other:
            return None
        if is_now is missing:
            merged.pop(key, None)
        else:
            merged[key] = is_now
    return json.dumps(merged, ensure_ascii=False)


def _connect(path: Path | None, name: str) -> sqlite3.Connection:
    """Open the file, bring it to the newest schema, and make commits durable."""
    if path is not None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.close(descriptor)
    db = sqlite3.connect(
        str(path) if path is not None else ":memory:", timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:  # another process is just making the file
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)
        db.execute("PRAGMA synchronous = FULL")
        migrate(db, name)
    except BaseException:
        db.close()
        raise
    return db


def _transaction(db: sqlite3.Connection, begin: str, name: str, job: Callable[[sqlite3.Connection], T]) -> T:
    with _told(name):
        db.execute(begin)
        try:
            result = job(db)
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            raise
        return result


@contextmanager
def _told(name: str) -> Generator[None]:
    """Say in one sentence what SQLite's errors mean here."""
    try:
        yield
    except LlmDoError:
        raise
    except PermissionError as error:
        raise StoreError(f"{name} can't be written: {error.strerror}", hint="Is the folder read-only?") from error
    except OSError as error:
        raise StoreError(f"{name} can't be opened: {error.strerror or error}") from error
    except sqlite3.Error as error:
        text = str(error)
        if "not a database" in text or "malformed" in text:
            hint = "Move the file away to begin a new one; `sqlite3 FILE .recover` may save what is in it."
            raise StoreError(f"{name} is damaged: {text}", hint=hint) from error
        if "full" in text or "disk I/O" in text:
            hint = "Free some space; what was saved before is still there."
            raise StoreError(f"{name} can't be written, the disk may be full: {text}", hint=hint) from error
        if "readonly" in text:
            raise StoreError(f"{name} can't be written: it is read-only") from error
        if "locked" in text:
            raise StoreError(
                f"{name} is used by another process for more than {PATIENCE:g} s", hint="Try again."
            ) from error
        raise StoreError(f"{name} can't be used: {text}") from error


def _close(worker: Worker, owners: Owners) -> None:
    worker.close()
    owners.release()
