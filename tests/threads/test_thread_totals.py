"""Lists of threads say what the runs of each have used."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do.runtime.record.results import Usage
from llm_do.runtime.record.store.store_writes import Batch, RunEnd, RunTotals
from llm_do.runtime.record.stored_records import RunRecord, ThreadTotals
from llm_do.threads import SqliteStore, ThreadConfig
from llm_do.threads.sql import migrations
from llm_do.threads.sql.runs.thread_totals import threads_with_totals
from llm_do.threads.sqlite.sqlite_database import SqliteDatabase
from tests.support.runs import agent
from tests.support.scripted import call, script
from tests.threads.thread_support import add, done, on_thread, runtime_on, talk

if TYPE_CHECKING:
    from llm_do.threads.sql.sql_store import SqlStore

CHEAP = Usage(1, 0, 100, 10, 0.25)
COSTLY = Usage(2, 0, 1000, 500, 0.5)
UNPRICED = Usage(1, 0, 40, 2)


async def add_run(store: SqlStore, id: str, thread: str, user: str | None, usage: Usage) -> None:
    await store.begin_run(RunRecord(id, "running", "main", thread, user, float(ord(id))), ThreadConfig())
    await store.finish_run(RunEnd(Batch(id, totals=RunTotals(usage, ["m"])), "failed", float(ord(id)) + 1))


def totals_in(store: SqlStore, user: str | None = None, *, every_user: bool = False) -> dict[str, ThreadTotals]:
    found = done(store.threads_with_totals(user, every_user=every_user))
    assert [record for record, _ in found] == done(store.threads(user, every_user=every_user))
    return {f"{record.user_id or ''}/{record.id}": totals for record, totals in found}


def test_a_thread_has_the_sum_of_its_own_runs(store: SqlStore) -> None:
    async def fill() -> None:
        for id, thread, user, usage in (
            ("a", "priced", None, CHEAP),
            ("b", "priced", None, COSTLY),
            ("c", "priced", None, Usage()),  # it asked no model, so no price is missing
            ("d", "priced", "ann", COSTLY),
            ("e", "mixed", None, CHEAP),
            ("f", "mixed", None, UNPRICED),
            ("h", "idle", None, Usage()),
        ):
            await add_run(store, id, thread, user, usage)
        await talk(store, 1, "imported")
        await store.begin_run(RunRecord("i", "running", "main", "open", "ann", 1.0), ThreadConfig())
        await store.write(Batch("i", totals=RunTotals(CHEAP, ["m"])))

    done(fill())

    without = {
        "/priced": ThreadTotals(1610, 0.75),
        "/mixed": ThreadTotals(152, None),
        "/idle": ThreadTotals(0),
        "/imported": ThreadTotals(),
    }
    of_ann = {"ann/priced": ThreadTotals(1500, 0.5), "ann/open": ThreadTotals(110, 0.25)}
    assert totals_in(store) == without
    assert totals_in(store, "ann") == of_ann
    assert totals_in(store, "bob") == {}
    assert totals_in(store, every_user=True) == without | of_ann
    assert len(done(store.threads_with_totals(every_user=True, limit=3))) == 3


def test_a_run_that_has_begun_has_used_nothing(store: SqlStore) -> None:
    done(store.begin_run(RunRecord("a", "running", "main", "t", None, 1.0), ThreadConfig()))

    (begun,) = done(store.runs())

    assert (begun.status, begun.usage, begun.models) == ("running", Usage(), ())
    assert totals_in(store) == {"/t": ThreadTotals(0)}


def test_calls_inside_a_run_count_once_and_pruned_runs_no_longer(store: SqlStore) -> None:
    helper = agent("helper", script(call("add", a=1, b=2), "three"), tools=[add])
    lead = agent("lead", script(call("helper", input="x"), "done"), toolsets=["helper"])

    (first,) = on_thread(runtime_on(store, lead, helper), "one")
    (second,) = on_thread(runtime_on(store, lead, helper), "two")

    assert second.usage.requests == 4
    used = first.usage.total_tokens + second.usage.total_tokens
    assert totals_in(store) == {"/t": ThreadTotals(used)}
    assert sum(each.usage.total_tokens for each in done(store.spending("agent"))) == used
    assert done(store.prune_runs(9e9)) == 2
    assert totals_in(store) == {"/t": ThreadTotals()}


def test_runs_of_an_older_store_count(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    (ended,) = on_thread(runtime_on(store, agent("main", script("fine"))), "hello")
    done(add_run(store, "a", "unknown", None, Usage()))
    done(store.aclose())
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript("DROP INDEX runs_unended; DROP INDEX runs_used; ALTER TABLE runs DROP COLUMN tokens")
    db.execute("UPDATE runs SET usage = NULL WHERE id = 'a'")
    db.execute(f"PRAGMA user_version = {migrations.MIGRATIONS.index(migrations._tokens)}")
    db.close()

    assert totals_in(store) == {"/unknown": ThreadTotals(), "/t": ThreadTotals(ended.usage.total_tokens)}
    done(store.aclose())


def test_an_index_alone_answers_however_many_runs_a_thread_has(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    done(add_run(store, "a", "t", "ann", CHEAP))
    done(store.aclose())
    db = sqlite3.connect(path, factory=SqliteDatabase)
    asked: list[str] = []
    db.set_trace_callback(asked.append)

    threads_with_totals(db, "ann", every_user=False, limit=20)

    db.set_trace_callback(None)
    (query,) = [each for each in asked if "runs" in each]
    steps = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {query}")]
    db.close()
    of_runs = [step for step in steps if " runs " in f"{step} "]
    assert len(of_runs) == 4
    assert all("COVERING INDEX runs_used (thread=? AND user=?)" in step for step in of_runs)
