"""Deletes the record of runs that ended long ago.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from llm_do.threads.sql import exchange_rows
from llm_do.threads.sql.database import Database

__all__ = ["Portion", "delete", "drop_empty_batches", "old_runs", "young_batches"]

_ENDED = "finished < ? AND status NOT IN ('queued', 'running', 'stopped', 'suspended') AND tip IS NULL"


@dataclass(frozen=True, slots=True)
class Portion:
    """Some of the runs that may be deleted.

    Args:
        runs: Their ids.
        last: The start and the id of the last run that was looked at, where the next portion begins; None if there
            are no more.
    """

    runs: tuple[str, ...]
    last: tuple[float, str] | None


def young_batches(db: Database, before: float) -> frozenset[str]:
    """Return the batches that are kept, since an input of theirs hasn't ended or has ended later.

    The results of a batch are its runs', and an input without a run would be run again.
    """
    found = db.execute(
        "SELECT DISTINCT batch FROM runs WHERE batch IS NOT NULL AND (finished IS NULL OR finished >= ?)", (before,)
    )
    return frozenset(batch for (batch,) in found)


def old_runs(db: Database, before: float, kept: Collection[str], after: tuple[float, str], most: int) -> Portion:
    """Return the next runs that ended before a time, at most so many, those that began first at first."""
    found: Sequence[tuple[str, float, str | None]] = db.execute(
        f"SELECT id, started, batch FROM runs WHERE {_ENDED} AND started < ?"
        # The first of these finds its place in the index, which the second, with its OR, doesn't.
        " AND started >= ? AND (started > ? OR id > ?) ORDER BY started, id LIMIT ?",
        (before, before, after[0], after[0], after[1], most),
    ).fetchall()
    busy = {batch for batch in {row[2] for row in found} if batch in kept or (batch is not None and _works(db, batch))}
    last = (found[-1][1], found[-1][0]) if found else None
    return Portion(tuple(id for id, _, batch in found if batch not in busy), last)


def _works(db: Database, batch: str) -> bool:
    """Whether an input of a batch is on the queue or being run: someone may have mapped it again meanwhile."""
    return any(
        db.execute(f"SELECT 1 FROM runs WHERE batch = ? AND {which} LIMIT 1", (batch,)).fetchone() is not None
        for which in ("status = 'queued'", "status IN ('running', 'stopped', 'suspended')")
    )


def delete(db: Database, runs: Sequence[str]) -> None:
    """Delete runs with their events, requests, steps and questions; threads keep their messages."""
    if not runs:
        return
    marks = ", ".join("?" * len(runs))
    exchange_rows.forget(db, runs)
    for table in ("events", "steps", "questions"):
        db.execute(f"DELETE FROM {table} WHERE run IN ({marks})", runs)
    db.execute(f"DELETE FROM runs WHERE id IN ({marks})", runs)


def drop_empty_batches(db: Database, before: float) -> None:
    """Delete the batches whose runs have all been deleted."""
    db.execute(
        "DELETE FROM batches WHERE created < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.batch = batches.id)",
        (before,),
    )
