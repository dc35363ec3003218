"""The locks by which processes know of each other on PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from llm_do import RunTakenError, UsageError
from llm_do.runtime.record.store.store_writes import Batch, RunEnd
from llm_do.runtime.record.stored_records import Filter
from llm_do.threads import PostgresStore, ThreadConfig
from tests.support.postgres import Server
from tests.threads.test_postgres_store import another_process, cut, event, lost, record
from tests.threads.thread_support import done

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` isn't installed")


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.url()


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
