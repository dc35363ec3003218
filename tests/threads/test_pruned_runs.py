"""Pruning deletes the record of runs that ended long ago, and nothing that anyone still needs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from llm_do.errors import StoreError
from llm_do.files.changes.kept_folder import KeptFolder
from llm_do.runtime.record.store.batches import BatchInput, BatchRecord
from llm_do.runtime.record.stored_records import Filter, RunFilter
from llm_do.threads import open_store
from llm_do.threads.sql import portions
from llm_do.threads.sql.runs import pruning
from llm_do.threads.sql.sql_store import SqlStore
from tests.cli.cli_processes import run_forked
from tests.support.runs import agent
from tests.support.scripted import script
from tests.threads.test_deleted_threads import kept_files, write_desk, write_files
from tests.threads.thread_support import done, on_thread, prompts, runtime_on, stored_messages

MONTH = 30 * 86400.0

TABLES = ("runs", "events", "steps", "questions", "exchanges", "spent", "objects", "batches")


def cutoff() -> float:
    return time.time() - MONTH


def make_old(store: SqlStore, *runs: str) -> None:
    """Have runs end two months earlier than they did."""

    def change(db: Any) -> None:
        for run in runs:
            db.execute(
                "UPDATE runs SET started = started - ?, finished = finished - ? WHERE id = ?",
                (2 * MONTH, 2 * MONTH, run),
            )

    done(store._write(change))


def rows_in(store: SqlStore) -> dict[str, int]:
    return done(
        store._read(lambda db: {name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES})
    )


def ids(store: SqlStore) -> list[str]:
    return sorted(run.id for run in done(store.runs()))


def test_old_runs_are_deleted_with_all_that_is_theirs_and_their_thread_goes_on(store: SqlStore) -> None:
    runtime = runtime_on(store, agent("main", script("x", "x", "x")))
    old, young = on_thread(runtime, "one", "two")
    alone = runtime_on(store, agent("main", script("y")), options={"record": True})
    other = done(alone.execute("three"))
    make_old(store, old.run_id, other.run_id)
    before = rows_in(store)

    assert done(store.prune_runs(cutoff(), dry_run=True)) == 2
    assert rows_in(store) == before
    assert done(store.prune_runs(cutoff())) == 2

    assert ids(store) == [young.run_id]
    assert done(store.observations(Filter(run_id=old.run_id))) == []
    assert [each.runs for each in done(store.spending("agent"))] == [1]
    # What the young run was sent has the old one's messages in it, and can still be read.
    assert len(done(store.exchanges(young.run_id))[0].sent.messages) == 3
    assert prompts(stored_messages(store)) == ["one", "two"]
    (third,) = on_thread(runtime_on(store, agent("main", script("x"))), "third")
    assert prompts(third.messages) == ["one", "two", "third"]
    assert done(store.prune_runs(cutoff())) == 0

    make_old(store, young.run_id, third.run_id)
    assert done(store.prune_runs(cutoff())) == 2
    assert rows_in(store) == dict.fromkeys(TABLES, 0)
    assert done(store._read(lambda db: db.execute("SELECT bytes FROM exchange_size").fetchone()[0])) == 0


def test_runs_that_have_not_ended_are_kept_and_any_number_is_deleted(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "FIRST", 2)
    monkeypatch.setattr(portions, "next_size", lambda size, seconds: 2)
    runtime = runtime_on(store, agent("main", script("x")), options={"record": True})
    names = [done(runtime.execute(str(number))).run_id for number in range(7)]
    make_old(store, *names)
    waiting = names[2:5]
    for run, status in zip(waiting, ("stopped", "suspended", "queued"), strict=True):
        done(
            store._write(
                lambda db, run=run, status=status: db.execute(
                    "UPDATE runs SET status = ?, attempt = 1 WHERE id = ?", (status, run)
                )
            )
        )

    assert done(store.prune_runs(cutoff())) == 4

    assert sorted(
        run.id for run in done(store.runs(filter=RunFilter(statuses=("stopped", "suspended", "queued"))))
    ) == sorted(waiting)


async def _map(store: SqlStore, batch: str, asked: list[str]) -> list[Any]:
    def answer(messages: Any, info: Any) -> str:
        asked.append(str(messages[0].parts[-1].content))
        return "answer"

    runtime = runtime_on(store, agent("main", script(answer)))
    try:
        return [each.output async for each in runtime.map(["a", "b", "c"], batch=batch)]
    finally:
        await runtime.aclose()


def test_a_batch_is_deleted_once_all_of_its_inputs_ended_long_ago(store: SqlStore) -> None:
    if not store._opened.closes:
        pytest.skip("batches need a store on disk")
    asked: list[str] = []
    done(_map(store, "words", asked))
    make_old(store, "words-1", "words-2")

    assert done(store.prune_runs(cutoff())) == 0
    assert done(_map(store, "words", asked)) == ["answer"] * 3
    assert len(asked) == 3

    make_old(store, "words-3")
    done(store._write(lambda db: db.execute("UPDATE batches SET created = created - ?", (2 * MONTH,))))
    assert done(store.prune_runs(cutoff())) == 3
    assert rows_in(store) == dict.fromkeys(TABLES, 0)
    done(_map(store, "words", asked))
    assert len(asked) == 6


def test_a_batch_that_is_mapped_again_meanwhile_is_left_alone(store: SqlStore) -> None:
    async def act() -> tuple[str, ...]:
        record = BatchRecord("b", "main", None, "digest", 2, "{}", "{}", None, None, 1, 1.0, 0.0)
        await store._write(lambda db: _add(db, record))
        return (await store._read(lambda db: pruning.old_runs(db, cutoff(), (), (-1.0, ""), 500))).runs

    def _add(db: Any, record: BatchRecord) -> None:
        from llm_do.threads.sql.durable import batch_rows

        batch_rows.add(db, record)
        batch_rows.put(db, "b", [BatchInput(1, '"a"'), BatchInput(2, '"b"')])
        db.execute("UPDATE runs SET status = 'completed', started = 1, finished = 2 WHERE id = 'b-1'")

    assert asyncio.run(act()) == ()
    done(store._write(lambda db: db.execute("UPDATE runs SET status = 'completed', finished = 2 WHERE id = 'b-2'")))
    assert done(store._read(lambda db: pruning.old_runs(db, cutoff(), (), (-1.0, ""), 500))).runs == ("b-2", "b-1")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A project whose runs have changed files, all of them long ago but the last."""
    root = write_desk(tmp_path)
    write_files(root)
    store = open_store(root)
    runs = sorted(done(store.runs()), key=lambda run: run.started)
    make_old(store, *(run.id for run in runs[:-1]))
    done(store.aclose())
    return root


def test_what_is_kept_to_undo_old_runs_is_dropped_with_them(desk: Path) -> None:
    assert len(kept_files(desk)) == 4
    counted = run_forked("runs", "prune", "--older-than", "30d", "--dry-run", cwd=desk)
    assert (counted.code, counted.out.startswith("would delete 3 runs that ended before ")) == (0, True), counted.err
    assert len(kept_files(desk)) == 4

    deleted = run_forked("runs", "prune", "--older-than", "30d", cwd=desk)

    assert (deleted.code, deleted.out.startswith("deleted 3 runs that ended before ")) == (0, True), deleted.err
    assert kept_files(desk) == {"four.md"}
    assert len(run_forked("runs", "list", "--format", "json", cwd=desk).json) == 1
    assert run_forked("runs", "prune", "--older-than", "30d", cwd=desk).out.startswith("deleted 0 runs ")


def test_what_cannot_be_dropped_is_said(desk: Path) -> None:
    lock = desk / ".llm-do" / "undo" / "lock"
    lock.unlink()
    lock.mkdir()

    with pytest.raises(StoreError, match="the runs are deleted, but what is kept to undo them isn't"):
        done(open_store(desk).prune_runs(cutoff()))

    assert len(KeptFolder(desk).records()) == 4
    assert len(ids(open_store(desk))) == 1


def test_when_has_to_be_said_and_understood(desk: Path) -> None:
    missing = run_forked("runs", "prune", cwd=desk)
    assert (missing.code, "--older-than" in missing.err) == (2, True)
    strange = run_forked("runs", "prune", "--older-than", "soon", cwd=desk)
    assert (strange.code, "'soon' is not a day" in strange.err) == (2, True)
