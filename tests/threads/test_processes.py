"""Several processes on one store: nothing is lost, and the loser of a conflict gets an error."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, UserPromptPart

from llm_do.threads import SqliteStore
from tests.support.history import strict
from tests.threads.thread_support import child, done, record_of, state_file, stored_messages

ROOT = Path(__file__).parents[2]


def prompts(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "threads", "turns"),
    [(2, ["one"], 6), (3, ["a", "b"], 3), (8, ["one"], 3), (3, ["a", "b", "c", "d"], 9)],
)
def test_processes_on_the_same_threads_lose_nothing(
    tmp_path: Path, processes: int, threads: list[str], turns: int
) -> None:
    started = [child("turns_process.py", tmp_path, f"p{n}", turns, *threads, wait=False) for n in range(processes)]
    ends: list[list[str]] = []
    for process in started:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        ends += json.loads(out)

    assert len(ends) == processes * turns * len(threads)
    store = state_file(tmp_path)
    for thread in threads:
        messages = stored_messages(store, thread)
        strict(messages)
        saved = [prompt for name, prompt, how in ends if name == thread and how == "saved"]
        lost = [prompt for name, prompt, how in ends if name == thread and how == "conflict"]
        assert sorted(prompts(messages)) == sorted(saved)
        # Each process's own turns are in its own order.
        for number in range(processes):
            mine = [prompt for prompt in prompts(messages) if prompt.startswith(f"p{number}.")]
            assert mine == sorted(mine, key=lambda text: int(text.split(".")[1]))
        # The losers are kept as branches: nothing is lost.
        kept: list[str] = []
        for tip in record_of(store, thread).branches:
            branch = [each.message for each in asyncio.run(store.history(tip))]
            strict(branch)
            kept += prompts(branch)[-1:]
        assert sorted(kept) == sorted(lost)
    statuses = {run.status for run in asyncio.run(store.runs())}
    assert statuses <= {"completed", "failed"}
    db = sqlite3.connect(tmp_path / ".llm-do" / "state.db")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    asyncio.run(store.aclose())


def test_a_process_with_an_unused_store_exits_quietly(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\nfrom llm_do.threads import SqliteStore\nstore = SqliteStore(pathlib.Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "state.db")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_lists_of_threads_and_runs_import_no_messages() -> None:
    program = (
        "import sys, llm_do.cli.actions.records.stored_threads, llm_do.cli.actions.records.stored_runs\n"
        "print([name for name in ('pydantic_ai', 'httpx', 'rich') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ended.stdout == "[]\n", ended.stderr


def test_a_store_works_when_no_thread_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    store = SqliteStore(tmp_path / "a.db")

    assert done(store.threads()) == []
    done(store.aclose())
    assert done(store.threads()) == []
    done(store.aclose())
