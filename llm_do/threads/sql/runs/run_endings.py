"""Ends a run in the store: saves its thread, its user's state and its journal in one transaction."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any, cast

from llm_do.errors import ThreadConflict
from llm_do.runtime.record.store.store_writes import RunEnd
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.text.generated_ids import new_id
from llm_do.text.json_data import json_text
from llm_do.threads.sql import exchange_rows, rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import batch_rows
from llm_do.threads.sql.runs.run_batches import write_batch, write_batch_of
from llm_do.threads.sql.runs.run_owners import StoredRun, own_run, refuse_other_attempt
from llm_do.threads.sql.store_errors import thread_conflict
from llm_do.threads.store.codec import same_json

__all__ = ["finish"]


def finish(db: Database, run: RunRecord, ending: RunEnd) -> ThreadConflict | None:
    """End a run in one transaction, and return the conflict that prevents it, if any."""
    known = own_run(db, run)
    if ending.batch.attempt:
        refuse_other_attempt(known, run.id, ending.batch.attempt)
    user_state, clash = _user_state(db, run, ending)
    clash = _thread_conflict(run, ending, known) or clash
    if clash is not None:
        _keep_as_branch(db, run, ending)
        return clash
    if known is not None:
        ended = {"status": ending.status, "finished": max(ending.time, run.started), "result": ending.result}
        write_batch_of(db, run, ending.batch, known, {**ended, **dict.fromkeys(rows.DRAFT)})
    if ending.turn is not None and run.thread_id is not None:
        db.execute(
            "UPDATE threads SET head = coalesce(?, head), state = coalesce(?, state), toolkits = coalesce(?, toolkits),"
            " carried = coalesce(?, carried), revision = ?, turn = ?,"
            f" updated = {rows.not_before('created')} WHERE user = ? AND id = ?",
            (
                ending.head,
                ending.state,
                ending.toolkits,
                ending.carried,
                new_id(),
                new_id(),
                ending.time,
                ending.time,
                run.user_id or "",
                run.thread_id,
            ),
        )
    if user_state is not None:
        rows.save_user(db, run.user_id, user_state, new_id())
    if ending.batch.attempt:
        batch_rows.charge(db, run.id)
    if ending.limits is not None:
        exchange_rows.drop_beyond(db, ending.limits, ending.time)
    return None


def _thread_conflict(run: RunRecord, ending: RunEnd, known: StoredRun | None) -> ThreadConflict | None:
    """The conflict with what has happened to the run's thread meanwhile."""
    if ending.turn is None or run.thread_id is None:
        return None
    if known is None or known.turn is None:  # a thread takes its runs along
        return ThreadConflict(f"thread {run.thread_id!r} was deleted meanwhile", hint="Run again to start it afresh.")
    return thread_conflict(run.thread_id) if known.turn != ending.turn else None


def _user_state(db: Database, run: RunRecord, ending: RunEnd) -> tuple[str | None, ThreadConflict | None]:
    """The state of the run's user with what was changed meanwhile; or the conflict, if both changed the same."""
    if ending.user_state is None:
        return None, None
    row = db.execute("SELECT state FROM users WHERE id = ?", (run.user_id,)).fetchone()
    stored = row[0] if row is not None else None
    if stored == ending.user_text:
        return ending.user_state, None
    merged = _merge(ending.user_text, stored, ending.user_state)
    if merged is None:
        return None, ThreadConflict(f"the state of user {run.user_id!r} was changed meanwhile", hint="Run again.")
    return merged, None


def _keep_as_branch(db: Database, run: RunRecord, ending: RunEnd) -> None:
    """Keep a run's messages as a branch, or only its journal if the run will be repeated."""
    if ending.keep:
        write_batch(db, run, replace(ending.batch, events=ending.batch.events[:-1]))
        own = db.execute("SELECT 1 FROM messages WHERE id = ? AND run = ?", (ending.head, run.id)).fetchone()
        if own is not None and ending.head is not None:
            rows.add_branch(db, run, ending.head)
    else:
        write_batch(db, run, replace(ending.batch, events=ending.batch.events[:-1], messages=(), dropped=()))
        db.execute("DELETE FROM messages WHERE run = ?", (run.id,))
        db.execute("UPDATE runs SET claimed = coalesce(claimed, ?) WHERE id = ?", (time.time(), run.id))
    db.execute(f"UPDATE runs SET turn = NULL, {rows.NO_DRAFT} WHERE id = ?", (run.id,))


def _merge(before: str | None, stored: str | None, now: str) -> str | None:
    """Merge two changes of a user's state if they affect different keys; else return None."""
    states: list[Any] = [json.loads(text) if text else {} for text in (before, stored, now)]
    if not all(isinstance(each, dict) for each in states):
        return None
    base, theirs, ours = cast("list[dict[str, Any]]", states)
    merged: dict[str, Any] = dict(theirs)
    for key in {*base, *ours}:
        # Lists of one value or none, so that no value has to mean "missing".
        was, is_now, other = ([each[key]] if key in each else [] for each in (base, ours, theirs))
        if same_json(was, is_now) or same_json(is_now, other):
            continue
        if not same_json(was, other):
            return None
        if is_now:
            merged[key] = is_now[0]
        else:
            merged.pop(key, None)
    return json_text(merged)
