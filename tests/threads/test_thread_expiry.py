"""`threads.keep_days` deletes the threads that no one has continued, and none that is in use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from llm_do import Runtime
from llm_do.errors import UsageError
from llm_do.runtime.record.stored_records import Filter
from llm_do.runtime.session.runtime_config import RuntimeConfig
from llm_do.threads import ConversationManager, Conversations, ThreadsSpec, ThreadStore, open_store
from llm_do.threads.expiry import ThreadExpiry
from llm_do.threads.sql import portions
from llm_do.threads.sql.sql_store import SqlStore
from tests.cli.cli_processes import run_forked
from tests.support.runs import agent, project_of
from tests.support.scripted import script
from tests.threads.test_deleted_threads import FILES, kept_files, write_desk, write_files
from tests.threads.test_pruned_runs import MONTH, TABLES, cutoff, rows_in
from tests.threads.thread_support import done, on_thread, prompts, runtime_on, stored_messages, talk

ALL = (*TABLES, "threads", "messages", "memories")


def make_old(store: SqlStore, *threads: str) -> None:
    """Have threads be continued two months earlier than they were."""

    def change(db: Any) -> None:
        for thread in threads:
            db.execute("UPDATE threads SET updated = updated - ? WHERE id = ?", (2 * MONTH, thread))

    done(store._write(change))


def limited_runtime(store: SqlStore, days: int | None, notices: list[str]) -> Runtime:
    """A runtime whose project keeps threads so long."""
    project = project_of((agent("main", script("x", "x")),), threads=ThreadsSpec(keep_days=days))
    return Runtime(project, config=RuntimeConfig.of(project, store=store, notice=notices.append))


def threads_in(store: SqlStore) -> list[str]:
    return sorted(each.id for each in done(store.threads(every_user=True)))


def set_status(store: SqlStore, run_id: str, status: str) -> None:
    done(store._write(lambda db: db.execute("UPDATE runs SET status = ? WHERE id = ?", (status, run_id))))


def count(store: SqlStore, table: str) -> int:
    return done(store._read(lambda db: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]))


def test_a_run_deletes_the_threads_that_no_one_has_continued_and_says_so(store: SqlStore) -> None:
    warnings: list[str] = []
    first = runtime_on(store, agent("main", script("x")))
    on_thread(first, "one", thread="old")
    on_thread(first, "two", thread="ann's", user="ann")
    on_thread(first, "three", thread="young")
    make_old(store, "old", "ann's")
    on_thread(limited_runtime(store, None, warnings), "four", thread="other")
    assert (threads_in(store), warnings) == (["ann's", "old", "other", "young"], [])

    limited = limited_runtime(store, 30, warnings)
    on_thread(limited, "five", thread="other")

    assert threads_in(store) == ["other", "young"]
    assert warnings == ["deleted 2 threads that weren't continued for 30 days (threads.keep_days)"]
    assert done(store.observations(Filter(thread_id="old"))) == []
    assert {run.thread_id for run in done(store.runs())} == {"other", "young"}
    assert prompts(stored_messages(store, "other")) == ["four", "five"]
    on_thread(limited, "six", thread="other")
    assert len(warnings) == 1


def test_a_store_without_old_threads_is_empty_afterwards(store: SqlStore) -> None:
    on_thread(runtime_on(store, agent("main", script("x", "x"))), "one", "two", thread="a")
    done(talk(store, 3, thread="b"))
    make_old(store, "a", "b")

    assert done(store.prune_threads(cutoff(), dry_run=True)) == 2
    assert done(store.prune_threads(cutoff())) == 2

    assert rows_in(store) == dict.fromkeys(TABLES, 0)
    assert [count(store, table) for table in ("threads", "messages")] == [0, 0]


@pytest.mark.parametrize("status", ["running", "suspended", "stopped", "queued"])
def test_a_thread_is_kept_while_a_run_of_it_has_not_ended(store: SqlStore, status: str) -> None:
    (run,) = on_thread(runtime_on(store, agent("main", script("x"))), "one", thread="t")
    make_old(store, "t")

    async def look() -> int:
        # A run of this process is one that is alive.
        store._opened.active[run.run_id] = (await store.runs())[0]
        set_values = "UPDATE runs SET status = ?, attempt = ?, owner = ? WHERE id = ?"
        attempt = 0 if status == "running" else 1
        await store._write(
            lambda db: db.execute(set_values, (status, attempt, store._opened.owners.claim(), run.run_id))
        )
        return await store.prune_threads(cutoff())

    assert done(look()) == 0
    assert threads_in(store) == ["t"]
    store._opened.active.clear()
    set_status(store, run.run_id, "completed")
    assert done(store.prune_threads(cutoff())) == 1


def test_a_thread_whose_run_was_killed_is_kept_from_its_recovery_on(store: SqlStore) -> None:
    (run,) = on_thread(runtime_on(store, agent("main", script("x"))), "one", thread="t")
    make_old(store, "t")
    killed = "UPDATE runs SET status = 'running', owner = 'gone', turn = (SELECT turn FROM threads) WHERE id = ?"
    done(store._write(lambda db: db.execute(killed, (run.run_id,))))

    assert done(store.prune_threads(cutoff())) == 0
    assert [each.status for each in done(store.runs())] == ["interrupted"]
    make_old(store, "t")
    assert done(store.prune_threads(cutoff())) == 1


def test_messages_that_another_thread_or_branch_shares_are_kept(store: SqlStore) -> None:
    done(talk(store, 3, thread="t"))

    async def fork() -> None:
        conversations = Conversations(store)
        await conversations.fork("t", new_conversation_id="whole")
        await conversations.fork("t", at=2, new_conversation_id="beginning")

    done(fork())
    done(ConversationManager(store).add_messages("t", stored_messages(store, "beginning")))
    make_old(store, "t")

    assert done(store.prune_threads(cutoff())) == 1

    assert prompts(stored_messages(store, "whole")) == ["q0", "q1", "q2"]
    assert prompts(stored_messages(store, "beginning")) == ["q0"]
    assert count(store, "messages") == 6
    make_old(store, "whole")
    assert done(store.prune_threads(cutoff())) == 1
    assert prompts(stored_messages(store, "beginning")) == ["q0"]
    assert count(store, "messages") == 2


def test_many_threads_and_many_runs_of_one_are_deleted_in_small_parts(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "FIRST", 2)
    monkeypatch.setattr(portions, "next_size", lambda size, seconds: 2)
    on_thread(runtime_on(store, agent("main", script(*"xxxxxxx"))), *"abcdefg", thread="long")
    for number in range(5):
        done(talk(store, 1, thread=f"t{number}"))
    make_old(store, "long", *(f"t{number}" for number in range(5)))

    # A part of the long one is gone, and its messages are all there.
    assert done(store.prune_threads(cutoff(), seconds=0)) == 0
    assert done(store.prune_threads(cutoff())) == 6

    assert rows_in(store) == dict.fromkeys(TABLES, 0)
    assert count(store, "messages") == 0


def test_the_end_of_a_run_does_not_wait_for_all_of_many_threads(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llm_do.threads import expiry

    monkeypatch.setattr(expiry, "PATIENCE", 0.0)
    warnings: list[str] = []
    runtime = limited_runtime(store, 1, warnings)
    done(talk(store, 1, thread="old"))
    make_old(store, "old")
    on_thread(runtime, "a", thread="t")
    assert threads_in(store) == ["old", "t"]

    monkeypatch.setattr(expiry, "PATIENCE", 60.0)
    on_thread(runtime, "b", thread="t")
    assert threads_in(store) == ["t"]
    assert warnings == ["deleted 1 thread that wasn't continued for a day (threads.keep_days)"]


def test_a_run_is_as_it_was_if_old_threads_cannot_be_deleted(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from llm_do.errors import StoreError

    async def full(*_: Any, **__: Any) -> int:
        raise StoreError("the disk is full")

    warnings: list[str] = []
    runtime = limited_runtime(store, 1, warnings)
    monkeypatch.setattr(SqlStore, "prune_threads", full)

    (result,) = on_thread(runtime, "a", thread="t")

    assert (result.status, warnings) == ("completed", ["old threads aren't deleted: the disk is full"])


def test_a_store_that_deletes_no_old_threads_is_named_once() -> None:
    class OtherStore:
        """A store of an application's own."""

    warnings: list[str] = []
    expiry = ThreadExpiry(30, warnings.append)
    for _ in range(2):
        done(expiry.delete_old_threads(cast("ThreadStore", OtherStore())))

    assert warnings == ["threads.keep_days has no effect: OtherStore deletes no old threads"]


@pytest.mark.parametrize("days", [0, -1, True, "30", 1.5])
def test_days_that_make_no_sense_are_refused(days: Any) -> None:
    with pytest.raises(UsageError, match="keep_days must be a whole number of days, 1 or more"):
        ThreadsSpec(keep_days=days)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A project that keeps threads for thirty days, with three of them: two are old."""
    root = write_desk(tmp_path)
    write_files(root)
    manifest = json.loads(FILES["project.json"])
    (root / "project.json").write_text(json.dumps({**manifest, "threads": {"keep_days": 30}}))
    store = open_store(root)
    make_old(store, "t")
    done(store.aclose())
    return root


def test_the_command_line_says_what_is_due_and_what_was_deleted(desk: Path) -> None:
    assert kept_files(desk) == {"one.md", "two.md", "three.md", "four.md"}
    listed = run_forked("threads", "list", "--all", cwd=desk)
    assert (listed.code, len(listed.out.splitlines())) == (0, 3)
    assert "2 threads weren't continued for 30 days (threads.keep_days) and will be deleted" in listed.err

    ran = run_forked("run", "--approve-all", "five", cwd=desk)

    assert ran.code == 0, ran.err
    assert ran.err.count("deleted 2 threads that weren't continued for 30 days (threads.keep_days)") == 1
    assert kept_files(desk) == {"three.md", "four.md", "five.md"}
    after = run_forked("threads", "list", "--all", cwd=desk)
    assert after.out.startswith("other")
    assert "keep_days" not in after.err
