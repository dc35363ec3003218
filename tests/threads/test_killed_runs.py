"""Killed processes: the store stays consistent, no finished work is lost, and the next turn works."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

from llm_do import tool
from llm_do.runtime.record.store.store_writes import Batch, EventRow, MessageRow, PendingWrites
from llm_do.runtime.record.stored_records import Filter, RunRecord
from llm_do.threads import SqliteStore, ThreadConfig
from llm_do.threads.store.codec import message_text
from tests.support.history import results_of, strict
from tests.support.runs import agent, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import child, on_thread, record_of, state_file, stored_messages, user_text


def kill_at_random(root: Path, seed: int) -> list[str]:
    """Kill the worker after a random line at a random moment, and return its output."""
    dice = random.Random(seed)
    process = child("worker_process.py", root, "t", 1000, f"k{seed}", wait=False)
    assert process.stdout is not None
    lines: list[str] = []
    until = dice.randrange(1, 30)
    for line in process.stdout:
        lines.append(line.strip())
        if len(lines) >= until:
            break
    # Not only at the end of a line, but somewhere in the work after it.
    pause = threading.Event()
    pause.wait(dice.random() * 0.02)
    os.kill(process.pid, signal.SIGKILL)
    lines += [line.strip() for line in process.stdout]
    process.wait()
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()
    return lines


def check_after_kill(root: Path, output: list[str], mark: str) -> None:
    with closing(sqlite3.connect(root / ".llm-do" / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    runtime = runtime_of([agent("main", script("fine"))], root=root)
    result = on_thread(runtime, "still there?")[0]
    assert result.status == "completed", result.error
    messages = stored_messages(state_file(root))
    strict(messages)
    prompts = [p.content for m in messages for p in m.parts if isinstance(p, UserPromptPart)]
    # Every reported turn is there, complete and in order.
    turns = [line.split()[1] for line in output if line.startswith("turn")]
    mine = [prompt for prompt in prompts if str(prompt).startswith(f"{mark}.")]
    assert mine[: len(turns)] == turns
    # Every reported step: a response, and the results of its calls.
    steps = sum(line.startswith("step") for line in output)
    responses = [m for m in messages if m.kind == "response" and _run_of(m, messages, mark)]
    assert len(responses) >= steps - 1, (len(responses), steps)
    results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part for part in results if part.outcome not in ("success", "interrupted")] == []
    # The state includes the effects of every recorded result.
    done = record_of(state_file(root)).state.get("done", [])
    worked = [str(part.content).removeprefix("worked on ") for part in results if part.outcome == "success"]
    assert set(worked) <= set(done)
    assert prompts[-1] == "still there?"


def _run_of(response: object, messages: list, mark: str) -> bool:
    prompt = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                prompt = str(part.content)
        if message is response:
            return prompt.startswith(f"{mark}.")
    return False


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_process_killed_at_a_random_moment_loses_no_finished_work(tmp_path: Path, seed: int) -> None:
    output = kill_at_random(tmp_path, seed)
    check_after_kill(tmp_path, output, f"k{seed}")


@pytest.mark.slow
def test_one_thread_survives_many_kills(tmp_path: Path) -> None:
    for seed in range(int(os.environ.get("LLM_DO_KILLS", "60"))):
        output = kill_at_random(tmp_path, 1000 + seed)
        check_after_kill(tmp_path, output, f"k{1000 + seed}")


def kill_after_result(root: Path) -> Path:
    """Copy the folder of a run whose quick tool has ended and whose slow one hasn't, as a kill leaves it."""

    @tool(approval="allow")
    async def quick() -> str:
        """Be quick."""
        return "done quickly"

    @tool(approval="allow")
    async def slow() -> str:
        """Never return."""
        await asyncio.Event().wait()
        return "never"

    runtime = runtime_of(
        [agent("main", script([call("slow", {}, "s"), call("quick", {}, "q")]), tools=[quick, slow])], root=root
    )

    async def until_written() -> None:
        """Run until the quick tool's result is on disk, then stop as if killed."""
        heard = asyncio.Event()
        runtime.on("tool_result", lambda _: heard.set())
        task = asyncio.ensure_future(runtime.execute("go", thread_id="t"))
        await heard.wait()
        store = state_file(root)
        while not await store.observations(Filter(types=("tool_result",))):
            pass
        await store.aclose()
        _copy(root, root / "after")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await runtime.aclose()

    asyncio.run(until_written())
    return root / "after"


def test_results_recorded_before_the_kill_are_kept_and_open_calls_are_interrupted(tmp_path: Path) -> None:
    root = kill_after_result(tmp_path)
    on_thread(runtime_of([agent("main", script("fine"))], root=root), "and now?")

    messages = stored_messages(state_file(root))
    strict(messages)
    assert [(call_id, outcome) for call_id, outcome, _ in results_of(messages)] == [
        ("s", "interrupted"),
        ("q", "success"),
    ]
    assert results_of(messages)[1][2] == "done quickly"


def test_a_killed_run_ends_after_its_last_event_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, now = kill_after_result(tmp_path), time.time()
    monkeypatch.setattr("time.time", lambda: now - 86_400)
    on_thread(runtime_of([agent("main", script("fine"))], root=root), "and now?")

    last = asyncio.run(state_file(root).observations(Filter(types=("run_failed",))))[0]
    events = asyncio.run(state_file(root).observations(Filter(run_id=last.run_id)))
    assert [event.time for event in events] == sorted(event.time for event in events)


def test_a_call_with_a_reused_id_does_not_get_the_earlier_calls_result(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    async def killed() -> None:
        await store.begin_run(RunRecord("r", "running", "main", "t", None, 1.0), ThreadConfig())
        ask = ModelResponse([call("add", {"a": 1}, "0")])
        confirmed = ModelRequest([ToolReturnPart("add", "first", tool_call_id="0")])
        messages = [user_text("go"), ask, confirmed, ask]
        rows = [
            MessageRow(f"m{n}", f"m{n - 1}" if n else None, n, float(n), message_text(each))
            for n, each in enumerate(messages)
        ]
        result = {"depth": 1, "status": "success", "tool_call_id": "0", "tool_name": "add", "result": "first"}
        events = [EventRow(0, 1.5, "tool_result", json.dumps(result))]
        await store.write(Batch("r", events, rows, draft=PendingWrites("m3")))
        store._active.clear()
        await store.recover()

    asyncio.run(killed())

    strict(stored_messages(store), reused_ids=True)
    assert [outcome for _, outcome, _ in results_of(stored_messages(store))] == ["success", "interrupted"]
    asyncio.run(store.aclose())


def _copy(root: Path, target: Path) -> None:
    """Copy the store's current file, without the lock of the process that writes it."""
    (target / ".llm-do").mkdir(parents=True)
    source = sqlite3.connect(root / ".llm-do" / "state.db")
    copy = sqlite3.connect(target / ".llm-do" / "state.db")
    source.backup(copy)
    source.close()
    copy.close()


@pytest.mark.slow
def test_a_killed_run_is_interrupted_in_the_journal(tmp_path: Path) -> None:
    kill_at_random(tmp_path, 77)

    async def look() -> tuple[list[str], list[str], list[str]]:
        store = state_file(tmp_path)
        recovered = await store.recover()
        runs = await store.runs()
        ends = [(await store.observations(Filter(run_id=run.id), limit=1))[0].type for run in runs]
        again = await store.recover()
        await store.aclose()
        assert again == []
        return recovered, [run.status for run in runs], ends

    recovered, statuses, ends = asyncio.run(look())
    assert len(recovered) <= 1
    assert "running" not in statuses
    assert set(ends) <= {"run_finished", "run_failed"}
