"""Runs on a thread: what they continue from, what they may use, what they leave."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart, UserPromptPart

from llm_do import (
    AgentSpec,
    CallContext,
    ContextProvider,
    HookPoint,
    ObservationManager,
    RunApprovalPolicy,
    Runtime,
    StateManager,
    ThreadConflict,
    UsageError,
    tool,
)
from llm_do.project.flows import FlowSpec
from llm_do.project.project import Budget
from llm_do.project.registry import Registered
from llm_do.project.threads import ThreadConfig, ThreadsSpec
from llm_do.runtime.context import current_call
from llm_do.threads import Conversations, memory_store
from llm_do.threads.values import Filter
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script
from tests.threads.thread_support import on_thread, record_of, whole


def runtime_on(store: Any, *specs: AgentSpec, entry: Any = None, options: Any = None, **fields: Any) -> Runtime:
    return runtime_of(specs, entry, options={"store": store, **(options or {})}, **fields)


def prompts(messages: list[Any]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


@tool(approval="allow")
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(approval="allow")
def remember(key: str, value: str) -> str:
    """Remember something."""
    ctx = current_call()
    ctx.thread.state[key] = value
    ctx.user.state["count"] = ctx.user.state.get("count", 0) + 1
    return "remembered"


# -- continuing


def test_a_thread_remembers_the_conversation_with_its_tool_calls(store: Any) -> None:
    model = script(call("add", a=1, b=2), "3")

    results = on_thread(runtime_on(store, agent("main", model, tools=[add])), "one", "two")

    assert prompts(model.asked[-1].messages) == ["one", "two"]
    assert [text for _, _, text in results_of(results[1].messages)] == ["3", "3"]
    strict(whole(store))
    assert whole(store) == results[1].messages
    assert results[0].thread_id == "t"


def test_threads_do_not_see_each_other(store: Any) -> None:
    model = script("ok")
    runtime = runtime_on(store, agent("main", model))

    on_thread(runtime, "secret", thread="a")
    on_thread(runtime, "hello", thread="b")
    on_thread(runtime, "hello", thread="a", user="ann")

    assert [prompts(asked.messages) for asked in model.asked] == [["secret"], ["hello"], ["hello"]]


def test_a_run_without_a_thread_is_not_recorded_unless_that_is_asked_for(store: Any) -> None:
    carry_out(runtime_on(store, agent("main", script("ok"))))
    assert asyncio.run(store.runs()) == []

    carry_out(runtime_on(store, agent("main", script("ok")), options={"record": True}))
    assert [run.status for run in asyncio.run(store.runs())] == ["completed"]
    assert asyncio.run(store.threads()) == []


def test_a_thread_where_nothing_may_be_recorded_is_refused(tmp_path: Path) -> None:
    runtime = runtime_of([agent("main", script("ok"))], root=tmp_path, record=False)

    with pytest.raises(UsageError, match="nothing is recorded"):
        on_thread(runtime, "hello")
    assert not (tmp_path / ".llm-do").exists()


def test_a_window_bounds_the_past_and_never_begins_with_a_result(store: Any) -> None:
    model = script(call("add", a=1, b=2), "3")
    project = {"threads": ThreadsSpec(config=ThreadConfig(history_limit=6))}
    runtime = runtime_on(store, agent("main", model, tools=[add]), **project)

    on_thread(runtime, *"abcd")

    first_of_last = model.asked[-2].messages
    assert prompts(first_of_last) == ["c", "d"]
    assert not isinstance(first_of_last[0].parts[0], ToolReturnPart)
    assert prompts(whole(store)) == ["a", "b", "c", "d"]
    assert len(whole(store)) == 16


@pytest.mark.parametrize("limit", range(1, 9))
def test_every_window_makes_a_valid_history(store: Any, limit: int) -> None:
    model = script([call("add", {"a": 1, "b": 2}, "x"), call("add", {"a": 2, "b": 2}, "y")], call("add", a=1, b=1), "4")
    config = ThreadsSpec(config=ThreadConfig(history_limit=limit))

    on_thread(runtime_on(store, agent("main", model, tools=[add]), threads=config), *"abc")

    for asked in model.asked:
        strict(asked.messages)
    strict(whole(store))
    assert len(whole(store)) == 18


def test_messages_given_by_the_caller_go_before_the_threads(store: Any) -> None:
    model = script("ok")
    runtime = runtime_on(store, agent("main", model))
    on_thread(runtime, "stored")

    asyncio.run(runtime.execute("now", thread_id="t", messages=[]))

    assert prompts(model.asked[-1].messages) == ["now"]
    assert prompts(whole(store)) == ["stored", "now"]


# -- configuration


def configure(store: Any, **config: Any) -> None:
    asyncio.run(StateManager(store).set_thread_config("t", config))


def test_settings_of_the_call_go_before_the_threads_and_those_before_the_agents(store: Any) -> None:
    models = {name: script(name) for name in ("agent", "thread", "call")}
    from llm_do import register_model_factory

    register_model_factory("threadtest", lambda name: models[name])
    spec = agent("main", "threadtest:agent")

    assert on_thread(runtime_on(store, spec), "x")[0].output == "agent"
    configure(store, model="threadtest:thread")
    assert on_thread(runtime_on(store, spec), "x")[0].output == "thread"
    assert on_thread(runtime_on(store, spec, options={"model": "threadtest:call"}), "x")[0].output == "call"


def test_a_threads_model_settings_and_prompt_are_added_to_the_agents(store: Any) -> None:
    model = script("ok")
    configure(store, model_settings={"temperature": 0.9}, system_prompt="Speak German.")
    spec = agent("main", model, instructions="Be kind.", model_settings={"temperature": 0.1, "max_tokens": 7})

    on_thread(runtime_on(store, spec), "x")

    assert model.asked[0].settings["temperature"] == 0.9
    assert model.asked[0].settings["max_tokens"] == 7
    assert (model.asked[0].info.instructions or "").split() == ["Be", "kind.", "Speak", "German."]


def test_a_threads_settings_do_not_reach_the_agents_that_its_agent_calls(store: Any) -> None:
    child_model = script("child says")
    child = agent("child", child_model, instructions="Child.")
    configure(store, system_prompt="Speak German.", model_settings={"temperature": 0.9})

    on_thread(runtime_on(store, agent("main", script(call("child", input="x"), "ok"), toolsets=[child]), child), "x")

    assert child_model.asked[0].info.instructions == "Child."
    assert "temperature" not in child_model.asked[0].settings


def test_a_new_thread_begins_with_the_projects_settings(store: Any) -> None:
    config = ThreadConfig(system_prompt="From the project.")
    model = script("ok")

    on_thread(runtime_on(store, agent("main", model), threads=ThreadsSpec(config=config)), "x")

    assert record_of(store).config == config
    assert model.asked[0].info.instructions == "From the project."


def test_a_tool_that_is_not_enabled_is_neither_shown_nor_run(store: Any) -> None:
    ran: list[str] = []

    @tool(approval="allow")
    def wipe(what: str) -> str:
        """Wipe."""
        ran.append(what)
        return "wiped"

    hooks: list[Any] = []
    model = script(
        [call("wipe", {"what": "all"}, "1"), call("wipe", {"nonsense": 1}, "2"), call("add", {"a": 1, "b": 1}, "3")],
        "ok",
    )
    configure(store, enabled_tools=["a*"])
    spec = agent(
        "main",
        model,
        tools=[add, wipe],
        hooks=[(HookPoint.PRE_TOOL_CALL, lambda **said: hooks.append(said["tool_name"]))],
    )

    result = on_thread(runtime_on(store, spec), "x")[0]

    assert model.asked[0].tools == ["add"]
    assert ran == []
    assert hooks == ["add"]
    refused = "tool 'wipe' is not enabled on this thread"
    assert results_of(result.messages) == [("1", "failed", refused), ("2", "failed", refused), ("3", "success", "2")]


def test_without_a_configuration_all_declared_tools_are_shown_and_run(store: Any) -> None:
    model = script(call("add", a=1, b=1), "ok")

    result = on_thread(runtime_on(store, agent("main", model, tools=[add])), "x")[0]

    assert model.asked[0].tools == ["add"]
    assert results_of(result.messages)[0][1] == "success"


def test_a_thread_never_enables_what_the_agent_does_not_declare(store: Any) -> None:
    configure(store, enabled_tools=["*"])
    model = script(call("remember", key="a", value="b"), "ok")

    result = on_thread(runtime_on(store, agent("main", model, tools=[add]), tools={"remember": remember}), "x")[0]

    assert model.asked[0].tools == ["add"]
    assert "unknown tool" in results_of(result.messages)[0][2]


# -- state


def test_state_is_saved_without_being_marked_and_a_users_is_shared_by_their_threads(store: Any) -> None:
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
    assert whole(store) == []


def test_without_a_thread_state_lives_as_long_as_the_run() -> None:
    def main(input: Any, ctx: CallContext) -> Any:
        ctx.thread.state["n"] = ctx.thread.state.get("n", 0) + 1
        return [ctx.thread.id, ctx.thread.state, ctx.user.state]

    runtime = runtime_of(entry=main)

    assert [carry_out(runtime).output for _ in range(2)] == [[None, {"n": 1}, {}]] * 2


def test_state_that_is_not_json_ends_the_run_and_leaves_the_conversation_and_the_old_state(store: Any) -> None:
    @tool(approval="allow")
    def spoil() -> str:
        """Spoil."""
        current_call().thread.state["x"] = object()
        return "spoilt"

    configure(store)
    runtime = runtime_on(store, agent("main", script(call("spoil"), "ok"), tools=[spoil]))

    result = on_thread(runtime, "x")[0]

    assert result.status == "failed"
    assert "isn't JSON" in str(result.error)
    assert record_of(store).state == {}
    strict(whole(store))
    assert prompts(whole(store)) == ["x"]


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

    assert prompts(whole(store)) == ["draft", "draft"]
    assert prompts(first.asked[-1].messages) == ["draft", "two"]


# -- endings


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
        "timeout": ({"tools": [add, hang], "run_timeout": 1.0}, script([*two, call("hang", {}, "3")], "x")),
        "denied": (
            {"tools": [add, asked], "return_permission_errors": False},
            script([*two, call("asked", {}, "3")], "x"),
        ),
        "hook": ({"hooks": [(HookPoint.POST_TOOL_CALL, lambda **_: 1 / 0)]}, script(two, "x")),
    }


@pytest.mark.parametrize("how", sorted(endings()))
def test_however_a_run_ends_its_thread_goes_on_from_a_valid_history(store: Any, how: str) -> None:
    fields, model = endings()[how]
    own = {name: fields.pop(name) for name in ("max_steps", "tools", "hooks") if name in fields}
    spec = agent("main", model, **{"tools": [add], **own})
    runtime = runtime_of([spec], options={"store": store}, approvals="reject_all", **fields)

    ended = on_thread(runtime, "go")[0]
    then = on_thread(runtime_on(store, agent("main", script("fine"), tools=[add])), "next")[0]

    assert ended.status != "completed"
    assert then.status == "completed", then.error
    strict(whole(store))
    assert prompts(whole(store)) == ["go", "next"]
    last = asyncio.run(store.observations(Filter(run_id=ended.run_id), limit=1))[0]
    assert (last.type, last.data["status"]) == ("run_failed", ended.status)


def test_a_cancelled_run_is_saved_before_the_cancellation_comes_out(store: Any) -> None:
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
    strict(whole(store))
    assert [(call_id, outcome) for call_id, outcome, _ in results_of(whole(store))] == [("h", "interrupted")]


# -- several writers


def test_a_run_that_lost_begins_again_where_nothing_with_effects_has_run(store: Any) -> None:
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
    assert prompts(whole(store)) == ["from elsewhere", "mine"]
    assert ear.types.count("run_started") == ear.types.count("run_finished") == 1
    assert "retry" in ear.types
    assert [event.seq for event in ear.events] == list(range(len(ear.events)))
    assert result.usage.requests == 2
    assert record_of(store).branches == ()


def test_a_run_that_lost_after_a_tool_ran_is_told_so_and_kept_as_a_branch(store: Any) -> None:
    other = runtime_on(store, agent("main", script("other")))

    async def interfere(messages: list[Any], info: object) -> str:
        await other.execute("from elsewhere", thread_id="t")
        return "late"

    runtime = runtime_on(store, agent("main", script(call("add", a=1, b=1), interfere), tools=[add]))

    result = on_thread(runtime, "mine")[0]

    assert isinstance(result.error, ThreadConflict)
    assert result.exit_code == 1
    assert prompts(whole(store)) == ["from elsewhere"]
    record = record_of(store)
    kept = [each.message for each in asyncio.run(store.history(record.branches[0]))]
    assert prompts(kept) == ["mine"]
    strict(kept)
    assert kept == result.messages
    assert {run.status for run in asyncio.run(store.runs())} == {"completed", "failed"}

    asyncio.run(Conversations(store).branch("t", from_entry=record.branches[0], expected_revision=record.revision))
    assert prompts(whole(store)) == ["mine"]


def test_settings_may_be_changed_while_a_run_goes_on(store: Any) -> None:
    async def change(messages: list[Any], info: object) -> str:
        await StateManager(store).set_thread_config("t", {"history_limit": 5})
        return "ok"

    assert on_thread(runtime_on(store, agent("main", script(change))), "x")[0].status == "completed"
    assert record_of(store).config.history_limit == 5
    assert len(whole(store)) == 2


def test_fifty_threads_at_once_do_not_mix(store: Any) -> None:
    model = script(call("add", a=1, b=2), "3")
    runtime = runtime_on(store, agent("main", model, tools=[add]))

    async def all_at_once() -> None:
        await asyncio.gather(*(runtime.run(f"q{n}", thread_id=f"t{n}") for n in range(50)))

    asyncio.run(all_at_once())

    for number in range(50):
        assert prompts(whole(store, f"t{number}")) == [f"q{number}"]
        strict(whole(store, f"t{number}"))


# -- the journal


def test_the_journal_is_what_subscribers_hear(store: Any) -> None:
    runtime = runtime_on(store, agent("main", script(call("add", a=1, b=2), "3"), tools=[add]))
    ear = heard(runtime)

    result = on_thread(runtime, "x")[0]

    seen = asyncio.run(store.observations(Filter(run_id=result.run_id)))
    assert [dict(each.data) for each in seen] == [event.to_dict() for event in ear.events]
    assert [each.seq for each in seen] == list(range(len(seen)))


def test_an_observation_subscriber_hears_the_runs_of_its_thread_and_types_only(store: Any) -> None:
    runtime = runtime_on(store, agent("main", script(call("add", a=1, b=2), "3"), tools=[add]))
    manager, told = ObservationManager(store, runtime), []
    end = manager.subscribe(told.append, types=["tool_result", "run_finished"], thread_id="a")

    on_thread(runtime, "x", thread="a")
    on_thread(runtime, "x", thread="b")
    end()
    on_thread(runtime, "x", thread="a")

    assert [(each.type, each.thread_id) for each in told] == [("tool_result", "a"), ("run_finished", "a")]
    assert told == asyncio.run(manager.get(run_id=told[0].run_id, types=["tool_result", "run_finished"]))


def test_a_denied_call_is_in_the_journal_with_who_denied_it(store: Any) -> None:
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


# -- context providers


def test_context_providers_add_to_the_instructions_and_one_that_fails_or_hangs_is_left_out() -> None:
    async def hangs(ctx: CallContext) -> str:
        await asyncio.Event().wait()
        return "never"

    def fails(ctx: CallContext) -> str:
        raise OSError("no index")

    model = script("ok")
    spec = agent(
        "main",
        model,
        instructions="Be kind.",
        context_providers=[lambda ctx: f"Asked: {ctx.frame.input.input}.", fails, ContextProvider(hangs, 0.01)],
    )
    runtime = runtime_of([spec], context_providers=[lambda _: "It is Monday."])
    ear = heard(runtime, "warning")

    carry_out(runtime, "what?")

    assert (model.asked[0].info.instructions or "").split("\n\n") == ["Be kind.", "It is Monday.", "Asked: what?."]
    assert sorted(event.message.split(";")[0] for event in ear.events) == [
        "the context provider fails failed: OSError: no index",
        "the context provider hangs took longer than 0.01 s",
    ]


def test_a_budget_counts_the_attempts_that_lost() -> None:
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
