"""The SQL of the store: reading and writing the rows of threads, messages, users, runs and events.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from typing import Any

from llm_do.errors import StoreError, UsageError
from llm_do.runtime.record.recording import ThreadConfig
from llm_do.runtime.record.store.store_writes import EventRow, MessageRow
from llm_do.runtime.record.store.unreadable_data import object_of
from llm_do.runtime.record.stored_records import Filter, Observation, RunRecord, StoredMessage, ThreadRecord
from llm_do.text.generated_ids import new_id
from llm_do.threads.sql.database import Database
from llm_do.threads.store.codec import message_of
from llm_do.threads.store.thread_settings import config_data, config_from_data
from llm_do.threads.store.usable_history import starts_turn

__all__ = [
    "add_branch",
    "insert_events",
    "insert_messages",
    "latest_threads",
    "message_from_row",
    "not_before",
    "observations",
    "opened_thread",
    "parent_of",
    "read_history",
    "read_turns",
    "save_user",
    "thread_record",
    "thread_records",
]

_THREAD = (
    "SELECT user, id, config, state, toolkits, head, branches, carried, revision, turn, created, updated,"
    " (SELECT depth FROM messages WHERE messages.id = head) FROM threads"
)
_MESSAGE = "id, parent, body, time, run, metadata"
_HISTORY = f"""
WITH RECURSIVE chain (id, parent, depth, n) AS (
  SELECT id, parent, depth, 1 FROM messages WHERE id = :head AND id <> :stop
  UNION ALL
  SELECT messages.id, messages.parent, messages.depth, n + 1 FROM chain JOIN messages ON messages.id = chain.parent
  WHERE n < :limit AND messages.id <> :stop AND messages.depth < chain.depth
)
SELECT {", ".join(f"messages.{name}" for name in _MESSAGE.split(", "))}
FROM chain JOIN messages ON messages.id = chain.id ORDER BY n DESC
"""


_PARENT = """
WITH RECURSIVE chain (id, parent, depth) AS (
  SELECT id, parent, depth FROM messages WHERE id = :head
  UNION ALL
  SELECT messages.id, messages.parent, messages.depth FROM chain JOIN messages ON messages.id = chain.parent
  WHERE chain.id <> :id AND messages.depth < chain.depth
)
SELECT parent FROM chain WHERE id = :id
"""


MOST_EVENTS = 16
"""Events of one statement: each number of them is a statement of its own, which connections keep compiled."""

DRAFT = ("tip", "state", "user_state", "toolkits")
"""The columns of a run's pending writes."""

NO_DRAFT = ", ".join(f"{name} = NULL" for name in DRAFT)
"""Clears a run's pending writes once it has ended."""


def thread_record(db: Database, user: str | None, thread_id: str) -> ThreadRecord | None:
    """Return a user's thread, or None if there is none with that id."""
    row = db.execute(f"{_THREAD} WHERE user = ? AND id = ?", (user or "", thread_id)).fetchone()
    return _thread(row) if row is not None else None


def _most(limit: int | None) -> int:
    """Clamp a limit to what the databases' integers can hold; None means no limit."""
    return 2**62 if limit is None else min(limit, 2**62)


def thread_records(db: Database, user: str | None, *, every_user: bool, limit: int | None) -> list[ThreadRecord]:
    """List threads, most recent first."""
    latest, values = latest_threads(user, every_user=every_user, limit=limit)
    return [_thread(row) for row in db.execute(_THREAD + latest, values)]


def latest_threads(user: str | None, *, every_user: bool, limit: int | None) -> tuple[str, list[Any]]:
    """The end of a query that selects a user's threads, or every user's, most recent first; and its values."""
    where, values = ("", []) if every_user else (" WHERE user = ?", [user or ""])
    return f"{where} ORDER BY updated DESC, user, id DESC LIMIT ?", [*values, _most(limit)]


def _thread(row: Sequence[Any]) -> ThreadRecord:
    try:
        config, toolkits, carried = (object_of(row[place]) for place in (2, 4, 7))
        return ThreadRecord(
            user_id=row[0] or None,
            id=row[1],
            config=config_from_data(config),
            state={} if row[3] == "{}" else json.loads(row[3]),
            toolkits=toolkits,
            head=row[5],
            branches=tuple(json.loads(row[6])),
            carried=carried,
            revision=row[8],
            turn=row[9],
            created=float(row[10]),
            updated=float(row[11]),
            length=0 if row[12] is None else row[12] + 1,
        )
    except (TypeError, ValueError, RecursionError, UsageError) as error:
        hint = "It was written by another version, or it is damaged."
        raise StoreError(f"thread {row[1]!r} can't be read: {error}", hint=hint) from error


def opened_thread(db: Database, user: str | None, thread_id: str, config: ThreadConfig) -> ThreadRecord:
    """Return a user's thread, which is created without messages if there is none."""
    thread = thread_record(db, user, thread_id)
    if thread is not None:
        return thread
    now = time.time()
    settings = json.dumps(config_data(config))
    new = (user or "", thread_id, settings, "{}", "{}", None, "[]", "{}", new_id(), new_id(), now, now)
    db.execute("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", new)
    return _thread((*new, None))


def not_before(column: str) -> str:
    """SQL for a time that is never before a column of its row, as if a clock that was set back stood still.

    It takes the time twice.
    """
    return f"CASE WHEN {column} > ? THEN {column} ELSE ? END"


def add_branch(db: Database, run: RunRecord, tip: str) -> None:
    """Keep a history as a branch of the thread."""
    key = (run.user_id or "", run.thread_id)
    row = db.execute("SELECT branches FROM threads WHERE user = ? AND id = ?", key).fetchone()
    if row is not None:
        branches = json.dumps([*json.loads(row[0]), tip])
        db.execute(
            "UPDATE threads SET branches = ?, revision = ? WHERE user = ? AND id = ?", (branches, new_id(), *key)
        )


def save_user(db: Database, user_id: str | None, state: str, revision: str) -> None:
    """Save a user's state."""
    db.execute(
        "INSERT INTO users VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state,"
        " revision = excluded.revision",
        (user_id, state, revision),
    )


def read_history(
    db: Database, head: str | None, *, limit: int | None = None, stop: str | None = None
) -> list[StoredMessage]:
    """Read the messages that end at `head`; the cost depends on how many are returned, not on the thread's length."""
    if head is None or (limit is not None and limit < 1):
        return []
    bound = {"head": head, "stop": stop or "", "limit": _most(limit)}
    return [message_from_row(row) for row in db.execute(_HISTORY, bound)]


def read_turns(db: Database, head: str | None, limit: int | None) -> list[StoredMessage]:
    """Read the latest messages that end at `head`, at most `limit`, but never less than the whole last turn."""
    found = read_history(db, head, limit=limit)
    if limit is None or any(starts_turn(each.message) for each in found):
        return found
    while found and found[0].parent is not None:
        found = read_history(db, head, limit=len(found) * 4)
        starts = [at for at, each in enumerate(found) if starts_turn(each.message)]
        if starts:
            return found[starts[-1] :]
    return found


def parent_of(db: Database, message_id: str, head: str | None) -> str | None:
    """Return the parent of a message in the history that ends at `head`; None if it is the first or not in it."""
    row = db.execute(_PARENT, {"head": head, "id": message_id}).fetchone()
    return row[0] if row is not None else None


def message_from_row(row: Sequence[Any]) -> StoredMessage:
    """Read a message from its row."""
    return StoredMessage(row[0], row[1], message_of(row[2]), row[3], row[4], object_of(row[5]) if row[5] else {})


def insert_messages(db: Database, run_id: str | None, messages: Iterable[MessageRow]) -> None:
    """Insert messages into the tree."""
    db.executemany(
        "INSERT INTO messages (id, parent, depth, time, run, metadata, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(each.id, each.parent, each.depth, each.time, run_id, each.metadata, each.body) for each in messages],
    )


def insert_events(db: Database, run: RunRecord, events: Iterable[EventRow]) -> None:
    """Insert events into the journal; an existing one stays as it is."""
    # A few rows in one statement: between two of them, the event loop may take the interpreter's lock.
    rows = [(run.id, each.seq, each.time, each.type, run.thread_id, run.user_id, each.data) for each in events]
    for first in range(0, len(rows), MOST_EVENTS):
        some = rows[first : first + MOST_EVENTS]
        db.execute(
            "INSERT INTO events (run, seq, time, type, thread, user, data) VALUES "
            + ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * len(some))
            + " ON CONFLICT DO NOTHING",
            [value for row in some for value in row],
        )


def observations(db: Database, filter: Filter, limit: int | None, *, earliest: bool = False) -> list[Observation]:
    """Read journal entries in the order they were written; with a limit, the latest or the `earliest`."""
    wheres: list[str] = []
    values: list[Any] = []
    for column, value in (("thread = ?", filter.thread_id), ("run = ?", filter.run_id), ("user = ?", filter.user_id)):
        if value is not None:
            wheres.append(column)
            values.append(value)
    limits = (("time >= ?", filter.since), ("time < ?", filter.until), ("seq > ?", filter.after))
    for column, bound in limits:
        if bound is not None:
            wheres.append(column)
            values.append(bound)
    if filter.types is not None:
        wheres.append(f"type IN ({', '.join('?' * len(filter.types))})")
        values += filter.types
    where = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    # The entries of one run have an order of their own, whatever the clock says.
    columns = ("seq",) if filter.run_id is not None else ("time", "run", "seq")
    order = ", ".join(columns if earliest else (f"{each} DESC" for each in columns))
    rows = db.execute(
        f"SELECT run, seq, time, type, thread, user, data FROM events{where} ORDER BY {order} LIMIT ?",
        [*values, _most(limit)],
    ).fetchall()
    try:
        return [Observation(*row[:-1], data=object_of(row[-1])) for row in (rows if earliest else reversed(rows))]
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"an entry of the journal can't be read: {error}",
            hint="it was written by another version, or is damaged; `llm-do runs prune` removes old runs",
        ) from error
