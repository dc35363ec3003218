"""Which process has a run: one that has lost its mark may have been taken for dead, and its runs may be another's.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from llm_do.errors import RunTakenError
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads.sql.database import Database, Owners

__all__ = ["StoredRun", "check_attempt", "own_run", "owned_again", "refuse_other_attempt"]

_STORED = (
    "SELECT status, attempt, models,"
    " (SELECT threads.turn FROM threads WHERE threads.user = coalesce(runs.user, '') AND threads.id = runs.thread)"
    " FROM runs WHERE id = ?"
)


class StoredRun(NamedTuple):
    """What has to be known of a run before more of it is written.

    Args:
        status: How far it is.
        attempt: The attempt at a durable run; 0 for any other.
        models: Its models so far, as JSON text.
        turn: Its thread's turn; None without a thread, or if that was deleted.
    """

    status: str
    attempt: int
    models: str | None
    turn: str | None


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
        own_run(db, run)
    return kept


def own_run(db: Database, run: RunRecord) -> StoredRun | None:
    """Return what is known of a run of this process; None if it was deleted along with its thread.

    Raises:
        RunTakenError: Another process has ended it.
    """
    stored = _stored(db, run.id)
    if stored is not None and stored.status == "interrupted":
        raise RunTakenError(
            f"another process has taken this one for dead, and ended run {run.id} as interrupted",
            hint=f"See what was saved with `llm-do runs show {run.id}`.",
        )
    return stored


def _stored(db: Database, run_id: str) -> StoredRun | None:
    row: Any = db.execute(_STORED, (run_id,)).fetchone()
    return None if row is None else StoredRun(*row)


def check_attempt(db: Database, run_id: str, attempt: int) -> None:
    """Raise `RunTakenError` if an attempt at a durable run is no longer the run's."""
    refuse_other_attempt(_stored(db, run_id), run_id, attempt)


def refuse_other_attempt(stored: StoredRun | None, run_id: str, attempt: int) -> None:
    """Raise `RunTakenError` unless the run is at this attempt: the fence of a durable run."""
    if stored is None or (stored.attempt, stored.status) != (attempt, "running"):
        raise RunTakenError(
            f"another process has taken over run {run_id}" if stored is not None else f"run {run_id} was deleted",
            hint=f"See it with `llm-do runs show {run_id}`.",
        )
