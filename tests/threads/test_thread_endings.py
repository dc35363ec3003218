"""A thread continues from a valid history however its last run ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import HookPoint, StoreError, tool
from llm_do.runtime.record.stored_records import Filter
from tests.support.history import results_of, strict
from tests.support.runs import agent, heard, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import add, on_thread, prompts, runtime_on, stored_messages


def endings() -> dict[str, tuple[dict[str, Any], Any]]:
    @tool(approval="allow")
    async def hang() -> str:
        """Hang."""
        await asyncio.Event().wait()
        return "never"

    @tool(approval="allow")
    def broken() -> str:
        """Break."""
        raise ValueError("no")

    @tool
    def asked() -> str:
        """Needs a person."""
        return "done"

    two = [call("add", {"a": 1, "b": 1}, "1"), call("add", {"a": 2, "b": 2}, "2")]
    return {
        "step limit": ({"max_steps": 2}, script(two, two)),
        "loop": ({}, script(two)),
        "provider": ({}, script(two, ValueError("provider is down"))),
        "provider at once": ({}, script(ValueError("provider is down"))),
        "tool error": (
            {"tools": [add, broken], "on_tool_error": "raise"},
            script([*two, call("broken", {}, "3")], "x"),
        ),
        "budget": ({"budget": {"tool_calls": 1}}, script(two, "x")),
        "timeout": ({"tools": [add, hang], "run_timeout": 3.0}, script([*two, call("hang", {}, "3")], "x")),
        "denied": (
            {"tools": [add, asked], "return_permission_errors": False},
            script([*two, call("asked", {}, "3")], "x"),
        ),
        "hook": ({"hooks": [(HookPoint.POST_TOOL_CALL, lambda **_: 1 / 0)]}, script(two, "x")),
    }


@pytest.mark.sample(5)
@pytest.mark.parametrize("how", sorted(endings()))
def test_a_thread_continues_from_a_valid_history_however_its_last_run_ended(store: Any, how: str) -> None:
    fields, model = endings()[how]
    own = {name: fields.pop(name) for name in ("max_steps", "tools", "hooks") if name in fields}
    spec = agent("main", model, **{"tools": [add], **own})
    runtime = runtime_of([spec], options={"store": store}, approvals="reject_all", **fields)

    ended = on_thread(runtime, "go")[0]
    then = on_thread(runtime_on(store, agent("main", script("fine"), tools=[add])), "next")[0]

    assert ended.status != "completed"
    assert then.status == "completed", then.error
    strict(stored_messages(store))
    assert prompts(stored_messages(store)) == ["go", "next"]
    last = asyncio.run(store.observations(Filter(run_id=ended.run_id), limit=1))[0]
    assert (last.type, last.data["status"]) == ("run_failed", ended.status)


def test_a_cancelled_run_is_saved_before_the_cancellation_is_raised(store: Any) -> None:
    @tool(approval="allow")
    async def hang() -> str:
        """Hang."""
        task.cancel()
        await asyncio.Event().wait()
        return "never"

    async def cancelled() -> None:
        nonlocal task
        task = asyncio.ensure_future(runtime.execute("go", thread_id="t"))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: Any = None
    runtime = runtime_on(store, agent("main", script(call("hang", {}, "h"), "x"), tools=[hang]))
    asyncio.run(cancelled())

    assert [run.status for run in asyncio.run(store.runs())] == ["interrupted"]
    strict(stored_messages(store))
    assert [(call_id, outcome) for call_id, outcome, _ in results_of(stored_messages(store))] == [("h", "interrupted")]


@pytest.mark.parametrize("conflict", [False, True])
def test_a_cancellation_while_the_end_is_saved_is_raised_and_the_run_is_closed(store: Any, conflict: bool) -> None:
    other, real = runtime_on(store, agent("main", script("other"))), store.finish_run
    task: Any = None

    async def interfere(messages: list[Any], info: object) -> str:
        if conflict and len(model.asked) == 1:
            await other.execute("from elsewhere", thread_id="t")
        store.finish_run = cancelled_while_saving
        return "mine"

    async def cancelled_while_saving(ending: Any) -> None:
        store.finish_run = real
        task.cancel()
        # Two rounds of the loop: by then the cancelled task has been notified.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await real(ending)

    async def cancelled() -> None:
        nonlocal task
        task = asyncio.ensure_future(runtime.execute("go", thread_id="t"))
        with pytest.raises(asyncio.CancelledError):
            await task

    model = script(interfere)
    runtime = runtime_on(store, agent("main", model))
    ear = heard(runtime)
    asyncio.run(cancelled())

    assert len(model.asked) == 1
    assert ear.types[-1] == ("run_failed" if conflict else "run_finished")
    last = next(run for run in asyncio.run(store.runs()) if run.id == ear.events[0].run_id)
    assert last.status == ("interrupted" if conflict else "completed")
    assert store._active == {}


def test_a_run_cancelled_while_starting_does_not_stay_open(store: Any) -> None:
    begin = store.begin_run

    async def cancelled() -> None:
        task = asyncio.ensure_future(runtime.execute("go", thread_id="t"))

        async def cancelled_while_beginning(*args: Any) -> Any:
            asyncio.get_running_loop().call_soon(task.cancel)
            return await begin(*args)

        store.begin_run = cancelled_while_beginning
        with pytest.raises(asyncio.CancelledError):
            await task
        store.begin_run = begin

    runtime = runtime_on(store, agent("main", script("x")))
    asyncio.run(cancelled())

    assert [run.status for run in asyncio.run(store.runs())] == ["interrupted"]
    assert on_thread(runtime, "again")[0].status == "completed"


def test_a_losing_run_that_cannot_restart_has_a_result(store: Any) -> None:
    other, begin = runtime_on(store, agent("main", script("other"))), store.begin_run

    async def refuse(*_: Any) -> Any:
        raise StoreError("the disk is gone")

    async def interfere(messages: list[Any], info: object) -> str:
        await other.execute("from elsewhere", thread_id="t")
        store.begin_run = refuse
        return "mine"

    runtime = runtime_on(store, agent("main", script(interfere)))
    ear = heard(runtime)

    result = on_thread(runtime, "go")[0]
    store.begin_run = begin

    assert isinstance(result.error, StoreError)
    assert ear.types[-1] == "run_failed"
    assert {run.status for run in asyncio.run(store.runs())} == {"completed", "failed"}
