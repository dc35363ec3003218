"""The SQL of runs: listing them, which are active, and what their requests have used together.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from llm_do.errors import StoreError
from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.stored_records import RunFilter, RunRecord, Spending, SpendingBy

__all__ = ["claims", "is_open", "open_runs", "run_records", "spending"]

_RUN = (
    "SELECT id, status, entry, thread, user, started, finished, owner,"
    " (SELECT count(*) FROM events WHERE events.run = runs.id), usage, models, exchanges, dropped, attempt FROM runs"
)

_KEYS = {"day": "date(started, 'unixepoch', 'localtime')", "agent": "agent", "model": "model"}
"""What spending is summed up by, in SQL."""


def run_records(
    db: sqlite3.Connection, filter: RunFilter, *, prefix: str | None = None, limit: int | None = None
) -> list[RunRecord]:
    """List runs, most recent first."""
    wheres, values = _conditions(filter)
    if prefix is not None:
        wheres.append("id >= ? AND id < ?")
        values += [prefix, f"{prefix}\U0010ffff"]
    most = 2**62 if limit is None else min(limit, 2**62)
    rows = db.execute(f"{_RUN}{_where(wheres)} ORDER BY started DESC, rowid DESC LIMIT ?", [*values, most])
    return [_run(row) for row in rows]


def _conditions(filter: RunFilter) -> tuple[list[str], list[Any]]:
    wheres: list[str] = []
    values: list[Any] = []
    if filter.statuses is not None:
        wheres.append(f"status IN ({', '.join('?' * len(filter.statuses))})")
        values += filter.statuses
    for condition, value in (
        ("thread = ?", filter.thread_id),
        ("entry = ?", filter.entry),
        ("started >= ?", filter.since),
        ("runs.cost > ?", filter.cost_above),
    ):
        if value is not None:
            wheres.append(condition)
            values.append(value)
    return wheres, values


def _where(wheres: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(wheres)}" if wheres else ""


def spending(db: sqlite3.Connection, by: SpendingBy, filter: RunFilter) -> list[Spending]:
    """Sum up what the requests of runs have used."""
    wheres, values = _conditions(filter)
    order = "1 DESC" if by == "day" else "7 DESC, 6 DESC, 1"
    found = db.execute(
        f"SELECT {_KEYS[by]}, count(DISTINCT run), sum(requests), sum(input_tokens), sum(output_tokens),"
        " sum(total_tokens), sum(spent.cost), sum(CASE WHEN spent.cost IS NULL THEN total_tokens ELSE 0 END)"
        f" FROM spent JOIN runs ON runs.id = spent.run{_where(wheres)} GROUP BY 1 ORDER BY {order}",
        values,
    )
    return [
        Spending(key, runs, Usage(requests, 0, sent, received, cost, total), unpriced)
        for key, runs, requests, sent, received, total, cost, unpriced in found
    ]


def _run(row: Sequence[Any]) -> RunRecord:
    for timestamp in (row[5], row[6]):
        if not isinstance(timestamp, int | float | None):
            raise StoreError(
                f"run {row[0]!r} can't be read: {timestamp!r} is not a time",
                hint="the store was changed by another program; `llm-do runs prune` removes old runs",
            )
    usage = Usage.from_dict(json.loads(row[9])) if row[9] else None
    models = tuple(json.loads(row[10])) if row[10] else ()
    known = (row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8])
    return RunRecord(*known, usage, models, row[11], row[12] or "", row[13])


def is_open(db: sqlite3.Connection, run_id: str) -> bool:
    """Whether a run hasn't ended."""
    return db.execute("SELECT 1 FROM runs WHERE id = ? AND status = 'running'", (run_id,)).fetchone() is not None


def open_runs(db: sqlite3.Connection, user: str | None = None, thread_id: str | None = None) -> list[RunRecord]:
    """List runs that haven't ended, of one thread or of all, oldest first."""
    where = "" if thread_id is None else " AND thread = ? AND coalesce(user, '') = ?"
    values = [] if thread_id is None else [thread_id, user or ""]
    rows = db.execute(f"{_RUN} WHERE status = 'running'{where} ORDER BY started, rowid", values)
    return [_run(row) for row in rows]


def claims(db: sqlite3.Connection, run: RunRecord) -> list[tuple[str, str]]:
    """List the runs that have lost a conflict on a run's thread before it did, and their processes."""
    return db.execute(
        "SELECT id, owner FROM runs WHERE status = 'running' AND thread = :thread AND coalesce(user, '') = :user"
        " AND id <> :id AND claimed < coalesce((SELECT claimed FROM runs WHERE id = :id), 9e99)",
        {"id": run.id, "thread": run.thread_id, "user": run.user_id or ""},
    ).fetchall()
