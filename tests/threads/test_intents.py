"""Intent before effect: what a run is about to do is on disk before it does what can't be taken back."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from llm_do import CallContext, StoreError, tool
from llm_do.runtime.record.store.store_writes import Batch
from llm_do.threads import SqliteStore, batch_writer
from tests.support.runs import agent, heard, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import on_thread, runtime_on, stored_messages

ON_DISK = (
    "SELECT type, json_extract(data, '$.tool_call_id') FROM events ORDER BY seq",
    "SELECT body FROM messages JOIN runs ON messages.id = runs.tip",
)


def on_disk(root: Path) -> tuple[list[tuple[str, str | None]], list[Any]]:
    """Read the events, and the newest message of each running run, as another process sees them."""
    db = sqlite3.connect(root / "state.db")
    try:
        events, messages = (db.execute(query).fetchall() for query in ON_DISK)
        return events, [json.loads(body) for (body,) in messages]
    finally:
        db.close()


def looking(root: Path, seen: list[Any], **options: Any) -> Callable[[str], str]:
    """Make a tool that looks for itself in the store as soon as it starts."""

    @tool(approval="allow", **options)
    def pay(to: str) -> str:
        """Pay."""
        events, messages = on_disk(root)
        seen.append(([ids for kind, ids in events if kind == "tool_call"], messages))
        return f"paid {to}"

    return pay


@pytest.mark.parametrize("thread", [None, "t"])
def test_a_tool_finds_its_call_and_the_response_that_asked_for_it(tmp_path: Path, thread: str | None) -> None:
    seen: list[Any] = []
    calls = [call("pay", {"to": name}, name) for name in ("ann", "bob", "eve")]
    spec = agent("main", script(calls, "done"), tools=[looking(tmp_path, seen)])

    store = SqliteStore(tmp_path / "state.db")
    result = asyncio.run(runtime_on(store, spec, options={"record": True}).execute("go", thread_id=thread))

    assert result.status == "completed", result.error
    assert [ids for ids, _ in seen] == [["ann", "bob", "eve"]] * 3
    newest = [messages[0]["parts"] for _, messages in seen if messages]
    assert [[part["tool_call_id"] for part in parts] for parts in newest] == [["ann", "bob", "eve"]] * len(newest)
    assert len(newest) == (3 if thread else 0)
    asyncio.run(store.aclose())


def test_a_nested_agents_tool_and_a_function_called_by_name_are_on_disk_too(tmp_path: Path) -> None:
    seen: list[Any] = []

    def work(input: str, ctx: CallContext) -> str:
        seen.append(on_disk(tmp_path)[0][-1][0])
        return "worked"

    async def entry(input: Any, ctx: CallContext) -> str:
        await ctx.call("work", "x")
        return await ctx.call("payer", "pay")

    payer = agent("payer", script(call("pay", {"to": "ann"}, "p"), "done"), tools=[looking(tmp_path, seen)])
    store = SqliteStore(tmp_path / "state.db")
    runtime = runtime_of([payer], entry, tools={"work": work}, options={"store": store, "record": True})

    assert asyncio.run(runtime.execute("go")).status == "completed"
    assert seen[0] == "call_started"
    assert seen[1][0] == ["p"]
    asyncio.run(store.aclose())


def test_a_request_is_sent_when_the_results_it_tells_of_are_on_disk(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(messages: list[ModelMessage], info: object) -> str:
        told = [part.tool_call_id for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        seen.append((told, [ids for kind, ids in on_disk(tmp_path)[0] if kind == "tool_result"]))
        return "done"

    @tool(approval="allow", repeatable=True)
    def read(name: str) -> str:
        """Read."""
        return name

    calls = [call("read", {"name": name}, name) for name in "ab"]
    store = SqliteStore(tmp_path / "state.db")
    on_thread(runtime_on(store, agent("main", script(calls, look), tools=[read])), "go")

    assert [(told, sorted(recorded)) for told, recorded in seen] == [(["a", "b"], ["a", "b"])]
    asyncio.run(store.aclose())


class FullStore(SqliteStore):
    """A store whose disk fills up when a tool is called."""

    async def write(self, batch: Batch) -> None:
        if any(event.type == "tool_call" for event in batch.events):
            raise StoreError("the disk is full")
        await super().write(batch)


@pytest.mark.parametrize("thread", [None, "t"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_tool_whose_call_cannot_be_recorded_does_not_run_and_the_run_ends(
    tmp_path: Path, thread: str | None, nested: bool
) -> None:
    ran: list[str] = []

    @tool(approval="allow")
    def pay(to: str) -> str:
        """Pay."""
        ran.append(to)
        return "paid"

    specs = [agent("main", script(call("pay", to="ann"), "done"), tools=[pay])]
    if nested:
        specs = [agent("boss", script(call("main", input="go"), "done"), toolsets=["main"]), *specs]
    runtime = runtime_on(FullStore(tmp_path / "state.db"), *specs, options={"record": True})
    ear = heard(runtime)

    result = asyncio.run(runtime.execute("go", thread_id=thread))

    assert ran == []
    assert result.status == "failed"
    assert isinstance(result.error, StoreError)
    assert result.error.message == "the disk is full"
    assert [event.type for event in ear.of("run_failed", "run_finished")] == ["run_failed"]
    assert {event.status for event in ear.of("tool_result")} <= {"failed", "cancelled"}


def test_a_repeatable_tool_does_not_wait(tmp_path: Path) -> None:
    @tool(approval="allow", repeatable=True)
    def read(name: str) -> str:
        """Read."""
        return f"read {name}"

    store = FullStore(tmp_path / "state.db")
    result = asyncio.run(
        runtime_on(store, agent("main", script(call("read", name="a"), "done"), tools=[read])).execute("go")
    )

    assert result.status == "completed"


def test_events_are_on_disk_in_order_without_holes(tmp_path: Path) -> None:
    seen: list[list[int]] = []

    @tool(approval="allow")
    async def work(item: int) -> str:
        """Work."""
        db = sqlite3.connect(tmp_path / "state.db")
        seen.append([seq for (seq,) in db.execute("SELECT seq FROM events ORDER BY seq")])
        db.close()
        await asyncio.sleep(0)
        return "worked"

    turns = [[call("work", item=number) for number in range(5)]] * 2
    store = SqliteStore(tmp_path / "state.db")
    on_thread(runtime_on(store, agent("main", script(*turns, "done"), tools=[work])), "go")

    assert len(seen) == 10
    assert all(each == list(range(len(each))) for each in seen)
    assert len(stored_messages(store)) == 6
    asyncio.run(store.aclose())


class Counting(SqliteStore):
    """Counts the batches that a run writes."""

    batches = 0

    async def write(self, batch: Batch) -> None:
        self.batches += 1
        await super().write(batch)


def test_what_a_call_leaves_is_written_before_it_and_with_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit has the response and the intent, the next one the result and the history that is sent."""
    monkeypatch.setattr(batch_writer, "PROMPTLY", 60.0)  # a slow machine may take longer than usual
    calls = [call("pay", {"to": f"n{number}"}, f"p{number}") for number in range(5)]
    spec = agent("main", script(*calls, "done"), tools=[looking(tmp_path, [])])
    store = Counting(tmp_path / "state.db")

    assert on_thread(runtime_on(store, spec), "go")[0].status == "completed"
    assert store.batches <= 2 * len(calls) + 2
