"""Writes that wait at the same time are committed together, and each has its own outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from llm_do import StoreError, ThreadConflict
from llm_do.threads import SqliteStore, ThreadRecord
from llm_do.threads.sql import transactions
from llm_do.threads.sql.sql_store import SqlStore
from tests.threads.thread_support import done


@contextmanager
def held(store: SqlStore) -> Iterator[None]:
    """Keep the store's thread busy, so that writes have to wait."""
    started, go_on = threading.Event(), threading.Event()

    def wait(db: Any) -> None:
        started.set()
        go_on.wait()

    store._worker.post(wait)
    started.wait()
    try:
        yield
    finally:
        go_on.set()


async def begun(*works: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    """Start tasks, and let each run up to where it waits."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.sleep(0)
    return tasks


def saved(store: SqlStore, name: str) -> Coroutine[Any, Any, Any]:
    return store.save_thread(ThreadRecord(name), expected=None)


def names(store: SqlStore) -> set[str]:
    return {record.id for record in done(store.threads())}


def test_waiting_writes_are_one_transaction(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[Any] = []
    commit = transactions.commit
    monkeypatch.setattr(transactions, "commit", lambda connection: (commits.append(connection), commit(connection)))

    async def fifty() -> None:
        with held(store):
            tasks = await begun(*(saved(store, f"t{number}") for number in range(50)))
        await asyncio.gather(*tasks)

    done(fifty())

    assert len(commits) == 2  # the first one is that of the write that kept the thread busy
    assert names(store) == {f"t{number}" for number in range(50)}


def test_there_are_savepoints_only_if_a_write_fails(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    asked: list[str] = []

    async def written(*names: str) -> list[Any]:
        await store._write(lambda db: db.set_trace_callback(asked.append))
        asked.clear()
        with held(store):
            tasks = await begun(*(saved(store, name) for name in names))
        return await asyncio.gather(*tasks, return_exceptions=True)

    assert all(isinstance(each, ThreadRecord) for each in done(written("a", "b")))
    assert not any(each.startswith("SAVEPOINT") for each in asked)

    failed, other = done(written("a", "c"))

    assert (type(failed), type(other)) == (ThreadConflict, ThreadRecord)
    assert sum(each.startswith("SAVEPOINT") for each in asked) == 2
    done(store.aclose())


def test_one_that_fails_is_undone_alone(store: SqlStore) -> None:
    def half(db: Any) -> None:
        db.execute("DELETE FROM threads")
        raise RuntimeError("no")

    async def mixed() -> list[Any]:
        await saved(store, "old")
        with held(store):
            tasks = await begun(saved(store, "a"), saved(store, "old"), store._write(half), saved(store, "b"))
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = done(mixed())

    assert [type(each) for each in outcomes] == [ThreadRecord, ThreadConflict, RuntimeError, ThreadRecord]
    assert names(store) == {"old", "a", "b"}


def test_a_write_that_fills_the_disk_fails_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    def limit(db: Any) -> None:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 3}")

    async def mixed() -> list[Any]:
        await saved(store, "old")
        await store._read(limit)
        large = ThreadRecord("large", state={"text": "x" * 100_000})
        with held(store):
            works = saved(store, "a"), store.save_thread(large, expected=None), saved(store, "b")
            tasks = await begun(*works)
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = done(mixed())

    assert [type(each) for each in outcomes] == [ThreadRecord, StoreError, ThreadRecord]
    assert "the disk may be full" in outcomes[1].message
    assert names(store) == {"old", "a", "b"}
    done(store.aclose())


def test_a_write_whose_caller_was_cancelled_is_carried_out(store: SqlStore) -> None:
    async def cancelled() -> None:
        with held(store):
            tasks = await begun(saved(store, "a"), saved(store, "b"), saved(store, "c"))
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
        assert [(await task).id for task in (tasks[0], tasks[2])] == ["a", "c"]

    done(cancelled())

    assert names(store) == {"a", "b", "c"}


def test_a_store_closed_under_waiting_writes_saves_them(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    async def closed() -> None:
        with held(store):
            tasks = await begun(saved(store, "a"), saved(store, "b"), store.aclose(), saved(store, "c"))
        await asyncio.gather(*tasks)

    done(closed())

    assert names(store) == {"a", "b", "c"}
    done(store.aclose())


def test_a_write_outlives_the_event_loop_that_asked_for_it(store: SqlStore) -> None:
    async def left() -> None:
        await begun(saved(store, "b"))

    with held(store):
        done(left())

    assert names(store) == {"b"}


def test_a_read_sees_the_writes_asked_for_before_it(store: SqlStore) -> None:
    async def mixed() -> Any:
        with held(store):
            tasks = await begun(saved(store, "a"), store.thread("a"), store.threads())
        return await asyncio.gather(*tasks)

    _, one, every = done(mixed())

    assert one is not None
    assert [record.id for record in every] == ["a"]


def test_writes_of_several_event_loops_are_answered(store: SqlStore) -> None:
    outcomes: list[str] = []

    def elsewhere(name: str) -> None:
        outcomes.append(done(saved(store, name)).id)

    threads = [threading.Thread(target=elsewhere, args=(name,)) for name in "abc"]
    with held(store):
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["a", "b", "c"]
    assert names(store) == {"a", "b", "c"}
