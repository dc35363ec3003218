"""Runs on a thread: their history, settings and tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, ToolReturnPart

from llm_do import CallContext, HookPoint, UsageError, tool
from llm_do.project.thread_config import ThreadConfig, ThreadsSpec
from llm_do.runtime.record.redaction import redactor
from llm_do.threads import ContextProvider, ConversationManager, StateManager, ThreadRecord
from llm_do.threads.message_log import MessageLog
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, runtime_of
from tests.support.scripted import call, script
from tests.support.tables import sampled
from tests.threads.thread_support import (
    add,
    model_text,
    on_thread,
    prompts,
    record_of,
    remember,
    runtime_on,
    stored_messages,
    user_text,
)

# -- continuing


def test_a_thread_remembers_the_conversation_with_its_tool_calls(store: Any) -> None:
    model = script(call("add", a=1, b=2), "3")

    results = on_thread(runtime_on(store, agent("main", model, tools=[add])), "one", "two")

    assert prompts(model.asked[-1].messages) == ["one", "two"]
    assert [text for _, _, text in results_of(results[1].messages)] == ["3", "3"]
    strict(stored_messages(store))
    assert stored_messages(store) == results[1].messages
    assert results[0].thread_id == "t"


def test_threads_do_not_see_each_other(store: Any) -> None:
    model = script("ok")
    runtime = runtime_on(store, agent("main", model))

    on_thread(runtime, "secret", thread="a")
    on_thread(runtime, "hello", thread="b")
    on_thread(runtime, "hello", thread="a", user="ann")

    assert [prompts(asked.messages) for asked in model.asked] == [["secret"], ["hello"], ["hello"]]


def test_a_run_without_a_thread_is_only_recorded_on_request(store: Any) -> None:
    carry_out(runtime_on(store, agent("main", script("ok"))))
    assert asyncio.run(store.runs()) == []

    carry_out(runtime_on(store, agent("main", script("ok")), options={"record": True}))
    assert [run.status for run in asyncio.run(store.runs())] == ["completed"]
    assert asyncio.run(store.threads()) == []


def test_a_thread_is_refused_when_recording_is_off(tmp_path: Path) -> None:
    runtime = runtime_of([agent("main", script("ok"))], root=tmp_path, record=False)

    with pytest.raises(UsageError, match="nothing is recorded"):
        on_thread(runtime, "hello")
    assert not (tmp_path / ".llm-do").exists()


def test_a_window_limits_the_past_and_never_starts_with_a_result(store: Any) -> None:
    model = script(call("add", a=1, b=2), "3")
    project = {"threads": ThreadsSpec(config=ThreadConfig(history_limit=6))}
    runtime = runtime_on(store, agent("main", model, tools=[add]), **project)

    on_thread(runtime, *"abcd")

    first_of_last = model.asked[-2].messages
    assert prompts(first_of_last) == ["c", "d"]
    assert not isinstance(first_of_last[0].parts[0], ToolReturnPart)
    assert prompts(stored_messages(store)) == ["a", "b", "c", "d"]
    assert len(stored_messages(store)) == 16


@pytest.mark.sample(4)
@pytest.mark.parametrize("first", [ModelResponse([TextPart("Hello!")]), ModelRequest([SystemPromptPart("Be kind.")])])
@pytest.mark.parametrize(("limit", "seen"), [(None, True), (3, True), (2, False)])
def test_a_conversation_started_by_an_application_is_sent_from_its_beginning(
    store: Any, first: Any, limit: int | None, seen: bool
) -> None:
    asyncio.run(ConversationManager(store).add_messages("t", [first, user_text("hi"), model_text("hello")]))
    asyncio.run(StateManager(store).set_thread_config("t", {"history_limit": limit}))
    model = script("ok")

    on_thread(runtime_on(store, agent("main", model)), "now")

    begins_with = model.asked[0].messages[0].parts[0]
    assert begins_with.part_kind == (first.parts[0].part_kind if seen else "user-prompt")
    assert len(stored_messages(store)) == 5


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", sampled(range(1, 9)))
def test_every_window_is_a_valid_history(store: Any, limit: int) -> None:
    model = script([call("add", {"a": 1, "b": 2}, "x"), call("add", {"a": 2, "b": 2}, "y")], call("add", a=1, b=1), "4")
    config = ThreadsSpec(config=ThreadConfig(history_limit=limit))

    on_thread(runtime_on(store, agent("main", model, tools=[add]), threads=config), *"abc")

    for asked in model.asked:
        strict(asked.messages)
    strict(stored_messages(store), reused_ids=True)
    assert len(stored_messages(store)) == 18


@pytest.mark.sample(2)
@pytest.mark.parametrize("limit", sampled([14, 2, 10, 13, 28, 15, 16, 27, 1]))
def test_a_limit_leaves_whole_turns_and_at_least_the_last(store: Any, limit: int) -> None:
    model = script(*(call("add", a=n, b=2) for n in range(6)), "done")
    config = ThreadsSpec(config=ThreadConfig(history_limit=limit))
    runtime = runtime_on(store, agent("main", model, tools=[add]), threads=config)

    on_thread(runtime, *"abc")
    asked = next(asked for asked in reversed(model.asked) if len(asked.messages) % 14 == 1)

    past = asked.messages[:-1]
    assert prompts(past) == (["a", "b"] if limit == 28 else ["b"])
    assert len(past) == 14 * len(prompts(past))
    assert [part.content for part in past[-1].parts] == ["done"]  # type: ignore[union-attr]


def test_the_callers_messages_take_precedence_over_the_threads(store: Any) -> None:
    model = script("ok")
    runtime = runtime_on(store, agent("main", model))
    on_thread(runtime, "stored")

    asyncio.run(runtime.execute("now", thread_id="t", messages=[]))

    assert prompts(model.asked[-1].messages) == ["now"]
    assert prompts(stored_messages(store)) == ["stored", "now"]


# -- configuration


def configure(store: Any, **config: Any) -> None:
    asyncio.run(StateManager(store).set_thread_config("t", config))


def test_call_settings_override_thread_settings_which_override_agent_settings(store: Any) -> None:
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


def test_a_new_thread_starts_with_the_projects_settings(store: Any) -> None:
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
        hooks=[(HookPoint.PRE_TOOL_CALL, lambda **call: hooks.append(call["tool_name"]))],
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


def test_an_unknown_tools_refusal_names_no_tool_that_the_thread_disables(store: Any) -> None:
    configure(store, enabled_tools=["a*"])
    model = script(call("ad"), "ok")

    result = on_thread(runtime_on(store, agent("main", model, tools=[add, remember])), "x")[0]

    assert results_of(result.messages)[0][2] == "unknown tool 'ad'; available: add"


# -- context providers


def test_context_providers_add_to_the_instructions_and_a_failing_or_hanging_one_is_skipped() -> None:
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
    place = f"tests/threads/test_runs_on_threads.py:{fails.__code__.co_firstlineno + 1}"
    assert sorted(event.message.split(";")[0] for event in ear.events) == [
        f"the context provider fails failed: OSError: no index ({place})",
        "the context provider hangs took longer than 0.01 s",
    ]


@pytest.mark.slow
def test_saving_a_long_conversation_lets_other_work_go_on() -> None:
    long = [each for number in range(2_000) for each in (user_text(f"q{number}"), model_text(f"a{number}"))]
    log = MessageLog(ThreadRecord("t"), (), redactor())

    async def saving() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        await log.track(long, exact=False)
        counting.cancel()
        return turns

    assert asyncio.run(saving()) >= 10
    rows, dropped = log.take()
    assert len(rows) == 4_000
    assert [row.parent for row in rows[1:]] == [row.id for row in rows[:-1]]
    assert dropped == []
