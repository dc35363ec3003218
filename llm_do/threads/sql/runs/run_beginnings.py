"""Begins a run in the store: its row, its thread, and what it starts from. A run's id is used once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llm_do.errors import UsageError
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.record.store.opened_runs import OpenedRun
from llm_do.runtime.record.store.store_writes import ProjectRow
from llm_do.runtime.record.stored_records import RunRecord, ThreadRecord
from llm_do.threads.sql import rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import attempts, batch_rows, project_rows
from llm_do.threads.store.tokens import new_token

__all__ = ["begin", "run_exists"]


def run_exists(run_id: str, status: str) -> UsageError:
    """Create the error for a run that begins with the id of another one."""
    state = "is still running" if status == "running" else f"has already ended ({status})"
    return UsageError(f"run {run_id!r} {state}", hint="A run's id is used once: choose another one.")


def begin(
    db: Database,
    run: RunRecord,
    defaults: ThreadConfig,
    killed: Sequence[str],
    *,
    again: bool,
    beginning: str | None = None,
    project: ProjectRow | None = None,
) -> OpenedRun:
    """Begin a run; `again` after it has lost a conflict; with what it begins with if it is durable.

    The run of an input that this process has claimed is in the store already.
    """
    stored = db.execute("SELECT status FROM runs WHERE id = ?", (run.id,)).fetchone()
    if stored is not None and not again and not batch_rows.is_claimed(db, run.id, run.owner):
        raise run_exists(run.id, stored[0])
    thread = None
    if run.thread_id is not None:
        attempts.refuse_busy_thread(db, run)
        rows.add_thread(db, run.user_id, run.thread_id, defaults)
        thread = _with_closed_tail(db, run, rows.thread_record(db, run.user_id, run.thread_id))
    db.execute(
        "INSERT INTO runs (id, status, entry, thread, user, started, owner, turn) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, turn = excluded.turn,"
        " started = CASE WHEN runs.batch IS NULL THEN runs.started ELSE excluded.started END",
        (
            run.id,
            run.status,
            run.entry,
            run.thread_id,
            run.user_id,
            run.started,
            run.owner,
            thread.turn if thread is not None else None,
        ),
    )
    user = db.execute("SELECT state FROM users WHERE id = ?", (run.user_id,)).fetchone()
    opened = OpenedRun(
        thread,
        rows.read_turns(db, thread.head, thread.config.history_limit) if thread is not None else [],
        json.loads(user[0]) if user is not None else {},
        user[0] if user is not None else None,
        killed,
    )
    if beginning is not None:
        attempts.begin_attempt(db, run, beginning, opened)
    if project is not None:
        project_rows.add_project(db, run.id, project)
    return opened


def _with_closed_tail(db: Database, run: RunRecord, thread: ThreadRecord | None) -> ThreadRecord | None:
    """Return the thread with results for any open tool calls, which a rewound thread may end with."""
    from llm_do.threads.sql.runs import recovery  # it knows messages, which are heavy to import

    if thread is None:
        return None
    head = recovery.close_tail(db, run, thread.head)
    if head == thread.head:
        return thread
    key = (thread.user_id or "", thread.id)
    db.execute(
        "UPDATE threads SET head = ?, revision = ?, turn = ? WHERE user = ? AND id = ?",
        (head, new_token(), new_token(), *key),
    )
    return rows.thread_record(db, thread.user_id, thread.id)
