"""Deletes threads with everything that is theirs: one that is named, or those that no one has continued for long.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from llm_do.runtime.record.stored_records import ThreadRecord
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable.project_rows import drop_unused_projects
from llm_do.threads.sql.runs import pruning

__all__ = ["DeletedThreads", "count_old_threads", "delete_old_threads", "delete_thread"]

MOST_VALUES = 500
"""Values of one statement: not every SQLite takes more than 999."""

MESSAGES_OF_A_RUN = 20
"""How many messages are deleted in about the time that a run takes."""

_HAS_WORK = ("status IN ('running', 'stopped', 'suspended')", "status = 'queued'")
"""Runs that haven't ended, as the conditions of two indexes."""

_IN_USE = " UNION ".join(
    f"SELECT coalesce(user, ''), thread FROM runs WHERE {condition} AND thread IS NOT NULL" for condition in _HAS_WORK
)

_OLD = f"FROM threads WHERE updated < ? AND (user, id) NOT IN ({_IN_USE})"

_OF_THREAD = "FROM runs WHERE coalesce(user, '') = ? AND thread = ?"

# The messages that end at `:tip`, as far up as no other history contains them.
_OWN = """
WITH RECURSIVE chain (id, parent, depth, n) AS (
  SELECT id, parent, depth, 1 FROM messages WHERE id = :tip
    AND NOT EXISTS (SELECT 1 FROM messages AS child WHERE child.parent = messages.id)
    AND NOT EXISTS (SELECT 1 FROM threads WHERE threads.head = messages.id)
  UNION ALL
  SELECT messages.id, messages.parent, messages.depth, n + 1 FROM chain JOIN messages ON messages.id = chain.parent
  WHERE messages.depth < chain.depth
    AND NOT EXISTS (SELECT 1 FROM messages AS child WHERE child.parent = messages.id AND child.id <> chain.id)
    AND NOT EXISTS (SELECT 1 FROM threads WHERE threads.head = messages.id)
)
SELECT id FROM chain ORDER BY n
"""


@dataclass(frozen=True, slots=True)
class DeletedThreads:
    """What one transaction has deleted.

    Args:
        threads: How many threads.
        runs: The ids of their runs, and of some runs of a thread that will be deleted next.
        is_last: Whether none is left that could be deleted.
    """

    threads: int
    runs: Sequence[str]
    is_last: bool


def delete_thread(db: Database, record: ThreadRecord) -> list[str]:
    """Delete a thread, its memories, its messages that no other history contains, and its runs; return their ids."""
    key = (record.user_id or "", record.id)
    runs: list[str] = [run for (run,) in db.execute(f"SELECT id {_OF_THREAD}", key)]
    _delete(db, key, (record.head, *record.branches), runs)
    drop_unused_projects(db)
    return runs


def count_old_threads(db: Database, before: float) -> int:
    """Count the threads that haven't been changed since a time, and have no run that is running or waits."""
    return int(db.execute(f"SELECT count(*) {_OLD}", (before,)).fetchone()[0])


def delete_old_threads(db: Database, before: float, most: int) -> DeletedThreads:
    """Delete the next of these threads, the oldest first; of one with very many runs, first some of these."""
    found = db.execute(
        "SELECT user, id, head, branches, coalesce((SELECT depth FROM messages WHERE messages.id = head), 0)"
        f" {_OLD} ORDER BY updated, user, id LIMIT ?",
        (before, most),
    ).fetchall()
    left, threads, deleted = most, 0, list[str]()
    for user, id, head, branches, depth in found:
        oldest = f"SELECT id {_OF_THREAD} ORDER BY started LIMIT ?"
        runs: list[str] = [run for (run,) in db.execute(oldest, (user, id, left + 1))]
        if len(runs) > left:
            pruning.delete(db, runs[:left])
            return DeletedThreads(threads, [*deleted, *runs[:left]], is_last=False)
        _delete(db, (user, id), (head, *json.loads(branches)), runs)
        threads += 1
        deleted += runs
        left -= 1 + len(runs) + depth // MESSAGES_OF_A_RUN
        if left <= 0:
            break
    if threads:
        drop_unused_projects(db)
    return DeletedThreads(threads, deleted, is_last=left > 0)


def _delete(db: Database, key: tuple[str, str], tips: Sequence[str | None], runs: Sequence[str]) -> None:
    """Delete a thread with all of its runs."""
    drafts = [tip for (tip,) in db.execute(f"SELECT tip {_OF_THREAD} AND tip IS NOT NULL", key)]
    db.execute("DELETE FROM threads WHERE user = ? AND id = ?", key)
    for some in _portions(runs):
        pruning.delete(db, some)
    db.execute("DELETE FROM events WHERE coalesce(user, '') = ? AND thread = ?", key)  # also an application's own
    db.execute("DELETE FROM memories WHERE scope = 'thread' AND project = '' AND user = ? AND thread = ?", key)
    needed = _needed(db)
    for tip in (*tips, *drafts):
        if tip is not None:
            _delete_upwards(db, tip, needed)


def _needed(db: Database) -> set[str]:
    """The ends of all histories that aren't a thread's."""
    found: set[str] = {tip for (tip,) in db.execute(f"SELECT tip FROM runs WHERE {_HAS_WORK[0]} AND tip IS NOT NULL")}
    for (text,) in db.execute("SELECT branches FROM threads WHERE branches <> '[]'"):
        found.update(json.loads(text))
    return found


def _delete_upwards(db: Database, tip: str, needed: Collection[str]) -> None:
    own: list[str] = []
    for (message,) in db.execute(_OWN, {"tip": tip}):
        if message in needed:
            break
        own.append(message)
    for some in _portions(own):
        db.execute(f"DELETE FROM messages WHERE id IN ({', '.join('?' * len(some))})", some)


def _portions(items: Sequence[str]) -> list[Sequence[str]]:
    return [items[at : at + MOST_VALUES] for at in range(0, len(items), MOST_VALUES)]
