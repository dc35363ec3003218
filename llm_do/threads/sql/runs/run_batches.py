"""Writes the batches of a run: what it has done since the last one, in the transaction of the caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llm_do.runtime.record.store.store_writes import Batch, PendingWrites, RunTotals
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql import exchange_rows, rows
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable.question_rows import write_questions
from llm_do.threads.sql.durable.step_rows import write_steps
from llm_do.threads.sql.runs.run_owners import StoredRun, own_run, refuse_other_attempt

__all__ = ["write_batch", "write_batch_of"]


def write_batch(db: Database, run: RunRecord, batch: Batch) -> None:
    """Write what a run has done since the last batch, unless the run was deleted along with its thread."""
    stored = own_run(db, run)
    if stored is not None:
        write_batch_of(db, run, batch, stored)


def write_batch_of(
    db: Database, run: RunRecord, batch: Batch, stored: StoredRun, ended: Mapping[str, Any] | None = None
) -> None:
    """Write what a run has done since the last batch, given what is known of it.

    Args:
        db: The database.
        run: The run.
        batch: What it has done.
        stored: What is known of it.
        ended: The columns of its row that its end sets; None if it goes on.
    """
    if batch.attempt:
        refuse_other_attempt(stored, run.id, batch.attempt)
        write_steps(db, run, batch)
        if batch.questions:
            write_questions(db, batch.questions)
    rows.insert_events(db, run, batch.events)
    if batch.dropped:
        db.executemany("DELETE FROM messages WHERE id = ?", [(each,) for each in batch.dropped])
    if batch.messages:
        rows.insert_messages(db, run.id, batch.messages)
    exchange_rows.write(db, batch)
    changes = {**_pending(batch.draft), **_totals(batch.totals, stored.models), **(ended or {})}
    columns = [f"{name} = ?" for name in changes]
    values = [*changes.values()]
    if batch.exchanges:
        columns.append("exchanges = exchanges + ?")
        values.append(len(batch.exchanges))
    if columns:  # the row is written once for all of it
        db.execute(f"UPDATE runs SET {', '.join(columns)} WHERE id = ?", (*values, run.id))


def _pending(draft: PendingWrites | None) -> dict[str, Any]:
    """The columns of what a run has changed in its thread so far."""
    if draft is None:
        return {}
    states = {"state": draft.state, "user_state": draft.user_state, "toolkits": draft.toolkits}
    return {"tip": draft.tip, **{name: text for name, text in states.items() if text is not None}}


def _totals(totals: RunTotals | None, known_models: str | None) -> dict[str, Any]:
    """The columns of what a run has used."""
    if totals is None:
        return {}
    used = totals.usage
    models = dict.fromkeys([*json.loads(known_models or "[]"), *totals.models])  # those of an earlier attempt first
    return {
        "usage": json.dumps(used.to_dict()),
        "models": json.dumps([*models]),
        "tokens": used.total_tokens,
        "cost": used.cost_usd,
    }
