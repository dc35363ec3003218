"""Begins a run in the store: its row, its thread, and what it starts from. A run's id is used once."""

from __future__ import annotations

import json
from collections.abc import Sequence

from llm_do.errors import UsageError
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.store.opened_runs import OpenedRun
from llm_do.runtime.record.store.store_writes import ProjectRow
from llm_do.runtime.record.stored_records import RunRecord, StoredMessage, ThreadRecord
from llm_do.text.generated_ids import new_id
from llm_do.threads.sql import rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import attempts, batch_rows, project_rows

__all__ = ["begin", "run_exists"]

_NOTHING_USED = json.dumps(Usage().to_dict())


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
    stored: str | None,
    again: bool,
    alone: bool,
    beginning: str | None = None,
    project: ProjectRow | None = None,
) -> OpenedRun:
    """Begin a run, whose row is in the store already if this process has claimed its input.

    Args:
        db: The database.
        run: The run.
        defaults: The settings of its thread, if that is new.
        killed: The runs on its thread that were finished before it.
        stored: How far the store says it is; None if it has no such run.
        again: Whether it has lost a conflict.
        alone: Whether no other run on its thread is open.
        beginning: What it begins with if it is durable.
        project: The files of its project if it is durable.
    """
    if stored is not None and not again and not batch_rows.is_claimed(db, run.id, run.owner):
        raise run_exists(run.id, stored)
    thread, history = None, list[StoredMessage]()
    if run.thread_id is not None:
        if not alone:
            attempts.refuse_busy_thread(db, run)
        thread, history = _opened(db, run, rows.opened_thread(db, run.user_id, run.thread_id, defaults))
    db.execute(
        "INSERT INTO runs (id, status, entry, thread, user, started, owner, turn, usage, models, tokens)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '[]', 0)"
        " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, turn = excluded.turn, usage = excluded.usage,"
        " models = coalesce(runs.models, excluded.models), tokens = excluded.tokens, cost = excluded.cost,"
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
            _NOTHING_USED,
        ),
    )
    user = None
    if run.user_id is not None:
        user = db.execute("SELECT state FROM users WHERE id = ?", (run.user_id,)).fetchone()
    opened = OpenedRun(
        thread,
        history,
        json.loads(user[0]) if user is not None else {},
        user[0] if user is not None else None,
        killed,
    )
    if beginning is not None:
        attempts.begin_attempt(db, run, beginning, opened)
    if project is not None:
        project_rows.add_project(db, run.id, project)
    return opened


def _opened(db: Database, run: RunRecord, thread: ThreadRecord) -> tuple[ThreadRecord, list[StoredMessage]]:
    """Return the thread and its history, with results for any open tool calls, which a rewound thread may end with."""
    history = rows.read_turns(db, thread.head, thread.config.history_limit)
    last = history[-1] if history else next(iter(rows.read_history(db, thread.head, limit=1)), None)
    if last is None or last.message.kind != "response" or not last.message.tool_calls:
        return thread, history

    from llm_do.threads.sql.runs import recovery  # it knows messages, which are heavy to import

    head = recovery.close_tail(db, run, thread.head)
    key = (thread.user_id or "", thread.id)
    db.execute(
        "UPDATE threads SET head = ?, revision = ?, turn = ? WHERE user = ? AND id = ?",
        (head, new_id(), new_id(), *key),
    )
    closed = rows.thread_record(db, thread.user_id, thread.id)
    assert closed is not None
    return closed, rows.read_turns(db, closed.head, closed.config.history_limit)
