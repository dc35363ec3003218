"""Writes the batches of a run: what it has done since the last one, in the transaction of the caller."""

from __future__ import annotations

from llm_do.runtime.record.store.store_writes import Batch
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


def write_batch_of(db: Database, run: RunRecord, batch: Batch, stored: StoredRun) -> None:
    """Write what a run has done since the last batch, given what is known of it."""
    if batch.attempt:
        refuse_other_attempt(stored, run.id, batch.attempt)
        write_steps(db, run, batch)
        write_questions(db, batch.questions)
    rows.insert_events(db, run, batch.events)
    if batch.dropped:
        db.executemany("DELETE FROM messages WHERE id = ?", [(each,) for each in batch.dropped])
    if batch.messages:
        rows.insert_messages(db, run.id, batch.messages)
    draft = batch.draft
    if draft is not None:
        db.execute(
            "UPDATE runs SET tip = ?, state = coalesce(?, state), user_state = coalesce(?, user_state),"
            " toolkits = coalesce(?, toolkits) WHERE id = ?",
            (draft.tip, draft.state, draft.user_state, draft.toolkits, run.id),
        )
    exchange_rows.write(db, batch, stored.models)
