"""The steps of durable runs."""

from __future__ import annotations

from llm_do.runtime.record.store.store_writes import Batch
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql.database import Database

__all__ = ["MEMORY_CHANGE", "write_steps"]

MEMORY_CHANGE = "memory"
"""The kind of rows that say what a step has changed of memories: they are no steps of their own."""


def write_steps(db: Database, run: RunRecord, batch: Batch) -> None:
    """Write what steps have come to."""
    if batch.steps:
        db.executemany(
            "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run, key) DO UPDATE SET"
            " done = excluded.done, attempt = excluded.attempt, data = excluded.data",
            [(run.id, each.key, each.kind, int(each.done), batch.attempt, each.data) for each in batch.steps],
        )
