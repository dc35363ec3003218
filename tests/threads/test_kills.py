"""Processes that are killed, at every commit and at random: nothing saved is lost, and every effect has its intent."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.history import strict
from tests.support.runs import agent, runtime_of
from tests.support.scripted import script
from tests.threads.thread_support import child, on_thread, prompts, state_file, stored_messages

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes can't be waited for that way"),
]

KILLED, COMMITS, KILLS = signal.SIGKILL, 60, int(os.environ.get("LLM_DO_KILLS", "80"))


class Server:
    """Carries out tasks, one after the other."""

    def __init__(self) -> None:
        self.process = child("fork_server.py", wait=False, stdin=subprocess.PIPE)

    def do(self, root: Path, mark: str, **task: Any) -> list[int]:
        """Carry out a task, and return the exit status of each process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        task = {"root": str(root), "mark": mark, "turns": 2, "threads": ["t"], "tools": True, **task}
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.process.stderr and self.process.stderr.read()
        return json.loads(answer)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a server for the tests of this module."""
    started = Server()
    yield started
    started.process.communicate()


def lines(root: Path, name: str) -> list[list[Any]]:
    """Read what the processes have done; a line that a kill cut off doesn't count."""
    file = root / name
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def check_journal(root: Path) -> None:
    """Check that every effect has its intent on disk, and that no event is missing."""
    with closing(sqlite3.connect(root / ".llm-do" / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'events'").fetchone():
            assert lines(root, "effects") == []
            return
        called = "SELECT run, json_extract(data, '$.tool_call_id') FROM events WHERE type = 'tool_call'"
        intents = set(db.execute(called))
        seqs: dict[str, list[int]] = defaultdict(list)
        for run, seq in db.execute("SELECT run, seq FROM events ORDER BY run, seq"):
            seqs[run].append(seq)
    effects = [(run, item) for run, item in lines(root, "effects")]
    assert set(effects) <= intents
    assert len(set(effects)) == len(effects)
    assert all(each == list(range(len(each))) for each in seqs.values())


def check(root: Path, mark: str) -> None:
    """Check everything that must hold after a kill, and that the next turn works."""
    check_journal(root)
    (result,) = on_thread(runtime_of([agent("main", script("fine"))], root=root), f"{mark}: still there?")
    assert result.status == "completed", result.error
    messages = stored_messages(state_file(root))
    strict(messages)
    assert {status for _, status, _ in lines(root, "turns")} <= {"completed"}
    asked = [prompt for prompt in prompts(messages) if "?" not in prompt]
    ended = [prompt for prompt, _, _ in lines(root, "turns")]
    # Every turn that has ended is there, in order; of the one that was killed, what had been saved.
    assert [prompt for prompt in asked if prompt in ended] == ended
    assert len(asked) <= len(ended) + len({mark for mark, *_ in (prompt.split(".") for prompt in asked)})


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_at_any_commit_loses_nothing(tmp_path: Path, server: Server, moment: str) -> None:
    for commit in range(COMMITS):
        root = tmp_path / str(commit)
        root.mkdir()
        (status,) = server.do(root, "k", commit=commit, moment=moment)
        if (root / ".llm-do").exists() and (root / ".llm-do" / "state.db").stat().st_size:
            check(root, "k")
        if status == 0:
            break
    assert 10 < commit < COMMITS - 1
    assert status == 0


def test_a_tool_killed_in_its_first_statement_has_left_its_intent(tmp_path: Path, server: Server) -> None:
    for effect in range(8):
        assert server.do(tmp_path, f"e{effect}", effect=effect) == [KILLED]
        check(tmp_path, f"e{effect}")
    assert len(lines(tmp_path, "effects")) == sum(range(1, 9))


def test_a_thread_survives_hundreds_of_kills_while_others_come_and_go(tmp_path: Path, server: Server) -> None:
    dice = random.Random(7)
    readers = child("reader_process.py", tmp_path, wait=False, stdin=subprocess.PIPE)
    for kill in range(KILLS):
        server.do(tmp_path, f"r{kill}", effects=dice.randrange(12), seconds=dice.random() * 0.05, turns=9)
        check(tmp_path, f"r{kill}")
    _, err = readers.communicate()
    assert err == ""
    assert len(lines(tmp_path, "turns")) > KILLS / 10


def test_twenty_processes_write_in_turn(tmp_path: Path, server: Server) -> None:
    threads = [f"t{number}" for number in range(20)]

    assert server.do(tmp_path, "w", threads=threads, turns=15, tools=False) == [0] * 20

    turns = lines(tmp_path, "turns")
    assert [status for _, status, _ in turns] == ["completed"] * 20 * 15
    took = [seconds for prompt, _, seconds in turns if not prompt.endswith(".0")]  # the first one builds the agent
    assert max(took) <= 5 * statistics.median(took), (statistics.median(took), sorted(took)[-5:])


def test_twenty_processes_on_one_thread_are_all_saved(tmp_path: Path, server: Server) -> None:
    assert server.do(tmp_path, "s", threads=["t"] * 20, turns=3, tools=False) == [0] * 20

    assert {status for _, status, _ in lines(tmp_path, "turns")} == {"completed"}
    asked = prompts(stored_messages(state_file(tmp_path)))
    assert sorted(asked) == sorted(f"s.{process}.{turn}" for process in range(20) for turn in range(3))
