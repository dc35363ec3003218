"""A store on a file system without file locks, as a network drive without its lock service has none."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from llm_do import StoreError
from llm_do.threads import SqliteStore
from llm_do.threads.sqlite.connection import translate_sqlite_errors
from llm_do.threads.sqlite.queue_files import lock_alone
from tests.cli.cli_processes import environment, run_forked, start_in_fork, wait_for, write_project
from tests.support.runs import agent, carry_out, runtime_of
from tests.support.scripted import call, script

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its locks are those of Linux")

WITHOUT = """\
import errno, fcntl, os


def refuse(kind):
    real = getattr(fcntl, kind)

    def call(descriptor, *args):
        if ".llm-do" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        return real(descriptor, *args)

    setattr(fcntl, kind, call)


for kind in KINDS:
    refuse(kind)
"""
"""Code after which kinds of locks don't work on the files of a project's folder."""

NO_LOCKS = "state.db can't be used: its file system has no file locks. Keep the record on another disk (`--store FILE`"


def without(*kinds: str) -> dict[str, str]:
    """The environment of a command for which kinds of locks don't work."""
    return {"TEST_CODE": WITHOUT.replace("KINDS", repr(kinds))}


def test_a_run_without_locks_continues_without_a_record_at_once(tmp_path: Path) -> None:
    root = write_project(tmp_path / "project")
    began = time.monotonic()
    ended = run_forked("run", "x", cwd=root, env=without("fcntl", "flock"))

    assert (ended.code, ended.out) == (0, "answer to x\n")
    assert "this run is not recorded: " in ended.err
    assert NO_LOCKS in ended.err
    assert time.monotonic() - began < 25, "it has waited for a lock that no one holds"


@pytest.mark.parametrize("command", [["run", "x", "--durable"], ["runs", "list"], ["threads", "list"]])
def test_what_needs_a_record_says_that_there_are_no_locks(tmp_path: Path, command: list[str]) -> None:
    root = write_project(tmp_path / "project")
    assert run_forked("run", "x", cwd=root).code == 0
    ended = run_forked(*command, cwd=root, env=without("fcntl", "flock"))

    assert (ended.code, ended.out) == (1, "")
    assert NO_LOCKS in ended.err


def test_a_killed_run_is_resumed_where_there_are_only_the_locks_that_sqlite_needs(tmp_path: Path) -> None:
    agent = "---\nname: main\nmodel: script:answers.yaml\ntools: [block]\n---\nHelp.\n"
    answers = "- tools: [{name: block, args: {seconds: 300}}]\n- text: done"
    root, env = write_project(tmp_path / "project", answers, agent=agent), without("flock")
    with Path(os.devnull).open("r+") as away:
        words = ["run", "x", "--durable", "--run-id", "r", "--approve-all"]
        process = start_in_fork(words, root, [away.fileno()] * 3, environment(**env))
    wait_for(root / "begun")
    running = run_forked("resume", "r", "--in-flight", "done", cwd=root, env=env)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stopped = run_forked("resume", "r", "--in-flight", "done", cwd=root, env=env)

    assert running.code != 0
    assert "running" in running.err
    assert (stopped.code, stopped.out) == (0, "done\n")


def test_a_lock_is_one_processs_with_either_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    numbers = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert [lock_alone(number) for number in numbers] == [True, False]
    os.close(numbers[0])
    assert lock_alone(numbers[1])

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(OSError, match="not implemented"):
        lock_alone(numbers[1])
    os.close(numbers[1])


def test_a_store_whose_process_cannot_be_marked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    async def begin() -> None:
        store = SqliteStore(tmp_path / "state.db")
        try:
            await store.runs()
        finally:
            await store.aclose()

    asyncio.run(begin())
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(StoreError, match="no file locks"):
        asyncio.run(begin())


def test_a_store_whose_locks_fail_while_it_is_open_says_so_at_once_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    async def lose_and_find() -> None:
        store = SqliteStore(tmp_path / "state.db")
        await store.save_user_state("ann", {}, expected=None)
        with monkeypatch.context() as patched:
            patched.setattr(fcntl, "fcntl", refuse)
            with pytest.raises(StoreError, match="no file locks"):
                await store.runs()
            with pytest.raises(StoreError, match="no file locks"):
                await store.save_user_state("ben", {}, expected=None)
        await store.save_user_state("ben", {}, expected=None)
        assert list(await store.runs()) == []
        await store.aclose()

    asyncio.run(lose_and_find())


def test_a_durable_run_whose_store_loses_its_locks_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    def lose() -> str:
        """Lose the lock service."""
        monkeypatch.setattr(fcntl, "fcntl", refuse)
        return "lost"

    options = {"durable": True, "store": SqliteStore(tmp_path / "state.db")}
    runtime = runtime_of([agent("main", script(call("lose"), "done"), tools=[lose])], root=tmp_path, options=options)
    began = time.monotonic()
    result = carry_out(runtime)

    assert isinstance(result.error, StoreError)
    assert "no file locks" in result.error.message
    assert time.monotonic() - began < 8, "it has waited for a lock that no one holds"


FAULTS = {
    "SQLITE_IOERR_LOCK": "its file system has no file locks",
    "SQLITE_IOERR_CORRUPTFS": "the disk reports an error",
    "SQLITE_IOERR_FSYNC": "the disk reports an error",
    "SQLITE_IOERR_WRITE": "the disk may be full",
    "SQLITE_FULL": "the disk may be full",
    "SQLITE_CANTOPEN": "can't be opened",
}


@pytest.mark.parametrize("code", list(FAULTS))
def test_errors_of_sqlite_are_explained_by_their_codes(tmp_path: Path, code: str) -> None:
    import sqlite3

    fault: Any = sqlite3.OperationalError("disk I/O error")
    fault.sqlite_errorname = code
    with pytest.raises(StoreError, match=FAULTS[code]), translate_sqlite_errors(str(tmp_path / "state.db")):
        raise fault
