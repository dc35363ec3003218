"""Which process has a run: one that has lost its mark may have been taken for dead, and its runs may be another's.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

from dataclasses import replace

from llm_do.errors import RunTakenError
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql.database import Database, Owners

__all__ = ["owned_again", "refuse_if_interrupted"]


def owned_again(db: Database, run: RunRecord, attempt: int, owners: Owners) -> RunRecord:
    """Return a run with this process's new id, under which it is marked as alive; its old one is lost.

    Raises:
        RunTakenError: It is durable, and so has stopped: it can be resumed anywhere. Or another process has ended it.
    """
    if attempt:
        raise RunTakenError(
            f"the connection that showed that this process is alive was lost, so run {run.id} has stopped",
            hint=f"Continue it with `llm-do resume {run.id}`.",
        )
    kept = replace(run, owner=owners.claim())
    found = db.execute(
        "UPDATE runs SET owner = ? WHERE id = ? AND owner = ? AND status = 'running'", (kept.owner, run.id, run.owner)
    )
    if not found.rowcount:
        refuse_if_interrupted(db, run)
    return kept


def refuse_if_interrupted(db: Database, run: RunRecord) -> bool:
    """Raise `RunTakenError` if another process has ended a run; returns whether it is still in the store."""
    row = db.execute("SELECT status FROM runs WHERE id = ?", (run.id,)).fetchone()
    if row is not None and row[0] == "interrupted":
        raise RunTakenError(
            f"another process has taken this one for dead, and ended run {run.id} as interrupted",
            hint=f"See what was saved with `llm-do runs show {run.id}`.",
        )
    return row is not None
