"""Concurrent runs on one thread: the loser restarts, or fails and is kept as a branch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_do import Runtime, ThreadConflict, tool
from llm_do.project.project import Budget
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.context.call_context import current_call
from llm_do.runtime.record.store.store_writes import Batch, MessageRow, PendingWrites
from llm_do.runtime.record.stored_records import Filter, RunRecord
from llm_do.threads import Conversations, SqliteStore, StateManager, memory_store
from llm_do.threads.store.codec import message_text
from tests.support.history import strict
from tests.support.runs import agent, heard, project_of
from tests.support.scripted import call, script
from tests.threads.thread_support import add, on_thread, prompts, record_of, runtime_on, stored_messages, user_text


def test_a_losing_run_restarts_if_nothing_with_effects_has_run(store: Any) -> None:
    other = runtime_on(store, agent("main", script("other")))

    async def interfere(messages: list[Any], info: object) -> str:
        if len(model.asked) == 1:
            await other.execute("from elsewhere", thread_id="t")
        return f"mine {len(messages)}"

    model = script(interfere)
    runtime = runtime_on(store, agent("main", model))
    ear = heard(runtime)

    result = on_thread(runtime, "mine")[0]

    assert result.status == "completed"
    assert result.output == "mine 3"
    assert prompts(stored_messages(store)) == ["from elsewhere", "mine"]
    assert ear.types.count("run_started") == ear.types.count("run_finished") == 1
    assert "retry" in ear.types
    assert [event.seq for event in ear.events] == list(range(len(ear.events)))
    assert result.usage.requests == 2
    assert record_of(store).branches == ()


def test_runs_at_once_on_one_thread_are_all_saved_and_lose_once_at_most(store: Any) -> None:
    model = script("answer")
    runtime = runtime_on(store, agent("main", model))

    async def at_once() -> list[Any]:
        return await asyncio.gather(*(runtime.execute(f"q{number}", thread_id="t") for number in range(6)))

    results = asyncio.run(at_once())

    assert [result.status for result in results] == ["completed"] * 6
    assert sorted(prompts(stored_messages(store))) == [f"q{number}" for number in range(6)]
    strict(stored_messages(store))
    assert len(model.asked) <= 11
    assert max(result.usage.requests for result in results) == 2


def test_a_run_that_loses_after_a_tool_call_fails_and_is_kept_as_a_branch(store: Any) -> None:
    other = runtime_on(store, agent("main", script("other")))

    async def interfere(messages: list[Any], info: object) -> str:
        await other.execute("from elsewhere", thread_id="t")
        return "late"

    runtime = runtime_on(store, agent("main", script(call("add", a=1, b=1), interfere), tools=[add]))

    result = on_thread(runtime, "mine")[0]

    assert isinstance(result.error, ThreadConflict)
    assert result.exit_code == 1
    assert prompts(stored_messages(store)) == ["from elsewhere"]
    record = record_of(store)
    kept = [each.message for each in asyncio.run(store.history(record.branches[0]))]
    assert prompts(kept) == ["mine"]
    strict(kept)
    assert kept == result.messages
    assert {run.status for run in asyncio.run(store.runs())} == {"completed", "failed"}

    asyncio.run(Conversations(store).branch("t", from_entry=record.branches[0], expected_revision=record.revision))
    assert prompts(stored_messages(store)) == ["mine"]


def test_settings_can_change_during_a_run(store: Any) -> None:
    async def change(messages: list[Any], info: object) -> str:
        await StateManager(store).set_thread_config("t", {"history_limit": 5})
        return "ok"

    assert on_thread(runtime_on(store, agent("main", script(change))), "x")[0].status == "completed"
    assert record_of(store).config.history_limit == 5
    assert len(stored_messages(store)) == 2


@pytest.mark.slow
def test_fifty_threads_at_once_do_not_mix(store: Any) -> None:
    model = script(call("add", a=1, b=2), "3")
    runtime = runtime_on(store, agent("main", model, tools=[add]))

    async def all_at_once() -> None:
        await asyncio.gather(*(runtime.run(f"q{n}", thread_id=f"t{n}") for n in range(50)))

    asyncio.run(all_at_once())

    for number in range(50):
        assert prompts(stored_messages(store, f"t{number}")) == [f"q{number}"]
        strict(stored_messages(store, f"t{number}"))


def test_a_budget_counts_losing_attempts() -> None:
    store = memory_store()
    other = runtime_on(store, agent("main", script("other")))

    async def interfere(messages: list[Any], info: object) -> str:
        await other.execute("from elsewhere", thread_id="t")
        return "late"

    runtime = Runtime(project_of([agent("main", script(interfere))], budget={"requests": 2}), store=store)
    assert runtime.config.settings.budget == Budget(requests=2)

    result = on_thread(runtime, "mine")[0]

    assert result.status == "limited"
    assert result.usage.requests == 2


@pytest.mark.parametrize("thread", ["t", "another"])
def test_a_run_that_loses_over_its_users_state_fails_with_a_result(store: Any, thread: str) -> None:
    @tool(approval="allow")
    def count(by: int) -> str:
        """Count."""
        state = current_call().user.state
        state["n"] = state.get("n", 0) + by
        return "counted"

    other = runtime_on(store, agent("main", script(call("count", by=1), "other"), tools=[count]))

    async def interfere(messages: list[Any], info: object) -> str:
        await other.execute("from elsewhere", thread_id=thread, user_id="ann")
        return "late"

    runtime = runtime_on(store, agent("main", script(call("count", by=5), interfere), tools=[count]))
    ear = heard(runtime)

    result = on_thread(runtime, "mine", user="ann")[0]

    assert isinstance(result.error, ThreadConflict)
    assert ear.types[-1] == "run_failed"
    assert asyncio.run(store.user_state("ann"))[0] == {"n": 1}
    assert {run.status for run in asyncio.run(store.runs())} == {"completed", "failed"}


def test_a_thread_deleted_during_a_run_stays_deleted(store: Any) -> None:
    async def delete(messages: list[Any], info: object) -> str:
        assert await store.delete_thread("t")
        return "late"

    result = on_thread(runtime_on(store, agent("main", script(call("add", a=1, b=1), delete), tools=[add])), "mine")[0]

    assert isinstance(result.error, ThreadConflict)
    assert "was deleted" in result.error.message
    assert asyncio.run(store.thread("t")) is None
    assert asyncio.run(store.observations(Filter(thread_id="t"))) == []
    assert asyncio.run(store.runs()) == []
    assert left(store) == 0


def test_deleting_a_thread_deletes_the_pending_writes_of_its_killed_run(store: Any) -> None:
    async def killed() -> None:
        await store.begin_run(RunRecord("r", "running", "main", "t", None, 1.0), ThreadConfig())
        row = MessageRow("m", None, 0, 1.0, message_text(user_text("secret")))
        await store.write(Batch("r", (), [row], draft=PendingWrites("m")))
        assert await store.delete_thread("t")

    asyncio.run(killed())

    assert left(store) == 0


def test_a_run_begins_as_quickly_on_a_thread_with_many_runs(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")

    async def begun(id: str) -> int:
        """Begin a run while another one on the thread is open, and count the steps of SQLite's machine in tens."""
        steps: list[int] = []
        await store._write(lambda db: db.set_progress_handler(lambda: steps.append(1), 10))
        await store.begin_run(RunRecord(id, "running", "main", "t", None, 1.0), ThreadConfig())
        await store._write(lambda db: db.set_progress_handler(None, 0))
        return len(steps)

    async def both() -> tuple[int, int]:
        await store.begin_run(RunRecord("open", "running", "main", "t", None, 1.0), ThreadConfig())
        few = await begun("first")
        rows = [(f"ended-{number}",) for number in range(2000)]
        columns = "(id, status, entry, thread, started, owner) VALUES (?, 'completed', 'main', 't', 1.0, '')"
        await store._write(lambda db: db.executemany(f"INSERT INTO runs {columns}", rows))
        return few, await begun("second")

    few, many = asyncio.run(both())

    assert many < few + 20
    asyncio.run(store.aclose())


def left(store: Any) -> int:
    """Count the messages in the store, whatever they belong to."""
    return asyncio.run(store._read(lambda db: db.execute("SELECT count(*) FROM messages").fetchone()[0]))
