"""The SQL of runs: listing them, which are active, and what their requests have used together.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.store.unreadable_data import UNREADABLE, texts_of
from llm_do.runtime.record.stored_records import RunFilter, RunRecord, Spending, SpendingBy
from llm_do.text.exception_text import first_fault
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.store_errors import UnreadableDataError

__all__ = ["UNENDED", "before_beginning", "claims", "open_runs", "run_records", "spending"]

_RUN = (
    "SELECT id, status, entry, thread, user, started, finished, owner,"
    " (SELECT count(*) FROM events WHERE events.run = runs.id), usage, models, exchanges, dropped, attempt, batch"
    " FROM runs"
)

UNENDED = "status IN ('running', 'stopped', 'suspended')"
"""The states of runs that haven't ended, in the words of the index of each thread's: it may have very many others."""

QUARTER = 900
"""Seconds of a quarter of an hour: whatever the time zone, a day begins and ends with one."""

_SUMS = ", ".join(
    f"CAST(sum({each}) AS BIGINT)"
    for each in (
        "requests",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "CASE WHEN spent.cost IS NULL THEN total_tokens ELSE 0 END",
    )
)

_KEYS = {"day": f"floor(started / {QUARTER})", "agent": "agent", "model": "model"}
"""What spending is summed up by, in SQL."""


def run_records(db: Database, filter: RunFilter, *, prefix: str | None = None, limit: int | None) -> list[RunRecord]:
    """List runs, most recent first; with a prefix, only the run whose id it is, if there is one."""
    if prefix is not None:
        exact = db.execute(f"{_RUN} WHERE id = ?", (prefix,)).fetchone()
        if exact is not None:
            return [_run(exact)]
        filter = replace(filter, prefix=prefix)
    wheres, values = _conditions(filter)
    if filter.statuses is None and filter.prefix is None:
        wheres.append("status <> 'queued'")
    most = 2**62 if limit is None else min(limit, 2**62)
    rows = db.execute(f"{_RUN}{_where(wheres)} ORDER BY started DESC, id DESC LIMIT ?", [*values, most])
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
        ("runs.user = ?", filter.user_id),
        ("runs.batch = ?", filter.batch),
    ):
        if value is not None:
            wheres.append(condition)
            values.append(value)
    if filter.prefix is not None:
        wheres.append("runs.id >= ? AND runs.id < ?")
        values += [filter.prefix, f"{filter.prefix}\U0010ffff"]
    return wheres, values


def _where(wheres: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(wheres)}" if wheres else ""


def spending(db: Database, by: SpendingBy, filter: RunFilter) -> list[Spending]:
    """Sum up what the requests of runs have used."""
    wheres, values = _conditions(filter)
    found = db.execute(
        f"SELECT {_KEYS[by]}, count(DISTINCT run), {_SUMS}, sum(spent.cost)"
        f" FROM spent JOIN runs ON runs.id = spent.run{_where(wheres)} GROUP BY 1",
        values,
    )
    spent: dict[str, Spending] = {}
    for key, *sums in found:
        name = _day(key) if by == "day" else key
        spent[name] = _added(spent.get(name), name, *sums)
    if by == "day":
        return sorted(spent.values(), key=lambda each: each.key, reverse=True)
    return sorted(spent.values(), key=_most_expensive_first)


def _added(
    before: Spending | None,
    key: str,
    runs: int,
    requests: int,
    sent: int,
    received: int,
    total: int,
    unpriced: int,
    cost: float | None,
) -> Spending:
    """What has been summed up so far, and more."""
    if before is None:
        return Spending(key, runs, Usage(requests, 0, sent, received, cost, total), unpriced)
    used = before.usage
    costs = [each for each in (used.cost_usd, cost) if each is not None]
    usage = Usage(
        used.requests + requests,
        0,
        used.input_tokens + sent,
        used.output_tokens + received,
        sum(costs) if costs else None,
        used.total_tokens + total,
    )
    return Spending(key, before.runs + runs, usage, before.unpriced + unpriced)


def _day(quarter: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(quarter * QUARTER))


def _most_expensive_first(spent: Spending) -> tuple[float, int, str]:
    cost = spent.usage.cost_usd
    return (-1 if cost is None else cost) * -1, -spent.usage.total_tokens, spent.key


def _run(row: Sequence[Any]) -> RunRecord:
    try:
        usage = Usage.from_dict(json.loads(row[9])) if row[9] else None
        models = texts_of(row[10]) if row[10] else ()
    except UNREADABLE as error:
        raise UnreadableDataError(f"run {row[0]!r}: {type(error).__name__}: {first_fault(error)[:200]}") from error
    known = (row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8])
    return RunRecord(*known, usage, models, row[11], row[12] or "", row[13], row[14])


def before_beginning(db: Database, run: RunRecord) -> tuple[str | None, bool]:
    """Return how far a run is, None if there is none with its id; and whether no other run on its thread is open."""
    other = f"SELECT 1 FROM runs WHERE thread = ? AND {UNENDED} AND coalesce(user, '') = ? AND id <> ? LIMIT 1"
    status, others = db.execute(
        f"SELECT (SELECT status FROM runs WHERE id = ?), ({other})", (run.id, run.thread_id, run.user_id or "", run.id)
    ).fetchone()
    return status, others is None


def open_runs(db: Database, user: str | None, thread_id: str | None) -> list[RunRecord]:
    """List runs that haven't ended, of one thread or of all, oldest first."""
    where = "" if thread_id is None else f" AND thread = ? AND {UNENDED} AND coalesce(user, '') = ?"
    values = [] if thread_id is None else [thread_id, user or ""]
    rows = db.execute(f"{_RUN} WHERE status = 'running'{where} ORDER BY started, id", values)
    return [_run(row) for row in rows]


def claims(db: Database, run: RunRecord) -> list[tuple[str, str]]:
    """List the runs that have lost a conflict on a run's thread before it did, and their processes."""
    return db.execute(
        f"SELECT id, owner FROM runs WHERE status = 'running' AND thread = :thread AND {UNENDED}"
        " AND coalesce(user, '') = :user AND id <> :id"
        " AND claimed < coalesce((SELECT claimed FROM runs WHERE id = :id), 9e99)",
        {"id": run.id, "thread": run.thread_id, "user": run.user_id or ""},
    ).fetchall()
