"""The rows of memories, and what a change of a durable run came to, so that it happens once.

Every function works inside the transaction of its caller.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from llm_do.errors import UsageError
from llm_do.runtime.record.store.memories import (
    Memory,
    MemoryFilter,
    MemoryOwner,
    MemoryStep,
    Recalled,
    Remembered,
)
from llm_do.text.search_words import search_words
from llm_do.threads.sql.database import Database
from llm_do.threads.sql.durable.step_rows import MEMORY_CHANGE
from llm_do.threads.sql.rows import not_before
from llm_do.threads.sql.runs.run_owners import check_attempt

__all__ = ["delete", "find", "forget", "recall", "remember"]

_OWNER = "scope = ? AND project = ? AND user = ? AND thread = ?"
_COLUMNS = "scope, project, user, thread, id, text, created, updated, agent, run"
_ID_LENGTHS = (8, 12, 16, 64)
_MOST_WORDS = 32
"""Words of a search that count."""


def remember(db: Database, memory: Memory, most: int, step: MemoryStep | None) -> Remembered:
    """Keep a memory, unless there are as many as there may be."""
    return Remembered(**_once(db, step, lambda: asdict(_remember(db, memory, most))))


def forget(db: Database, owner: MemoryOwner, id: str, step: MemoryStep | None) -> bool:
    """Delete a memory; returns whether there was one."""

    def change() -> dict[str, Any]:
        found = db.execute(f"DELETE FROM memories WHERE {_OWNER} AND id = ?", (*owner.key, id))
        return {"found": found.rowcount > 0}

    return bool(_once(db, step, change)["found"])


def _once(db: Database, step: MemoryStep | None, change: Callable[[], dict[str, Any]]) -> Mapping[str, Any]:
    """Change something, and keep what came of it in the same transaction; what is kept isn't done again."""
    if step is None:
        return change()
    check_attempt(db, step.run_id, step.attempt)
    key = f"{step.key}/{MEMORY_CHANGE}"
    row = db.execute("SELECT data FROM steps WHERE run = ? AND key = ?", (step.run_id, key)).fetchone()
    if row is not None:
        return json.loads(row[0])
    data = change()
    db.execute(
        "INSERT INTO steps VALUES (?, ?, ?, 1, ?, ?)", (step.run_id, key, MEMORY_CHANGE, step.attempt, json.dumps(data))
    )
    return data


def _remember(db: Database, memory: Memory, most: int) -> Remembered:
    key = memory.owner.key
    id, is_known = _free_id(db, memory)
    (count,) = db.execute(f"SELECT count(*) FROM memories WHERE {_OWNER}", key).fetchone()
    if is_known:
        db.execute(
            f"UPDATE memories SET updated = {not_before('created')}, agent = ?, run = ? WHERE {_OWNER} AND id = ?",
            (memory.updated, memory.updated, memory.agent, memory.run_id, *key, id),
        )
        return Remembered(id, "known", count)
    if count >= most:
        return Remembered(id, "full", count)
    words = " ".join(search_words(memory.text))
    db.execute(
        f"INSERT INTO memories ({_COLUMNS}, words) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, id, memory.text, memory.created, memory.updated, memory.agent, memory.run_id, words),
    )
    return Remembered(id, "new", count + 1)


def _free_id(db: Database, memory: Memory) -> tuple[str, bool]:
    """The id that a text has or gets, and whether it is remembered already."""
    digest = hashlib.sha256(memory.text.encode()).hexdigest()
    for length in _ID_LENGTHS:
        id = digest[:length]
        row = db.execute(f"SELECT text FROM memories WHERE {_OWNER} AND id = ?", (*memory.owner.key, id)).fetchone()
        if row is None or row[0] == memory.text:
            return id, row is not None
    raise UsageError("this can't be remembered: another text has its id", hint="Word it differently.")


def recall(db: Database, owners: Sequence[MemoryOwner], search: str | None, most: int) -> Recalled:
    """Find memories of these owners: those that fit best first, or the latest."""
    if not owners:
        return Recalled()
    where = " OR ".join(f"({_OWNER})" for _ in owners)
    return _select(db, where, [part for owner in owners for part in owner.key], search, most)


def find(db: Database, filter: MemoryFilter, most: int | None) -> Recalled:
    """Find memories of any owner."""
    columns = (("scope", filter.scope), ("user", filter.user_id), ("thread", filter.thread_id))
    chosen = [(column, value) for column, value in columns if value is not None]
    wheres = [f"{column} = ?" for column, _ in chosen]
    values: list[Any] = [value for _, value in chosen]
    if filter.id is not None:
        wheres.append("substr(id, 1, ?) = ?")
        values += [len(filter.id), filter.id]
    return _select(db, " AND ".join(wheres) or "1 = 1", values, filter.search, most)


def _select(db: Database, where: str, values: Sequence[Any], search: str | None, most: int | None) -> Recalled:
    if search is None:
        (count,) = db.execute(f"SELECT count(*) FROM memories WHERE {where}", values).fetchone()
        limit = count if most is None else most
        rows = db.execute(
            f"SELECT {_COLUMNS} FROM memories WHERE {where} ORDER BY updated DESC, id LIMIT ?", [*values, limit]
        )
        found = tuple(_memory(row) for row in rows)
        return Recalled(found, count - len(found))
    words = search_words(search, most=_MOST_WORDS)
    if not words:
        return Recalled()
    ranked = dict(db.rank(f"SELECT number, words FROM memories WHERE {where}", values, words))
    times: dict[int, float] = dict(db.execute(f"SELECT number, updated FROM memories WHERE {where}", values).fetchall())
    best = sorted(ranked, key=lambda number: (-round(ranked[number], 9), -times[number], number))
    chosen = best if most is None else best[:most]
    query = f"SELECT {_COLUMNS} FROM memories WHERE number = ?"
    return Recalled(
        tuple(_memory(db.execute(query, (number,)).fetchone()) for number in chosen), len(best) - len(chosen)
    )


def delete(db: Database, memories: Sequence[Memory]) -> int:
    """Delete memories; returns how many there still were."""
    statement = f"DELETE FROM memories WHERE {_OWNER} AND id = ?"
    return sum(db.execute(statement, (*each.owner.key, each.id)).rowcount for each in memories)


def _memory(row: Sequence[Any]) -> Memory:
    owner = MemoryOwner(*row[:4])
    return Memory(owner, *row[4:])
