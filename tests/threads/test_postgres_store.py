"""What is particular to a store in PostgreSQL: lost connections, the locks of processes, and its errors."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
from dataclasses import replace
from typing import Any

import pytest

from llm_do import RunTakenError, StoreError, UsageError
from llm_do.project.store_location import expand
from llm_do.runtime.record.redaction import redactor
from llm_do.runtime.record.store.store_writes import Batch, EventRow, RunEnd
from llm_do.runtime.record.stored_records import Filter, RunRecord
from llm_do.threads import PostgresStore, ThreadConfig, ThreadRecord
from llm_do.threads.postgres import connection
from llm_do.threads.postgres.postgres_store import open_database
from llm_do.threads.postgres.target import target_of
from llm_do.threads.sql.migrations import MIGRATIONS
from tests.support.postgres import PASSWORD, Server, start_server, stop_server
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
    held: Any = store._worker._connection if purpose == "store" else store._owners._held
    (done,) = postgres.query(f"SELECT pg_terminate_backend({held._connection.info.backend_pid}, 5000)")
    assert done == (True,)


async def lost(store: PostgresStore, owner: str) -> None:
    """Wait until a process has noticed that its lock is lost."""
    async with asyncio.timeout(10):
        while store._owners.holds(owner):  # noqa: ASYNC110 (another thread notices)
            await asyncio.sleep(0.01)


# -- connections


def test_a_connection_that_breaks_while_a_store_is_opened_is_opened_again(postgres: Server, url: str) -> None:
    store, key = PostgresStore(url), target_of(url).lock_key("writes")
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory'"

    async def work() -> str:
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


# -- processes


def test_a_process_is_alive_as_long_as_its_lock(postgres: Server, url: str) -> None:
    async def work() -> tuple[list[str], list[str], str]:
        one, other = PostgresStore(url), another_process(url)
        await one.begin_run(record(), ThreadConfig())
        assert await one.recover() == []  # it doesn't take itself for dead, either
        while_alive = await other.recover()
        cut(postgres, one, "owner")
        await lost(one, one._active["r"].owner)
        after = await other.recover()
        await one.aclose()
        found = await other.run("r")
        await other.aclose()
        return while_alive, after, found.status if found else ""

    assert done(work()) == ([], ["r"], "interrupted")


def test_a_durable_run_stops_when_its_lock_is_lost_and_can_be_resumed(postgres: Server, url: str) -> None:
    async def work() -> None:
        one, other = PostgresStore(url), another_process(url)
        await one.begin_run(record(), ThreadConfig(), "{}")
        await one.write(Batch("r", [event(0)], attempt=1))
        cut(postgres, one, "owner")
        await lost(one, one._active["r"].owner)
        with pytest.raises(RunTakenError, match="was lost, so run r has stopped"):
            await one.write(Batch("r", [event(1)], attempt=1))
        with pytest.raises(RunTakenError):
            await one.stop_run(Batch("r", attempt=1), "stopped")
        resumed = await other.resume_run("r")
        assert resumed.run.attempt == 2
        assert [each.seq for each in await other.observations(Filter(run_id="r"))] == [0]
        await other.stop_run(Batch("r", attempt=2), "stopped")
        await one.begin_run(record("next"), ThreadConfig())  # under a new lock
        assert await other.recover() == []
        await one.finish_run(RunEnd(Batch("next"), "completed", 2.0))
        await one.aclose()
        await other.aclose()

    done(work())


def test_an_ordinary_run_continues_under_another_lock_unless_it_was_taken_for_dead(postgres: Server, url: str) -> None:
    async def work() -> tuple[list[str], str]:
        one, other = PostgresStore(url), another_process(url)
        await one.begin_run(record("kept"), ThreadConfig())
        await one.begin_run(record("ended"), ThreadConfig())
        cut(postgres, one, "owner")
        await lost(one, one._active["kept"].owner)
        await one.write(Batch("kept", [event(0)]))
        recovered = await other.recover()
        with pytest.raises(RunTakenError, match="ended run ended as interrupted"):
            await one.finish_run(RunEnd(Batch("ended"), "completed", 2.0))
        await one.finish_run(RunEnd(Batch("kept"), "completed", 2.0))
        found = await other.run("kept")
        await one.aclose()
        await other.aclose()
        return recovered, found.status if found else ""

    assert done(work()) == (["ended"], "completed")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked")
def test_the_lock_of_a_parent_is_neither_its_childs_nor_kept_by_it(postgres: Server, url: str) -> None:
    store = PostgresStore(url)
    done(store.begin_run(record(), ThreadConfig()))
    pid = os.fork()
    if pid == 0:
        try:
            child = PostgresStore(url)
            alive = done(child.recover())  # the parent's run is the parent's
            done(child.begin_run(record("child"), ThreadConfig()))
            done(child.finish_run(RunEnd(Batch("child"), "completed", 2.0)))
            done(child.aclose())
            os._exit(0 if alive == [] else 3)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert store._owners.holds(store._active["r"].owner)
    done(store.finish_run(RunEnd(Batch("r"), "completed", 2.0)))
    assert sorted(run.id for run in done(store.runs())) == ["child", "r"]
    done(store.aclose())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked")
def test_a_process_that_is_stopped_and_continued_keeps_its_run(postgres: Server, url: str) -> None:
    done(PostgresStore(url).threads())
    pid = os.fork()
    if pid == 0:
        try:
            child = PostgresStore(url)
            done(child.begin_run(record(), ThreadConfig(), "{}"))
            os.kill(os.getpid(), signal.SIGSTOP)
            done(child.finish_run(RunEnd(Batch("r", [event(0)], attempt=1), "completed", 2.0)))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
    store = PostgresStore(url)
    try:
        assert done(store.recover()) == []
        with pytest.raises(UsageError, match="another process runs it"):
            done(store.resume_run("r"))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    found = done(store.run("r"))
    assert found is not None
    assert found.status == "completed"
    done(store.aclose())


def test_of_two_attempts_at_once_one_begins_and_an_old_one_writes_nothing(url: str) -> None:
    async def work() -> None:
        first = another_process(url)
        await first.begin_run(record(), ThreadConfig(), "{}")
        first._owners.release()  # it lives, but no one can tell
        others = [another_process(url) for _ in range(4)]
        ends = await asyncio.gather(*(other.resume_run("r") for other in others), return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["ResumedRun", "UsageError", "UsageError", "UsageError"]
        first._active["r"] = replace(first._active["r"], owner=first._owners.claim())
        with pytest.raises(RunTakenError, match="another process has taken over run r"):
            await first.write(Batch("r", [event(0)], attempt=1))
        assert await first.observations(Filter(run_id="r")) == []
        for store in (first, *others):
            store._active.clear()
            await store.aclose()

    done(work())


# -- errors


def refused(url: str) -> StoreError | UsageError:
    with pytest.raises((StoreError, UsageError)) as caught:
        done(PostgresStore(url).threads())
    shown = "".join(traceback.format_exception(caught.value)) + str(caught.value) + repr(caught.value)
    assert "t0p" not in shown, "a password is shown"
    return caught.value


def test_what_is_missing_is_named(postgres: Server) -> None:
    port = postgres.port
    postgres.query("CREATE ROLE app LOGIN PASSWORD 't0p'")
    postgres.query("REVOKE CREATE ON DATABASE postgres FROM PUBLIC")
    cases = {
        f"postgresql://app:t0p-s3cret@127.0.0.1:{port}/postgres": "password authentication failed",
        f"postgresql://nobody:t0p@127.0.0.1:{port}/postgres": "authentication failed",
        f"postgresql://app:t0p@127.0.0.1:{port}/nowhere": 'database "nowhere" does not exist',
        f"postgresql://app:t0p@127.0.0.1:{port}/postgres": "permission denied for database postgres",
        "postgresql://app:t0p@127.0.0.1:1/postgres": "Connection refused",
        "postgresql://app:t0p@no.such.host.invalid/postgres": "no.such.host.invalid",
        "postgresql:///postgres?host=/nowhere&password=t0p": "No such file",
        "postgresql://app:t0p@127.0.0.1:x/postgres": "port",
    }
    for url, words in cases.items():
        error = refused(url)
        assert words in error.message, error
        assert error.hint
    for url in ("postgresql://app:t0p%zz@h/d", "postgresql://app:t0p@h/d?nonsense=1"):
        assert "the URL of the store isn't valid" in refused(url).message
    assert "can't be the schema" in refused("postgresql://app:t0p@h/d?schema=A-B").message


def test_a_value_that_postgresql_cannot_hold_is_named(url: str) -> None:
    store = PostgresStore(url)
    with pytest.raises(UsageError, match="NUL"):
        done(store.save_thread(ThreadRecord("a\0b"), expected=None))
    with pytest.raises(UsageError, match="surrogate"):
        done(store.save_thread(ThreadRecord("a\udc80"), expected=None))
    assert done(store.threads()) == []
    done(store.aclose())


def test_tables_that_are_not_ours_and_those_of_a_newer_version_are_left_alone(postgres: Server) -> None:
    url = postgres.url("foreign")
    for sql in ('CREATE SCHEMA "foreign1"', "CREATE TABLE foreign1.threads (a int)"):
        postgres.query(sql)
    error = refused(postgres.url("foreign1"))
    assert 'relation "threads" already exists' in error.message
    assert "schema=NAME" in (error.hint or "")

    done(PostgresStore(url := postgres.url("newer")).threads())
    postgres.query(f"UPDATE newer.store_version SET version = {len(MIGRATIONS) + 9}")
    error = refused(url + "&connect_timeout=9")
    assert f"newer llm-do (store version {len(MIGRATIONS) + 9}" in error.message
    assert "another database" in (error.hint or "")


def test_a_password_is_redacted_wherever_it_could_be_recorded(postgres: Server) -> None:
    url = postgres.tcp_url()
    store = PostgresStore(url)
    assert PASSWORD not in repr(store) + store.name
    text = redactor()(f"{url} and {PASSWORD}")
    assert PASSWORD not in text
    assert "correct%20horse" not in text


def test_variables_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "p@ss/w:rd")
    monkeypatch.setenv("DB_URL", "postgres://h/d")
    monkeypatch.setenv("NO_URL", "mysql://h")
    assert expand("postgresql://u:${DB_PASSWORD}@h/d", os.environ) == "postgresql://u:p%40ss%2Fw%3Ard@h/d"
    assert expand("${DB_URL}", os.environ) == "postgres://h/d"
    with pytest.raises(UsageError, match="NO_URL doesn't hold the URL"):
        expand("${NO_URL}", os.environ)
    with pytest.raises(UsageError, match="NOT_SET_AT_ALL, which the store's URL refers to, is not set"):
        expand("postgresql://u:${NOT_SET_AT_ALL}@h/d", os.environ)


# -- load


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
