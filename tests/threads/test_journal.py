"""The journal of runs: its entries and its subscribers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import RunApprovalPolicy, tool
from llm_do.project.thread_config import ThreadConfig
from llm_do.runtime.record.store.store_writes import Batch, EventRow
from llm_do.runtime.record.stored_records import Filter, RunRecord
from llm_do.threads import ObservationManager
from tests.support.runs import agent, heard, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import add, on_thread, runtime_on


def test_the_journal_has_the_events_that_subscribers_receive(store: Any) -> None:
    runtime = runtime_on(store, agent("main", script(call("add", a=1, b=2), "3"), tools=[add]))
    ear = heard(runtime)

    result = on_thread(runtime, "x")[0]

    seen = asyncio.run(store.observations(Filter(run_id=result.run_id)))
    assert [dict(each.data) for each in seen] == [event.to_dict() for event in ear.events]
    assert [each.seq for each in seen] == list(range(len(seen)))


def test_a_running_tool_call_is_in_the_journal(store: Any) -> None:
    seen: list[str] = []

    @tool(approval="allow")
    async def look_at_the_journal() -> str:
        """Poll until the journal has this call, or give up."""
        for _ in range(200):
            seen[:] = [each.type for each in await store.observations(Filter(thread_id="t"))]
            if "tool_call" in seen:
                break
        return "looked"

    spec = agent("main", script(call("look_at_the_journal"), "ok"), tools=[look_at_the_journal])
    on_thread(runtime_on(store, spec), "x")

    assert seen[-1] == "tool_call"


def test_an_observation_subscriber_receives_only_its_thread_and_types(store: Any) -> None:
    runtime = runtime_on(store, agent("main", script(call("add", a=1, b=2), "3"), tools=[add]))
    manager, received = ObservationManager(store, runtime), []
    end = manager.subscribe(received.append, types=["tool_result", "run_finished"], thread_id="a")

    on_thread(runtime, "x", thread="a")
    on_thread(runtime, "x", thread="b")
    end()
    on_thread(runtime, "x", thread="a")

    assert [(each.type, each.thread_id) for each in received] == [("tool_result", "a"), ("run_finished", "a")]
    assert received == asyncio.run(manager.get(run_id=received[0].run_id, types=["tool_result", "run_finished"]))


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(3)], ids=repr)
def test_a_failing_journal_subscriber_does_not_affect_the_run(
    error: BaseException, store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = runtime_on(store, agent("main", script("done")))
    manager, received = ObservationManager(store, runtime), []

    def broken(_: object) -> None:
        raise error

    manager.subscribe(broken)
    manager.subscribe(lambda item: received.append(item.type))
    result = on_thread(runtime, "x")[0]

    assert result.output == "done"
    assert received[-1] == "run_finished"
    assert "a subscriber of the journal failed on run_finished" in caplog.text


def test_a_denied_call_is_in_the_journal_with_the_source_of_the_denial(store: Any) -> None:
    @tool
    def wipe() -> str:
        """Wipe."""
        return "wiped"

    runtime = runtime_of(
        [agent("main", script(call("wipe"), "ok"), tools=[wipe])],
        approvals=RunApprovalPolicy("reject_all"),
        options={"store": store},
    )
    result = on_thread(runtime, "x")[0]

    seen = asyncio.run(store.observations(Filter(run_id=result.run_id, types=("approval_resolved", "tool_result"))))
    assert [each.data.get("status") or each.data.get("decision") for each in seen][-1] == "denied"


def test_the_events_of_a_losing_attempt_stay_in_the_journal(store: Any) -> None:
    other = runtime_on(store, agent("main", script("other")))

    async def interfere(messages: list[Any], info: object) -> str:
        if len(model.asked) == 1:
            await other.execute("from elsewhere", thread_id="t")
        return "mine"

    model = script(interfere)
    runtime = runtime_on(store, agent("main", model))
    ear = heard(runtime)

    result = on_thread(runtime, "x")[0]

    seen = asyncio.run(store.observations(Filter(run_id=result.run_id)))
    assert [each.type for each in seen].count("usage") == 2
    assert "retry" in [each.type for each in seen]
    assert [dict(each.data) for each in seen] == [event.to_dict() for event in ear.events]


def test_a_runs_entries_keep_their_order_whatever_the_clock_does(store: Any) -> None:
    async def write() -> list[int]:
        await store.begin_run(RunRecord("r", "running", "main", None, None, 1.0), ThreadConfig())
        await store.write(
            Batch("r", [EventRow(seq, time, "warning", "{}") for seq, time in enumerate([5.0, 4.0, 6.0])])
        )
        return [each.seq for each in await store.observations(Filter(run_id="r"))]

    assert asyncio.run(write()) == [0, 1, 2]
