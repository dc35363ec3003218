"""Finishes killed runs: their work goes into the thread's history, with a result for every tool call."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Literal

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart

from llm_do.runtime.record.histories import close_history
from llm_do.runtime.record.store.store_writes import EventRow, MessageRow
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.text.generated_ids import new_id
from llm_do.text.json_data import json_text
from llm_do.text.output_text import output_text
from llm_do.threads.sql import rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable import attempts, batch_rows
from llm_do.threads.store.codec import message_text

__all__ = ["close_tail", "finish_killed"]

INTERRUPTED = "the run was interrupted before this call ended; it may or may not have had an effect"
"""The result that a model sees for a call that was in flight when its process was killed."""

_KILLED = "the process was killed, or could not save the end of the run"

_OUTCOMES: dict[str, Literal["success", "failed", "denied"]] = {"success": "success", "denied": "denied"}


def finish_killed(db: Database, run: RunRecord) -> None:
    """Finish one run whose process is gone, inside the caller's transaction.

    Its messages become the thread's history unless another run has continued the thread; then they become a branch.
    A durable run is only marked as stopped, since it can be resumed; one that was claimed and hasn't begun is queued.
    """
    if run.batch is not None and not run.attempt:
        batch_rows.give_back(db, [run.id], run.owner)
        return
    if run.attempt and run.status == "running":
        attempts.stop(db, run, "stopped")
        return
    turn, tip, state, user_state, toolkits = db.execute(
        "SELECT turn, tip, state, user_state, toolkits FROM runs WHERE id = ?", (run.id,)
    ).fetchone()
    last = db.execute("SELECT max(time) FROM events WHERE run = ?", (run.id,)).fetchone()[0]
    now = max(time.time(), run.started, last or 0.0)  # the clock may have been set back
    record = rows.thread_record(db, run.user_id, run.thread_id) if run.thread_id is not None else None
    if record is not None:
        head = close_tail(db, run, tip)
        if record.turn == turn:
            db.execute(
                "UPDATE threads SET head = coalesce(?, head), state = coalesce(?, state),"
                " toolkits = coalesce(?, toolkits), revision = ?, turn = ?,"
                f" updated = {rows.not_before('created')} WHERE user = ? AND id = ?",
                (head, state, toolkits, new_id(), new_id(), now, now, record.user_id or "", record.id),
            )
        elif head is not None:
            rows.add_branch(db, run, head)
    if user_state is not None and run.user_id is not None and (record is None or record.turn == turn):
        rows.save_user(db, run.user_id, user_state, new_id())
    _close_journal(db, run, now)
    db.execute(
        f"UPDATE runs SET status = 'interrupted', finished = ?, {rows.NO_DRAFT} WHERE id = ?",
        (now, run.id),
    )
    if run.attempt:
        batch_rows.charge(db, run.id)


def close_tail(db: Database, run: RunRecord, tip: str | None) -> str | None:
    """Add results for the calls that a history leaves open, from the run's journal where it has them."""
    if tip is None:
        return None
    last = rows.read_history(db, tip, limit=1)
    if not last or not isinstance(last[0].message, ModelResponse) or not last[0].message.tool_calls:
        return tip
    results = _results(db, run, last[0].time)
    parts = [
        results.get(call.tool_call_id)
        or ToolReturnPart(call.tool_name, INTERRUPTED, tool_call_id=call.tool_call_id, outcome="interrupted")
        for call in last[0].message.tool_calls
    ]
    answered: list[ModelMessage] = close_history([last[0].message, ModelRequest(parts)])
    depth = db.execute("SELECT depth FROM messages WHERE id = ?", (tip,)).fetchone()[0]
    row = MessageRow(new_id(), tip, depth + 1, max(time.time(), last[0].time), message_text(answered[1]))
    rows.insert_messages(db, run.id, [row])
    return row.id


def _results(db: Database, run: RunRecord, since: float) -> dict[str, ToolReturnPart]:
    """Read from the journal the results of the calls in the entry agent's last response.

    Results of earlier responses don't count: some providers reuse call ids in every response.
    """
    found: dict[str, ToolReturnPart] = {}
    for (text,) in db.execute(
        "SELECT data FROM events WHERE run = ? AND type = 'tool_result' AND time >= ? ORDER BY seq", (run.id, since)
    ):
        data: Mapping[str, Any] = json.loads(text)
        if data.get("depth") == 1 and data.get("status") != "cancelled":
            found[data["tool_call_id"]] = ToolReturnPart(
                data["tool_name"],
                output_text(data.get("result")),
                tool_call_id=data["tool_call_id"],
                outcome=_OUTCOMES.get(data["status"], "failed"),
            )
    return found


def _close_journal(db: Database, run: RunRecord, now: float) -> None:
    """Add a `run_failed` event unless the journal already ends the run."""
    row = db.execute("SELECT seq, data, type FROM events WHERE run = ? ORDER BY seq DESC LIMIT 1", (run.id,)).fetchone()
    if row is not None and row[2] in ("run_finished", "run_failed"):
        return
    first = db.execute("SELECT data FROM events WHERE run = ? ORDER BY seq LIMIT 1", (run.id,)).fetchone()
    base: dict[str, Any] = json.loads(first[0]) if first is not None else {"run_id": run.id, "depth": 0}
    kept = ("run_id", "call_id", "parent_call_id", "agent_name", "path", "depth")
    seq = 0 if row is None else row[0] + 1
    error = {"type": "RunInterruptedError", "message": _KILLED, "agent_path": base.get("path")}
    data = {"type": "run_failed", "seq": seq, "time": now, **{key: base[key] for key in kept if key in base}}
    data |= {"status": "interrupted", "error": error}
    rows.insert_events(db, run, [EventRow(seq, now, "run_failed", json_text(data))])
