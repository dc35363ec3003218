"""A store with tampered rows: unreadable ones are reported, and nothing loops for ever."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from llm_do.errors import StoreError
from llm_do.threads.managers.transfer import export_thread
from llm_do.threads.sqlite.sqlite_store import SqliteStore
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import script

T = TypeVar("T")


def made(root: Path) -> Path:
    """A store with a thread of two turns."""
    for _ in range(2):
        result = carry_out(runtime_of([agent("main", script("done"))], root=root, record=True), thread_id="t")
        assert result.status == "completed", result.error
    return root / ".llm-do" / "state.db"


def changed(file: Path, sql: str, *values: object) -> Path:
    db = sqlite3.connect(file)
    with db:
        assert db.execute(sql, values).rowcount > 0
    db.close()
    return file


def asked(file: Path, question: Callable[[SqliteStore], Awaitable[T]]) -> T:
    async def ask() -> T:
        store = SqliteStore(file)
        try:
            return await asyncio.wait_for(question(store), 20)
        finally:
            await store.aclose()

    return asyncio.run(ask())


def test_messages_in_a_cycle_are_read_once(tmp_path: Path) -> None:
    file = changed(made(tmp_path), "UPDATE messages SET parent = (SELECT head FROM threads) WHERE parent IS NULL")

    async def read(store: SqliteStore) -> int:
        record = await store.thread("t")
        assert record is not None
        assert len(await export_thread(store, record)) == 5
        return len(await store.history(record.head))

    assert asked(file, read) == 4


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("config", "[1]"),
        ("config", '{"model": 5}'),
        ("config", '{"colour": "red"}'),
        ("state", "{"),
        ("toolkits", "[1]"),
        ("branches", "5"),
        ("carried", "[]"),
        ("carried", "["),
        ("updated", "soon"),
        ("created", b"\0\xff"),
    ],
)
def test_a_thread_that_cannot_be_read_is_named(tmp_path: Path, column: str, value: object) -> None:
    file = changed(made(tmp_path), f"UPDATE threads SET {column} = ?", value)
    with pytest.raises(StoreError, match="thread 't' can't be read"):
        asked(file, lambda store: store.threads())
    result = carry_out(runtime_of([agent("main", script("done"))], root=tmp_path, record=True), thread_id="t")
    assert result.status == "failed"
    assert isinstance(result.error, StoreError)


def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = changed(made(tmp_path), "UPDATE runs SET started = 'soon'")
    with pytest.raises(StoreError, match="can't be read: 'soon' is not a time"):
        asked(file, lambda store: store.runs())
