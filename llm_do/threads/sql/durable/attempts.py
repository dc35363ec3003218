"""Durable runs in the store: what they begin with, and how they begin again, which only a run that no process has does.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llm_do.errors import UsageError
from llm_do.runtime.record.store.opened_runs import OpenedRun, ResumedRun
from llm_do.runtime.record.store.store_writes import StepRow
from llm_do.runtime.record.stored_records import RunFilter, RunRecord, ThreadRecord
from llm_do.text.json_data import json_text
from llm_do.threads.sql import rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import question_rows
from llm_do.threads.sql.durable.step_rows import MEMORY_CHANGE
from llm_do.threads.sql.runs import run_rows

__all__ = ["WAITING", "begin_attempt", "refuse_busy_thread", "resume", "stop", "waiting_run"]

WAITING = ("stopped", "suspended")
"""The states of a durable run that no process has."""

_STEPS = "SELECT key, kind, done, data FROM steps WHERE run = ? AND kind <> ?"


def begin_attempt(db: Database, run: RunRecord, beginning: str, opened: OpenedRun) -> None:
    """Keep what a durable run begins with: replay never reads the thread as it is later."""
    thread = opened.thread
    start = {"user_state": opened.user_state, "user_text": opened.user_text, "thread": None}
    if thread is not None:
        start["thread"] = {
            "head": thread.head,
            "state": thread.state,
            "toolkits": dict(thread.toolkits),
            "carried": dict(thread.carried),
            "turn": thread.turn,
        }
    db.execute(
        "UPDATE runs SET attempt = 1, beginning = ?, start = ? WHERE id = ?",
        (beginning, json_text(start), run.id),
    )


def refuse_busy_thread(db: Database, run: RunRecord) -> None:
    """Refuse a run on a thread that another one waits to continue: its work would become a branch."""
    row = db.execute(
        f"SELECT id FROM runs WHERE thread = ? AND {run_rows.UNENDED} AND coalesce(user, '') = ?"
        " AND status IN (?, ?) AND id <> ?",
        (run.thread_id, run.user_id or "", *WAITING, run.id),
    ).fetchone()
    if row is not None:
        raise UsageError(
            f"run {row[0]} on thread {run.thread_id!r} waits to be resumed",
            hint=f"Continue it with `llm-do resume {row[0]}`, or end it with `llm-do runs drop {row[0]}`.",
        )


def waiting_run(db: Database, run_id: str) -> RunRecord:
    """The durable run of an id, which no process has; raises `UsageError` if there is none."""
    found = [each for each in run_rows.run_records(db, RunFilter(), prefix=run_id, limit=2) if each.id == run_id]
    if not found:
        raise UsageError(f"there is no run {run_id!r}", hint="`llm-do runs list` shows the runs that there are.")
    run = found[0]
    if run.attempt and run.status in WAITING:
        return run
    if not run.attempt:
        reason = "it wasn't begun with `--durable`"
    elif run.status == "running":
        reason = "another process runs it"
    else:
        reason = f"it has ended ({run.status})"
    raise UsageError(f"run {run_id} can't be resumed: {reason}", hint=f"See it with `llm-do runs show {run_id}`.")


def resume(db: Database, run: RunRecord) -> ResumedRun:
    """Begin another attempt at a run that no process has; `run.owner` is the process that has it now."""
    row = db.execute("SELECT attempt, beginning, start FROM runs WHERE id = ?", (run.id,)).fetchone()
    db.execute("DELETE FROM messages WHERE run = ?", (run.id,))
    start: Any = json.loads(row[2])
    thread = _thread_at_start(db, run, start["thread"])
    run = replace(run, attempt=row[0] + 1, status="running")
    db.execute(
        f"UPDATE runs SET attempt = ?, status = 'running', owner = ?, turn = ?, {rows.NO_DRAFT} WHERE id = ?",
        (run.attempt, run.owner, thread.turn if thread is not None else None, run.id),
    )
    history = rows.read_turns(db, thread.head, thread.config.history_limit) if thread is not None else []
    last = db.execute("SELECT seq, time FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1", (run.id,)).fetchone()
    return ResumedRun(
        run,
        row[1],
        OpenedRun(thread, history, start["user_state"], start["user_text"]),
        tuple(
            StepRow(key, kind, bool(done), data)
            for key, kind, done, data in db.execute(_STEPS, (run.id, MEMORY_CHANGE))
        ),
        *_emitted(db, run),
        last[0] + 1 if last is not None else 0,
        last[1] if last is not None else run.started,
        question_rows.of_run(db, run.id),
    )


def stop(db: Database, run: RunRecord, status: str) -> None:
    """Mark a run as one that no process has; what becomes of its calls that are running is a question to a person."""
    question_rows.ask_about_in_flight(db, run.id)
    db.execute("UPDATE runs SET status = ?, owner = '' WHERE id = ?", (status, run.id))


def _thread_at_start(db: Database, run: RunRecord, start: Any) -> ThreadRecord | None:
    """A run's thread as it was when the run began."""
    if start is None or run.thread_id is None:
        return None
    thread = rows.thread_record(db, run.user_id, run.thread_id)
    if thread is None:
        raise UsageError(
            f"run {run.id} can't be resumed: its thread {run.thread_id!r} was deleted",
            hint=f"End it with `llm-do runs drop {run.id}`.",
        )
    return replace(thread, **start)


def _emitted(db: Database, run: RunRecord) -> tuple[dict[tuple[str, str, str], int], tuple[tuple[str, str], ...]]:
    """How many events of each identity a run's journal has, and its warnings."""
    emitted: dict[tuple[str, str, str], int] = {}
    warnings: list[tuple[str, str]] = []
    found: Sequence[tuple[str, str]] = db.execute(
        "SELECT type, data FROM events WHERE run = ? ORDER BY seq", (run.id,)
    ).fetchall()
    for kind, text in found:
        data: Any = json.loads(text)
        identity = (str(data.get("call_id")), kind, str(data.get("tool_call_id") or ""))
        emitted[identity] = emitted.get(identity, 0) + 1
        if kind == "warning":
            warnings.append((data["message"], data["path"]))
    return emitted, tuple(warnings)
