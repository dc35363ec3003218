"""The SQL of batches: many inputs of one entry, claimed by processes one by one.

Every function works inside the transaction of its caller. A claim is one UPDATE that asks for the status again, so
that of two processes one gets an input, in SQLite and PostgreSQL alike.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from llm_do.errors import UsageError
from llm_do.runtime.record.store.batches import (
    BatchInput,
    BatchItem,
    BatchRecord,
    BatchSummary,
    ClaimedInput,
    Taken,
)
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.rows import not_before

__all__ = [
    "add",
    "charge",
    "due",
    "end",
    "find",
    "give_back",
    "is_claimed",
    "items",
    "left",
    "put",
    "read",
    "retry",
    "running",
    "save",
    "summary",
    "take",
    "with_work",
]

_BATCH = "id, name, entry, inputs, total, project, options, budget, budget_each, concurrency, created, used"

_UNFINISHED = "status IN ('running', 'stopped', 'suspended')"
"""As in the index `runs_unfinished`: a run that hasn't ended may use all of its budget."""

_WAITS = "(status = 'suspended' AND EXISTS (SELECT 1 FROM questions WHERE questions.run = runs.id AND answer IS NULL))"
"""A run that does nothing until a person has answered."""

_ROUNDING = 1e-9
"""Sums of prices aren't exact; a share of a dollar that decides nothing."""


def read(db: Database, batch_id: str) -> BatchRecord | None:
    """Return a batch by its id."""
    row = db.execute(f"SELECT {_BATCH} FROM batches WHERE id = ?", (batch_id,)).fetchone()
    return BatchRecord(*row) if row is not None else None


def add(db: Database, batch: BatchRecord) -> BatchRecord:
    """Keep a batch, unless there is one with its id."""
    db.execute(
        f"INSERT INTO batches ({_BATCH}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            batch.id,
            batch.name,
            batch.entry,
            batch.inputs,
            batch.total,
            batch.project,
            batch.options,
            batch.budget,
            batch.budget_each,
            batch.concurrency,
            batch.created,
            batch.used,
        ),
    )
    return read(db, batch.id) or batch


def save(db: Database, batch: BatchRecord) -> None:
    """Save what may change of a batch."""
    db.execute(
        "UPDATE batches SET project = ?, options = ?, budget = ?, budget_each = ?, concurrency = ? WHERE id = ?",
        (batch.project, batch.options, batch.budget, batch.budget_each, batch.concurrency, batch.id),
    )


def put(db: Database, batch_id: str, inputs: Sequence[BatchInput]) -> None:
    """Put inputs on the queue."""
    row = db.execute("SELECT name FROM batches WHERE id = ?", (batch_id,)).fetchone()
    if row is None:
        raise UsageError(f"there is no batch {batch_id!r}", hint="It was deleted meanwhile; map the inputs again.")
    db.executemany(
        "INSERT INTO runs (id, status, entry, started, owner, batch, ordinal, input)"
        " VALUES (?, 'queued', ?, 0, '', ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        [(f"{batch_id}-{each.ordinal}", row[0], batch_id, each.ordinal, each.data) for each in inputs],
    )


def take(db: Database, batch_id: str, most: int, owner: str, run_id: str | None = None) -> Taken:
    """Claim inputs that no process has, or one of them, as far as the budget allows."""
    room = _room(db, batch_id)
    if room is not None and room < most:
        if room < 1:
            waits = db.execute("SELECT 1 FROM runs WHERE batch = ? AND status = 'queued' LIMIT 1", (batch_id,))
            return Taken(over_budget=waits.fetchone() is not None)
        most = room
    only, values = ("", [batch_id]) if run_id is None else (" AND id = ?", [batch_id, run_id])
    claimed = db.execute(
        "UPDATE runs SET status = 'running', owner = ? WHERE status = 'queued' AND id IN (SELECT id FROM runs"
        f" WHERE batch = ? AND status = 'queued'{only} ORDER BY ordinal LIMIT ?) RETURNING id, ordinal, input",
        (owner, *values, most),
    ).fetchall()
    return Taken(tuple(sorted((ClaimedInput(*row) for row in claimed), key=lambda each: each.ordinal)))


def due(db: Database, batch_id: str, most: int) -> list[BatchItem]:
    """Return what could be carried out now. It claims nothing, so what it says of the budget decides nothing."""
    begun = left(db, batch_id, waiting=False)[:most]
    room = _budget_room(db, batch_id)
    free = most - len(begun) if room is None else min(most - len(begun), room)
    if free < 1:
        return begun
    rows = db.execute(
        "SELECT ordinal, id, status FROM runs WHERE batch = ? AND status = 'queued' ORDER BY ordinal LIMIT ?",
        (batch_id, free),
    )
    return [*begun, *(BatchItem(*row) for row in rows)]


def find(db: Database, run_id: str) -> tuple[str, BatchItem] | None:
    """Return the batch and the state of a run."""
    row = db.execute(
        "SELECT batch, ordinal, id, status, NULL, attempt FROM runs WHERE id = ? AND batch IS NOT NULL AND ordinal > 0",
        (run_id,),
    ).fetchone()
    return (row[0], BatchItem(*row[1:])) if row is not None else None


def _room(db: Database, batch_id: str) -> int | None:
    """How many more runs the budget lets start; None for any number."""
    # Where transactions run side by side, the lock on the row lets one at a time decide.
    db.execute("UPDATE batches SET used = used WHERE id = ? AND budget IS NOT NULL", (batch_id,))
    return _budget_room(db, batch_id)


def _budget_room(db: Database, batch_id: str) -> int | None:
    batch = read(db, batch_id)
    if batch is None or batch.budget is None or not batch.budget_each:
        return None
    unfinished = db.execute(f"SELECT count(*) FROM runs WHERE batch = ? AND {_UNFINISHED}", (batch_id,)).fetchone()[0]
    return math.floor((batch.budget - batch.used) / batch.budget_each + _ROUNDING) - unfinished


def is_claimed(db: Database, run_id: str, owner: str) -> bool:
    """Whether a process has claimed an input whose run hasn't begun."""
    row = db.execute("SELECT status, batch, attempt, owner FROM runs WHERE id = ?", (run_id,)).fetchone()
    return row is not None and row[1] is not None and (row[0], row[2], row[3]) == ("running", 0, owner)


def give_back(db: Database, run_ids: Sequence[str], owner: str) -> None:
    """Put inputs that a process has claimed back on the queue."""
    db.executemany(
        "UPDATE runs SET status = 'queued', owner = '' WHERE id = ? AND status = 'running' AND attempt = 0"
        " AND batch IS NOT NULL AND owner = ?",
        [(each, owner) for each in run_ids],
    )


def charge(db: Database, run_id: str) -> None:
    """Count what a run that ends has cost to its batch's budget.

    A run that was interrupted counts with all it could use: its requests in flight may have been paid for.
    """
    row = db.execute("SELECT batch, attempt, cost FROM runs WHERE id = ?", (run_id,)).fetchone()
    if row is None or row[0] is None:
        return
    batch_id, attempt, cost = row[0], row[1], row[2] or 0.0
    batch = read(db, batch_id) if attempt > 1 else None
    if batch is not None and batch.budget is not None and batch.budget_each is not None:
        cost = max(cost, batch.budget_each)
    db.execute("UPDATE batches SET used = used + ? WHERE id = ?", (cost, batch_id))


def summary(db: Database, batch_id: str) -> BatchSummary:
    """Count the runs of a batch."""
    counts = db.execute(
        "SELECT status, count(*), max(ordinal) FROM runs WHERE batch = ? AND ordinal > 0 GROUP BY status", (batch_id,)
    ).fetchall()
    batch = read(db, batch_id)
    return BatchSummary(
        max((last for *_, last in counts), default=0),
        {status: count for status, count, _ in counts},
        batch.used if batch is not None else 0.0,
    )


def items(db: Database, batch_id: str, after: int, most: int, *, results: bool) -> list[BatchItem]:
    """Return where the inputs after a place are."""
    rows = db.execute(
        f"SELECT ordinal, id, status, {'result' if results else 'NULL'}, attempt FROM runs"
        " WHERE batch = ? AND ordinal > ? ORDER BY ordinal LIMIT ?",
        (batch_id, after, most),
    )
    return [BatchItem(*row) for row in rows]


def with_work(db: Database) -> list[BatchRecord]:
    """Return the batches with an input on the queue, or a begun run that doesn't wait for a person."""
    queued = "EXISTS (SELECT 1 FROM runs WHERE runs.batch = batches.id AND status = 'queued')"
    begun = f"EXISTS (SELECT 1 FROM runs WHERE runs.batch = batches.id AND {_UNFINISHED} AND NOT {_WAITS})"
    rows = db.execute(f"SELECT {_BATCH} FROM batches WHERE {queued} OR {begun} ORDER BY created, id")
    return [BatchRecord(*row) for row in rows]


def left(db: Database, batch_id: str, *, waiting: bool) -> list[BatchItem]:
    """Return the begun runs of a batch that no process has."""
    rows = db.execute(
        f"SELECT ordinal, id, status, NULL, attempt FROM runs WHERE batch = ? AND {_UNFINISHED} AND status <> 'running'"
        f"{'' if waiting else f' AND NOT {_WAITS}'} ORDER BY ordinal",
        (batch_id,),
    )
    return [BatchItem(*row) for row in rows]


def running(db: Database, batch_id: str) -> int:
    """Count the runs of a batch that processes have."""
    query = f"SELECT count(*) FROM runs WHERE batch = ? AND {_UNFINISHED} AND status = 'running'"
    return db.execute(query, (batch_id,)).fetchone()[0]


def end(db: Database, run_id: str, status: str, result: str) -> None:
    """End a run that isn't carried out; one that hasn't begun begins and ends now."""
    now = time.time()
    ended = db.execute(
        "UPDATE runs SET status = ?, started = CASE WHEN started = 0 THEN ? ELSE started END,"
        f" finished = {not_before('started')}, owner = '', result = ? WHERE id = ? AND {_UNFINISHED}"
        " AND batch IS NOT NULL AND (attempt = 0 OR status <> 'running') RETURNING id",
        (status, now, now, now, result, run_id),
    ).fetchall()
    if ended:
        charge(db, run_id)


def retry(db: Database, batch_id: str) -> int:
    """Give the inputs whose runs haven't completed a new run each; the old ones stay, without a place."""
    failed = db.execute(
        "SELECT id, ordinal, entry, input FROM runs WHERE batch = ? AND ordinal > 0"
        f" AND status NOT IN ('completed', 'queued') AND NOT ({_UNFINISHED})",
        (batch_id,),
    ).fetchall()
    db.executemany("UPDATE runs SET ordinal = NULL WHERE id = ?", [(row[0],) for row in failed])
    db.executemany(
        "INSERT INTO runs (id, status, entry, started, owner, batch, ordinal, input)"
        " VALUES (?, 'queued', ?, 0, '', ?, ?, ?)",
        [(_next_id(batch_id, at, run_id), entry, batch_id, at, data) for run_id, at, entry, data in failed],
    )
    return len(failed)


def _next_id(batch_id: str, ordinal: int, run_id: str) -> str:
    """The id of an input's next run.

    Example:
        >>> _next_id("bills", 17, "bills-17"), _next_id("bills", 17, "bills-17-again9")
        ('bills-17-again2', 'bills-17-again10')
    """
    stem = f"{batch_id}-{ordinal}"
    number = run_id.removeprefix(f"{stem}-again")
    return f"{stem}-again{int(number) + 1 if number.isdecimal() else 2}"
