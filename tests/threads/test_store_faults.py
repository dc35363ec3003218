"""Faults of a store's file: they are reported clearly, and earlier data survives."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do import Runtime, StoreError, UsageError
from llm_do.runtime.record.store.store_writes import Batch, RunEnd
from llm_do.runtime.record.stored_records import RunRecord
from llm_do.threads import SqliteStore, ThreadConfig
from llm_do.threads.opened_stores import open_store
from llm_do.threads.sql import migrations
from llm_do.threads.sql.runs import process_runs
from llm_do.threads.sqlite.connection import SqliteConnection, translate_sqlite_errors
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import script
from tests.threads.thread_support import (
    child,
    on_thread,
    prompts,
    record_of,
    state_file,
    store_of_another_process,
    stored_messages,
)


def talker(root: Path, **options: Any) -> Runtime:
    return runtime_of([agent("main", script("ok"))], root=root, options=options)


def test_the_store_folder_is_created_with_a_gitignore(tmp_path: Path) -> None:
    on_thread(talker(tmp_path), "hello")

    assert "*" in (tmp_path / ".llm-do" / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert (tmp_path / ".llm-do" / "state.db").stat().st_mode & 0o077 == 0
    db = sqlite3.connect(tmp_path / ".llm-do" / "state.db")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_a_store_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    on_thread(talker(tmp_path), "hello")
    db = sqlite3.connect(tmp_path / ".llm-do" / "state.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = (tmp_path / ".llm-do" / "state.db").read_bytes()

    result = on_thread(talker(tmp_path), "hello")[0]

    assert isinstance(result.error, StoreError)
    assert "newer llm-do (store version 99" in result.error.message

    assert (tmp_path / ".llm-do" / "state.db").read_bytes() == before


@pytest.mark.parametrize("damage", [b"no database at all" * 100, None])
def test_a_damaged_file_is_named_and_not_touched(tmp_path: Path, damage: bytes | None) -> None:
    on_thread(talker(tmp_path), "hello")
    path = tmp_path / ".llm-do" / "state.db"
    data = damage or path.read_bytes()[:100] + b"\xff" * 8000 + path.read_bytes()[8100:]
    path.write_bytes(data)

    result = on_thread(talker(tmp_path), "again")[0]

    assert result.status == "failed"
    assert isinstance(result.error, StoreError)
    assert result.error.message.startswith(f"{path} is damaged")
    assert "Move the file away" in str(result.error.hint)
    assert path.read_bytes() == data


def test_a_run_without_a_thread_continues_when_the_store_is_damaged(tmp_path: Path) -> None:
    (tmp_path / ".llm-do").mkdir()
    (tmp_path / ".llm-do" / "state.db").write_bytes(b"no database" * 1000)
    notices: list[str] = []
    runtime = talker(tmp_path, record=True)
    object.__setattr__(runtime.config, "notice", notices.append)

    assert carry_out(runtime).status == "completed"
    assert len(notices) == 1
    assert "not recorded" in notices[0]


READ_ONLY = """
import os, sys
from llm_do import Project, Runtime
from tests.support.runs import agent, project_of, runtime_of
from tests.support.scripted import script
from pathlib import Path
from llm_do.threads import memory_store
import asyncio
notices = []
warm = runtime_of([agent("main", script("ok"))], options={"store": memory_store()})
asyncio.run(warm.execute("x", thread_id="t"))
if os.getuid() == 0:
    os.setresuid(65534, 65534, 0)
runtime = runtime_of([agent("main", script("ok"))], root=Path(sys.argv[1]), options={"record": True})
object.__setattr__(runtime.config, "notice", notices.append)
result = asyncio.run(runtime.execute("x", thread_id="t"))
again = asyncio.run(runtime.execute("y", thread_id="t"))
print(result.status, len(again.messages), notices)
if os.getresuid()[2] == 0:
    os.setresuid(0, 0, 0)
"""


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Create a separate folder: concurrent test runs reset the permissions of pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such rights there")
@pytest.mark.parametrize("used", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_read_only_project_gives_a_warning_and_the_run_continues_unrecorded(open_to_all: Path, used: bool) -> None:
    root = open_to_all / "project"
    root.mkdir()
    if used:
        on_thread(talker(root), "before")
    program = open_to_all / "program.py"
    program.write_text(READ_ONLY, encoding="utf-8")
    for folder in [*root.rglob("*"), root]:
        folder.chmod(0o555 if folder.is_dir() else 0o444)

    process = child(str(program), root)
    for folder in [root, *root.rglob("*")]:
        folder.chmod(0o755)
    out, err = process.communicate()

    assert "completed 4" in out, err
    assert out.count("not recorded") == 1
    assert (root / ".llm-do").exists() == used


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("link", [".llm-do", ".llm-do/state.db"])
def test_nothing_is_recorded_through_a_link(tmp_path: Path, link: str) -> None:
    outside, root = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(outside if link == ".llm-do" else outside / "state.db")
    notices: list[str] = []
    runtime = talker(root, record=True)
    object.__setattr__(runtime.config, "notice", notices.append)

    first, second = on_thread(runtime, "x", "y")

    assert [first.status, second.status, len(second.messages)] == ["completed", "completed", 4]
    assert list(outside.iterdir()) == []
    assert len(notices) == 1
    assert notices[0].startswith(f"this run is not recorded: {root / link} is a link")
    assert (
        "Replace the link with a folder" if link == ".llm-do" else "Replace the link with the file itself"
    ) in notices[0]
    with pytest.raises(StoreError, match="is a link"):
        open_store(root)


FULL = """
import asyncio, json, resource, signal, sys
from pathlib import Path
from llm_do import tool
from llm_do.runtime.context.call_context import current_call
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
root = Path(sys.argv[1])
notices = []

@tool(approval="allow")
def fill() -> str:
    "Fill."
    return "x" * 60000

async def main():
    runtime = runtime_of([agent("main", script(call("fill"), "ok"), tools=[fill])], root=root)
    object.__setattr__(runtime.config, "notice", notices.append)
    first = await runtime.execute("first", thread_id="t")
    size = (root / ".llm-do" / "state.db").stat().st_size + 120_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    statuses = []
    for number in range(6):
        result = await runtime.execute(f"more {number}", thread_id="t")
        statuses.append(result.status)
        error = str(result.error)
        if result.status != "completed":
            break
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = await runtime.execute("after", thread_id="t")
    print(json.dumps([first.status, statuses, error, after.status, notices]))
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such limit there")
@pytest.mark.slow
def test_a_full_disk_is_reported_and_earlier_turns_survive(tmp_path: Path) -> None:
    import json

    program = tmp_path / "program.py"
    program.write_text(FULL, encoding="utf-8")
    root = tmp_path / "project"
    root.mkdir()

    out, err = child(str(program), root).communicate()

    assert out, err
    first, statuses, error, after, notices = json.loads(out)
    assert first == "completed"
    assert statuses[-1] == "failed"
    assert "state.db can't be written" in error
    assert after == "completed"
    stored = stored_messages(state_file(root))
    from pydantic_ai.messages import UserPromptPart

    from tests.support.history import strict

    strict(stored)
    asked = [part.content for message in stored for part in message.parts if isinstance(part, UserPromptPart)]
    assert asked[: len(statuses)] == ["first", *(f"more {number}" for number in range(len(statuses) - 1))]
    assert asked[-1] == "after"
    assert all("can't be written" in each for each in notices)


def test_a_run_whose_end_cannot_be_saved_is_finished_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "state.db")

    def refuse(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as once:
        once.setattr(process_runs, "finish", refuse)
        failed = on_thread(talker(tmp_path, store=store), "first")[0]
    asyncio.run(store.aclose())
    assert store._worker._connection is None, "it is still open"
    notices: list[str] = []
    runtime = talker(tmp_path, store=store)
    object.__setattr__(runtime.config, "notice", notices.append)
    then = on_thread(runtime, "second")[0]

    assert isinstance(failed.error, StoreError)
    assert then.status == "completed"
    assert prompts(stored_messages(store)) == ["first", "second"]
    assert [run.status for run in asyncio.run(store.runs())] == ["completed", "interrupted"]
    assert notices == ["thread 't': its last run was interrupted; the work it had saved is kept"]
    asyncio.run(store.aclose())


@pytest.mark.parametrize("version", range(len(migrations.MIGRATIONS)))
def test_a_store_of_any_earlier_version_is_migrated(tmp_path: Path, version: int) -> None:
    path = tmp_path / ".llm-do" / "state.db"
    path.parent.mkdir()
    db = sqlite3.connect(path, isolation_level=None)
    migrations.migrate(SqliteConnection(db, "store"), "old", migrations.MIGRATIONS[:version])
    if version:
        from llm_do.threads.store.codec import message_text
        from tests.threads.thread_support import user_text

        db.execute(
            "INSERT INTO threads VALUES ('', 't', '{}', '{\"n\": 1}', '{}', 'm', '[]', '{}', 'r', 'u', 1.0, 1.0)"
        )
        db.execute("INSERT INTO messages VALUES ('m', NULL, 0, 1.0, NULL, NULL, ?)", (message_text(user_text("old")),))
    assert SqliteConnection(db, "").version() == version
    db.close()

    on_thread(talker(tmp_path), "new")

    store = state_file(tmp_path)
    assert len(stored_messages(store)) == (3 if version else 2)
    assert record_of(store).state == ({"n": 1} if version else {})
    assert [run.status for run in asyncio.run(store.runs())] == ["completed"]


def test_a_failed_migration_keeps_the_previous_version(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db", isolation_level=None)

    def broken(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE half (a)")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        migrations.migrate(SqliteConnection(db, "store"), "x", [*migrations.MIGRATIONS, broken])

    assert SqliteConnection(db, "").version() == len(migrations.MIGRATIONS)
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    db.close()


def test_a_full_disk_during_a_migration_is_the_error_that_is_reported(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    migrations.migrate(SqliteConnection(db, "store"), "x", migrations.MIGRATIONS[:1])
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")

    with pytest.raises(StoreError, match="x can't be written, the disk may be full"), translate_sqlite_errors("x"):
        migrations.migrate(SqliteConnection(db, "store"), "x")

    assert SqliteConnection(db, "").version() == 1
    db.close()


def test_the_id_of_a_run_that_is_alive_in_another_process_is_refused(tmp_path: Path) -> None:
    async def two_processes() -> None:
        one, other = SqliteStore(tmp_path / "state.db"), store_of_another_process(tmp_path / "state.db")
        record = RunRecord("r", "running", "main", "t", None, 1.0)
        await one.begin_run(record, ThreadConfig())
        with pytest.raises(UsageError, match="is still running"):
            await other.begin_run(record, ThreadConfig())
        # Without its lock it is gone, and its run has been interrupted.
        os.close(one._owners._descriptor)  # type: ignore[arg-type]
        one._owners._descriptor = None
        with pytest.raises(UsageError, match=r"has already ended \(interrupted\)"):
            await other.begin_run(record, ThreadConfig())
        one._active.clear()
        await one.aclose()
        await other.aclose()

    asyncio.run(two_processes())


def test_a_store_closed_while_another_thread_starts_a_run_counts_as_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, closing = SqliteStore(tmp_path / "state.db"), list[threading.Thread]()
    claim = store._owners.claim

    def claim_while_it_is_closed() -> str:
        owner = claim()
        closing.append(threading.Thread(target=lambda: asyncio.run(store.aclose())))
        closing[0].start()
        closing[0].join(0.1)  # it would be through by then, if nothing held it up
        return owner

    monkeypatch.setattr(store._owners, "claim", claim_while_it_is_closed)
    asyncio.run(store.begin_run(RunRecord("r", "running", "main", "t", None, 1.0), ThreadConfig()))
    closing[0].join()

    other = store_of_another_process(tmp_path / "state.db")
    assert asyncio.run(other.recover()) == []
    asyncio.run(store.finish_run(RunEnd(Batch("r"), "completed", 2.0)))
    for each in (store, other):
        asyncio.run(each.aclose())


def test_a_live_process_is_not_mistaken_for_a_dead_one(tmp_path: Path) -> None:
    async def two_stores() -> None:
        one, other = SqliteStore(tmp_path / "state.db"), store_of_another_process(tmp_path / "state.db")
        await one.begin_run(RunRecord("r", "running", "main", "t", None, 1.0), ThreadConfig())
        assert await other.recover() == []
        begun = await other.begin_run(RunRecord("s", "running", "main", "t", None, 2.0), ThreadConfig())
        assert begun.recovered == []
        # The lock goes with the process; only an unlocked file is left.
        os.close(one._owners._descriptor)  # type: ignore[arg-type]
        one._owners._descriptor = None
        assert await other.recover() == ["r"]
        one._active.clear()
        other._active.clear()
        await one.aclose()
        await other.aclose()

    asyncio.run(two_stores())
