"""Ending a run in the store: its thread, its user's state and its journal in one transaction, or none of them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from typing import Any, cast

from llm_do.errors import ThreadConflict
from llm_do.runtime.record.stored_records import RunRecord, ThreadRecord
from llm_do.runtime.record.thread_store import Batch, RunEnd
from llm_do.threads.sqlite import recovery, rows
from llm_do.threads.store.codec import same_json

__all__ = ["conflict", "finish", "with_closed_tail"]


def conflict(thread_id: str) -> ThreadConflict:
    """What a writer gets who comes second."""
    return ThreadConflict(
        f"thread {thread_id!r} was continued or changed by somebody else meanwhile",
        hint="Run again to continue from the thread as it is now; what this run did is kept as a branch of it.",
    )


def with_closed_tail(db: sqlite3.Connection, run: RunRecord, thread: ThreadRecord | None) -> ThreadRecord | None:
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


def finish(db: sqlite3.Connection, run: RunRecord, ending: RunEnd) -> ThreadConflict | None:
    """End a run in one transaction; what stands against it, if anything does."""
    clash: ThreadConflict | None = None
    user_state = ending.user_state
    if ending.turn is not None and run.thread_id is not None:
        row = db.execute(
            "SELECT turn FROM threads WHERE user = ? AND id = ?", (run.user_id or "", run.thread_id)
        ).fetchone()
        if row is None:
            clash = ThreadConflict(
                f"thread {run.thread_id!r} was deleted meanwhile", hint="Run again to begin it anew."
            )
        elif row[0] != ending.turn:
            clash = conflict(run.thread_id)
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


def _put_aside(db: sqlite3.Connection, run: RunRecord, ending: RunEnd) -> None:
    """Keep what a run did beside the thread's history, or only its journal where it will be done again."""
    if ending.keep:
        rows.write_batch(db, run, replace(ending.batch, events=ending.batch.events[:-1]))
        own = db.execute("SELECT 1 FROM messages WHERE id = ? AND run = ?", (ending.head, run.id)).fetchone()
        if own is not None and ending.head is not None:
            recovery.add_branch(db, run, ending.head)
    else:
        rows.write_batch(db, run, Batch(run.id, ending.batch.events[:-1]))
        db.execute("DELETE FROM messages WHERE run = ?", (run.id,))
    db.execute(f"UPDATE runs SET turn = NULL, {rows.NO_DRAFT} WHERE id = ?", (run.id,))


def _merged(before: str | None, there: str | None, now: str) -> str | None:
    """A user's state with both changes, where they are of different keys; else None."""
    read: list[Any] = [json.loads(text) if text else {} for text in (before, there, now)]
    if not all(isinstance(each, dict) for each in read):
        return None
    base, theirs, ours = cast("list[dict[str, Any]]", read)
    merged: dict[str, Any] = dict(theirs)
    for key in {*base, *ours}:
        # As lists of one value or none, so that no value stands for "not there".
        was, is_now, other = ([each[key]] if key in each else [] for each in (base, ours, theirs))
        if same_json(was, is_now) or same_json(is_now, other):
            continue
        if not same_json(was, other):
            return None
        if is_now:
            merged[key] = is_now[0]
        else:
            merged.pop(key, None)
    return json.dumps(merged, ensure_ascii=False)
