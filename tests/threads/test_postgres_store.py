"""A connection to a store in PostgreSQL that is lost, and a server that is restarted or held up."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import pytest

from llm_do import RunTakenError, StoreError
from llm_do.runtime.record.store.store_writes import Batch, EventRow, RunEnd
from llm_do.runtime.record.stored_records import Filter, RunRecord
from llm_do.threads import PostgresStore, ThreadConfig, ThreadRecord
from llm_do.threads.postgres import connection
from llm_do.threads.postgres.postgres_store import open_database
from llm_do.threads.postgres.target import target_of
from tests.support.postgres import Server, start_server, stop_server
from tests.threads.thread_support import done

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` isn't installed")


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.url()


def another_process(url: str) -> PostgresStore:
    """Open a store that shares neither connection nor lock with the others of this process."""
    store = PostgresStore(url)
    store._share(open_database(target_of(url)))
    return store


def record(id: str = "r") -> RunRecord:
    return RunRecord(id, "running", "main", None, None, 1.0)


def event(seq: int) -> EventRow:
    return EventRow(seq, 1.0, "warning", '{"message": "m", "path": "main"}')


def cut(postgres: Server, store: PostgresStore, purpose: str) -> None:
    """Break a connection of a store, as the network or an administrator does."""
    owners: Any = store._owners
    held: Any = store._worker._connection if purpose == "store" else owners._held
    (done,) = postgres.query(f"SELECT pg_terminate_backend({held._connection.info.backend_pid}, 5000)")
    assert done == (True,)


async def lost(store: PostgresStore, owner: str) -> None:
    """Wait until a process has noticed that its lock is lost."""
    async with asyncio.timeout(10):
        while store._owners.holds(owner):  # noqa: ASYNC110 (another thread notices)
            await asyncio.sleep(0.01)


def test_a_connection_that_breaks_while_a_store_is_opened_is_opened_again(postgres: Server, url: str) -> None:
    store, key = PostgresStore(url), target_of(url).lock_key("writes")
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'"

    async def work() -> list[str]:
        with psycopg.connect(
            host=str(postgres.folder), port=postgres.port, user="postgres", dbname="postgres"
        ) as other:
            other.execute(f"SELECT pg_advisory_lock({key})".encode())
            saved = asyncio.ensure_future(store.save_thread(ThreadRecord("a"), expected=None))
            async with asyncio.timeout(60):
                while not (pids := await asyncio.to_thread(postgres.query, waiting)):  # noqa: ASYNC110 (it's another's)
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(postgres.query, f"SELECT pg_terminate_backend({pids[0][0]}, 5000)")
        await saved
        found = [each.id for each in await store.threads()]
        await store.aclose()
        return found

    assert done(work()) == ["a"]


def test_a_connection_that_breaks_between_writes_is_opened_again(postgres: Server, url: str) -> None:
    store = PostgresStore(url)

    async def work() -> list[str]:
        await store.save_thread(ThreadRecord("a"), expected=None)
        cut(postgres, store, "store")
        await store.save_thread(ThreadRecord("b"), expected=None)
        cut(postgres, store, "store")
        return sorted(each.id for each in await store.threads())

    assert done(work()) == ["a", "b"]
    done(store.aclose())


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
def test_a_commit_whose_answer_is_lost_counts_once(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    store = PostgresStore(url)
    attempts: list[int] = []

    def add(db: Any) -> int:
        attempts.append(1)
        db.execute("INSERT INTO users VALUES (?, '{}', 'r')", (f"u{len(attempts)}",))
        return len(attempts)

    async def work() -> list[Any]:
        await store._write(lambda db: None)
        live = store._worker._connection
        assert isinstance(live, connection.PostgresConnection)
        execute = live._connection.execute

        def breaks(sql: Any, *values: Any, **options: Any) -> Any:
            if b"COMMIT" not in sql:
                return execute(sql, *values, **options)
            if committed:
                execute(sql, *values, **options)
            cut(postgres, store, "store")
            return execute("SELECT 1")

        monkeypatch.setattr(live._connection, "execute", breaks)
        await store._write(add)
        return await store._read(lambda db: db.execute("SELECT id FROM users").fetchall())

    assert done(work()) == [("u1" if committed else "u2",)]
    assert len(attempts) == (1 if committed else 2)
    done(store.aclose())


def test_a_server_that_is_gone_is_an_error_and_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "RECONNECTING", 0.5)
    server = start_server()
    try:
        store = PostgresStore(server.url())
        done(store.save_thread(ThreadRecord("a"), expected=None))
        server.control("stop", "-m", "immediate")
        for _ in range(2):
            with pytest.raises(StoreError, match="can't be reached") as caught:
                done(store.save_thread(ThreadRecord("b"), expected=None))
            assert "server running" in (caught.value.hint or "")
        server.control("start")
        done(store.save_thread(ThreadRecord("c"), expected=None))
        assert sorted(each.id for each in done(store.threads())) == ["a", "c"]
        done(store.aclose())
    finally:
        stop_server(server)


def test_writes_that_were_waiting_when_a_server_went_away_wait_for_it_once_and_fail_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "RECONNECTING", 3)
    server = start_server()
    try:
        store = PostgresStore(server.url())

        def stop(db: Any) -> None:
            server.control("stop", "-m", "immediate")
            db.execute("SELECT 1")

        async def work() -> tuple[list[Any], float]:
            await store._write(lambda db: None)
            since = time.monotonic()
            jobs = [lambda db: db.execute("SELECT 1"), stop, *[lambda db: db.execute("SELECT 1")] * 20]
            ends = await asyncio.gather(*(store._write(job) for job in jobs), return_exceptions=True)
            return ends, time.monotonic() - since

        ends, took = done(work())
        assert all(isinstance(each, StoreError) and "can't be reached" in each.message for each in ends), ends
        assert took < 30  # each by itself would have waited for a minute in all
        done(store.aclose())
    finally:
        stop_server(server)


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])
def test_a_commit_that_cannot_be_asked_about_is_an_error_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    monkeypatch.setattr(connection, "RECONNECTING", 0.5)
    server = start_server()
    try:
        store = PostgresStore(server.url())

        def add(name: str, db: Any) -> None:
            db.execute("INSERT INTO users VALUES (?, '{}', 'r')", (f"{name}{len(attempts)}",))
            attempts.append(name)

        attempts: list[str] = []

        async def work() -> Any:
            await store._write(lambda db: None)
            live: Any = store._worker._connection
            execute, reconnect = live._connection.execute, live._reconnect

            def breaks(sql: Any, *values: Any, **options: Any) -> Any:
                if b"COMMIT" not in sql:
                    return execute(sql, *values, **options)
                if committed:
                    execute(sql, *values, **options)
                server.control("stop", "-m", "immediate")
                return execute("SELECT 1")

            def comes_back_too_late() -> None:
                try:
                    reconnect()
                except psycopg.Error:
                    server.control("start")
                    raise

            monkeypatch.setattr(live._connection, "execute", breaks)
            monkeypatch.setattr(live, "_reconnect", comes_back_too_late)
            writes = [store._write(partial(add, name)) for name in "ab"]
            ends = await asyncio.gather(*writes, return_exceptions=True)
            return ends, await store._read(lambda db: db.execute("SELECT id FROM users ORDER BY id").fetchall())

        ends, stored = done(work())
        for error in ends:
            assert isinstance(error, StoreError)
            assert "can't be reached" in error.message
            assert error.message.endswith("; whether what was written last is stored isn't known")
        assert attempts == ["a", "b"]
        assert stored == ([("a0",), ("b1",)] if committed else [])
        done(store.aclose())
    finally:
        stop_server(server)


def test_a_restart_under_load_loses_and_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine a server takes longer to restart, and a process to get to the end of a transaction.
    monkeypatch.setattr(connection, "RECONNECTING", 120)
    monkeypatch.setattr(connection, "STOPPED", 120)
    server = start_server()
    try:
        url = server.url()
        stores = [PostgresStore(url), another_process(url), another_process(url)]

        async def one_run(store: PostgresStore, name: str) -> str:
            await store.begin_run(record(name), ThreadConfig())
            for seq in range(40):
                await store.write(Batch(name, [event(seq)]))
            try:
                await store.finish_run(RunEnd(Batch(name), "completed", 2.0))
            except RunTakenError:
                return "taken"
            return "completed"

        async def restarts() -> None:
            for mode in ("fast", "immediate"):
                await asyncio.sleep(0.3)
                await asyncio.to_thread(server.control, "restart", "-m", mode)

        async def work() -> list[Any]:
            for store in stores:
                await store.observations(Filter(run_id="none"))  # a server that can't be reached at first is an error
            runs = [one_run(store, f"{number}-{each}") for number, store in enumerate(stores) for each in range(12)]
            ends = await asyncio.gather(*runs, restarts(), return_exceptions=True)
            kept = [len(await stores[0].observations(Filter(run_id=f"{n}-{e}"))) for n in range(3) for e in range(12)]
            for store in stores:
                await store.aclose()
            return [ends[:-1], kept]

        ends, kept = done(work())
        assert ends == ["completed"] * 36
        assert kept == [40] * 36
    finally:
        stop_server(server)


def test_a_process_that_is_stopped_in_a_transaction_holds_up_the_others_for_a_while_only(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "STOPPED", 1)
    one = PostgresStore(url)
    done(one.save_thread(ThreadRecord("a"), expected=None))
    with psycopg.connect(host=str(postgres.folder), port=postgres.port, user="postgres", dbname="postgres") as stopped:
        key = target_of(url).lock_key("writes")
        stopped.execute("SET idle_in_transaction_session_timeout = '1s'")
        stopped.execute(f"SELECT pg_advisory_xact_lock({key})".encode())
        done(one.save_thread(ThreadRecord("b"), expected=None))
        with pytest.raises(psycopg.Error, match="idle-in-transaction"):
            stopped.execute("SELECT 1")
        stopped.close()
    done(one.aclose())
