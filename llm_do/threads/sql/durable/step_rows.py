"""The steps of durable runs, and the fence: a batch of an attempt is refused unless the run is at that attempt."""

from __future__ import annotations

from llm_do.errors import RunTakenError
from llm_do.runtime.record.store.store_writes import Batch
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql.database import Database

__all__ = ["MEMORY_CHANGE", "check_attempt", "write_steps"]

MEMORY_CHANGE = "memory"
"""The kind of rows that say what a step has changed of memories: they are no steps of their own."""


def check_attempt(db: Database, run_id: str, attempt: int) -> None:
    """Raise `RunTakenError` if an attempt is no longer the run's."""
    row = db.execute("SELECT attempt, status FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None or tuple(row) != (attempt, "running"):
        raise RunTakenError(
            f"another process has taken over run {run_id}" if row is not None else f"run {run_id} was deleted",
            hint=f"See it with `llm-do runs show {run_id}`.",
        )


def write_steps(db: Database, run: RunRecord, batch: Batch) -> None:
    """Write what steps have come to."""
    if batch.steps:
        db.executemany(
            "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, key) DO UPDATE SET"
            " done = excluded.done, attempt = excluded.attempt, data = excluded.data",
            [(run.id, each.key, each.kind, int(each.done), batch.attempt, each.data) for each in batch.steps],
        )
