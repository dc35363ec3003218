"""The states of threads and users, which persist between runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_do import CallContext, UsageError, tool
from llm_do.project.flow_spec import FlowSpec
from llm_do.project.registry import Registered
from llm_do.runtime.context.call_context import current_call
from llm_do.runtime.record.stored_records import Filter
from llm_do.threads import StateManager
from tests.support.history import strict
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import on_thread, prompts, record_of, remember, runtime_on, stored_messages


def test_state_is_saved_automatically_and_a_users_state_is_shared_by_their_threads(store: Any) -> None:
    model = script(call("remember", key="lang", value="de"), "ok")
    runtime = runtime_on(store, agent("main", model, tools=[remember]))

    on_thread(runtime, "x", thread="a", user="ann")
    on_thread(runtime, "x", thread="b", user="ann")
    on_thread(runtime, "x", thread="a", user="bob")

    assert record_of(store, "a", "ann").state == {"lang": "de"}
    assert asyncio.run(store.user_state("ann"))[0] == {"count": 2}
    assert asyncio.run(store.user_state("bob"))[0] == {"count": 1}


def test_a_function_entry_keeps_state_on_its_thread_and_no_messages(store: Any) -> None:
    def main(input: Any, ctx: CallContext) -> int:
        ctx.thread.state["runs"] = ctx.thread.state.get("runs", 0) + 1
        return ctx.thread.state["runs"]

    results = on_thread(runtime_on(store, entry=main), "x", "x", "x")

    assert [result.output for result in results] == [1, 2, 3]
    assert stored_messages(store) == []


def test_without_a_thread_state_lives_as_long_as_the_run() -> None:
    def main(input: Any, ctx: CallContext) -> Any:
        ctx.thread.state["n"] = ctx.thread.state.get("n", 0) + 1
        return [ctx.thread.id, ctx.thread.state, ctx.user.state]

    runtime = runtime_of(entry=main)

    assert [carry_out(runtime).output for _ in range(2)] == [[None, {"n": 1}, {}]] * 2


def test_a_state_is_saved_with_a_run_that_fails_and_that_of_no_user_is_not_kept(store: Any) -> None:
    def main(input: Any, ctx: CallContext) -> Any:
        ctx.thread.state["n"] = ctx.thread.state.get("n", 0) + 1
        ctx.user.state["n"] = ctx.user.state.get("n", 0) + 1
        if ctx.thread.state["n"] == 1:
            raise ValueError("no")
        return [ctx.thread.state, ctx.user.state]

    for user, count in (("ann", 2), (None, 1)):
        results = on_thread(runtime_on(store, entry=main), "x", "x", user=user)
        assert [(result.status, result.output) for result in results] == [
            ("failed", None),
            ("completed", [{"n": 2}, {"n": count}]),
        ]


def test_state_that_is_not_json_ends_the_run_and_leaves_the_conversation_and_the_old_state(store: Any) -> None:
    @tool(approval="allow")
    def spoil() -> str:
        """Spoil."""
        current_call().thread.state["x"] = object()
        return "spoilt"

    asyncio.run(StateManager(store).set_thread_config("t", {}))
    runtime = runtime_on(store, agent("main", script(call("spoil"), "ok"), tools=[spoil]))

    ear = heard(runtime)

    result = on_thread(runtime, "x")[0]

    assert result.status == "failed"
    assert "isn't JSON" in str(result.error)
    assert record_of(store).state == {}
    strict(stored_messages(store))
    assert prompts(stored_messages(store)) == ["x"]
    assert [run.status for run in asyncio.run(store.runs())] == ["failed"]
    seen = asyncio.run(store.observations(Filter(run_id=result.run_id)))
    assert [dict(each.data) for each in seen] == [event.to_dict() for event in ear.events]
    assert len(result.errors) == 1


def test_a_flow_keeps_the_history_of_its_last_agent(store: Any) -> None:
    first, last = script("draft"), script("final")
    flow = FlowSpec("article", agents=("writer", "editor"))
    specs = [agent("writer", first), agent("editor", last)]
    runtime = runtime_on(store, *specs, entry=None)
    runtime.registry = runtime.registry.extended({"article": Registered("article", "flow", flow)})

    async def turns() -> None:
        for text in ("one", "two"):
            assert (await runtime.execute(text, entry="article", thread_id="t")).error is None

    asyncio.run(turns())

    assert prompts(stored_messages(store)) == ["draft", "draft"]
    assert prompts(first.asked[-1].messages) == ["draft", "two"]


def test_a_lone_surrogate_in_a_state_or_a_prompt_is_replaced(store: Any) -> None:
    @tool(approval="allow")
    def keep() -> str:
        """Store a file name that isn't valid text."""
        current_call().thread.state["name"] = current_call().user.state["name"] = "a\udcff"
        return "kept"

    result = on_thread(runtime_on(store, agent("main", script(call("keep"), "ok"), tools=[keep])), "b\ud83d", user="u")[
        0
    ]

    assert result.status == "completed", result.error
    assert record_of(store, user="u").state == {"name": "a\ufffd"}
    assert asyncio.run(store.user_state("u"))[0] == {"name": "a\ufffd"}
    assert prompts(stored_messages(store, user="u")) == ["b\ufffd"]


def test_a_name_that_cannot_be_stored_is_a_typed_error(store: Any) -> None:
    runtime = runtime_on(store, agent("main", script("ok")))

    for names in ({"thread": "t\udcff"}, {"user": "u\udcff"}):
        with pytest.raises(UsageError, match="a lone surrogate"):
            on_thread(runtime, "x", **names)
