"""A store never loses what it has committed: only its one connection opens the file, and a lost file is noticed."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do import StoreError
from llm_do.files.refusals import FileRefusedError
from llm_do.files.root import Root
from llm_do.threads import SqliteStore, ThreadRecord
from tests.support.runs import agent, runtime_of
from tests.support.scripted import script
from tests.threads.thread_support import (
    child,
    done,
    on_thread,
    prompts,
    state_file,
    store_of_another_process,
    stored_messages,
    talk,
)


@pytest.mark.slow
def test_turns_that_were_saved_survive_other_processes_reading_the_file_and_a_kill(tmp_path: Path) -> None:
    chat = child("chat_process.py", tmp_path, wait=False, stdin=subprocess.PIPE)
    assert chat.stdin is not None
    assert chat.stdout is not None
    lines: list[str] = []

    def until(last: str) -> None:
        for line in chat.stdout or ():
            lines.append(line.strip())
            if lines[-1] == last:
                return

    until("ready")
    other = state_file(tmp_path)
    assert len(stored_messages(other)) == 6, lines
    done(other.aclose())
    assert (tmp_path / ".llm-do" / "state.db-wal").exists(), "the other process took the chat for dead"
    chat.stdin.write("go on\n")
    chat.stdin.flush()
    until("turn completed")
    until("turn completed")
    os.kill(chat.pid, signal.SIGKILL)
    chat.communicate()

    assert [line for line in lines if line.startswith("opened")] == []
    saved = [message for message in prompts(stored_messages(state_file(tmp_path))) if isinstance(message, str)]
    assert saved == ["first", "read", "more", "and more"]


def test_stores_of_one_file_in_a_process_share_a_connection(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    one, other = SqliteStore(tmp_path / "real" / "a.db"), SqliteStore(tmp_path / "link" / "a.db")

    done(talk(one, 1))
    done(other.aclose())

    assert one._worker is other._worker
    assert len(stored_messages(other)) == 2
    done(one.aclose())


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
def test_a_file_in_use_is_not_opened_by_any_name(tmp_path: Path, ending: str) -> None:
    store = SqliteStore(tmp_path / "state.db")
    done(talk(store, 1))
    (tmp_path / "notes.txt").hardlink_to(tmp_path / f"state.db{ending}")

    with pytest.raises(FileRefusedError, match="keeps its records in it"):
        Root(tmp_path).read("notes.txt", limit=10)

    done(store.aclose())
    if not ending:
        assert Root(tmp_path).read("notes.txt", limit=6) == b"SQLite"


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_owner_may_read_a_store(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = SqliteStore(tmp_path / "state.db")
        done(talk(store, 1))
    finally:
        os.umask(before)

    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("state.db*")} == {0o600}
    done(store.aclose())


def test_a_log_deleted_under_a_connection_is_an_error(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    done(talk(store, 1))
    (tmp_path / "state.db-wal").unlink()

    for _ in range(2):
        with pytest.raises(StoreError, match=r"state\.db-wal was deleted while"):
            done(talk(store, 1))

    done(store.aclose())
    with pytest.raises(StoreError, match=r"state\.db-wal was deleted while"):
        done(SqliteStore(tmp_path / "state.db").threads())


def test_a_file_replaced_under_a_connection_is_an_error_once(tmp_path: Path) -> None:
    store, new = SqliteStore(tmp_path / "state.db"), SqliteStore(tmp_path / "new.db")
    done(talk(store, 1))
    done(new.save_thread(ThreadRecord("new"), expected=None))
    done(new.aclose())
    for path in tmp_path.glob("state.db*"):
        path.unlink()
    (tmp_path / "new.db").rename(tmp_path / "state.db")

    with pytest.raises(StoreError, match="was moved, deleted or replaced while it was in use"):
        done(talk(store, 1))

    done(store.save_thread(ThreadRecord("newer"), expected=None))
    assert {record.id for record in done(store.threads())} == {"new", "newer"}
    done(store.aclose())


def test_a_run_whose_store_is_deleted_fails(tmp_path: Path) -> None:
    async def delete(messages: list[object], info: object) -> str:
        for path in (tmp_path / ".llm-do").glob("state.db*"):
            path.unlink()
        return "answer"

    result = on_thread(runtime_of([agent("main", script(delete))], root=tmp_path), "go")[0]

    assert isinstance(result.error, StoreError)
    assert "deleted or replaced" in result.error.message


FORKS = """
import asyncio, os, sys
from pathlib import Path
from llm_do.threads import SqliteStore, ThreadRecord

store = SqliteStore(Path(sys.argv[1]))
save = lambda name: asyncio.run(store.save_thread(ThreadRecord(name), expected=None))
save("parent")
reading, writing = os.pipe()
if (pid := os.fork()) == 0:
    save("child")
    os.read(reading, 1)
    save("late child")
    os._exit(0)
save("parent again")
asyncio.run(store.aclose())
os.write(writing, b"x")
assert os.waitpid(pid, 0)[1] == 0
print(sorted(record.id for record in asyncio.run(store.threads())))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_a_connection_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKS, str(tmp_path / "state.db")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert ended.stdout == "['child', 'late child', 'parent', 'parent again']\n", ended.stderr


BUSY_FORK = """
import asyncio, os, sys, threading
from pathlib import Path
from llm_do import StoreError
from llm_do.threads import SqliteStore
from llm_do.threads.sql import open_store

open_store.FORK_PATIENCE = 0.01
store = SqliteStore(Path(sys.argv[1]))
asyncio.run(store.threads())
started, go_on = threading.Event(), threading.Event()
store._worker.post(lambda db: (started.set(), go_on.wait()))
started.wait()
if (pid := os.fork()) == 0:
    try:
        asyncio.run(store.threads())
    except StoreError as error:
        print(error, flush=True)
    os._exit(0)
go_on.set()
os.waitpid(pid, 0)
print(asyncio.run(store.threads()))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_forked_during_a_transaction_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", BUSY_FORK, str(tmp_path / "state.db")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    said, others = ended.stdout.splitlines()
    assert said == f"{tmp_path / 'state.db'} was in use when this process was forked, so it can't be used here"
    assert others == "[]"


def test_another_connection_may_come_and_go(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "state.db"), store_of_another_process(tmp_path / "state.db")
    done(talk(store, 1))

    assert len(stored_messages(other)) == 2
    done(other.aclose())
    done(talk(store, 1))
    done(store.aclose())

    db = sqlite3.connect(tmp_path / "state.db")
    assert db.execute("SELECT count(*) FROM messages").fetchone() == (4,)
    db.close()
    assert asyncio.run(store.threads())[0].length == 4
    done(store.aclose())


@pytest.mark.skipif(os.name == "nt", reason="the limit is that of SQLite on Unix")
def test_a_path_that_is_too_long_for_sqlite_is_what_the_error_says(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["d" * 100] * 5)
    folder.mkdir(parents=True)

    with pytest.raises(StoreError, match=r"can't be opened: SQLite refuses a path as long as this, of \d+ bytes"):
        asyncio.run(SqliteStore(folder / "state.db").threads())
