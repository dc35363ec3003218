"""The events of a run, as complete sequences, from run and stream alike."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, ClassVar, Literal, get_args, get_type_hints

import pytest
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired

from llm_do import ApprovalDecision, CallContext, Runtime, Toolkit, tool
from llm_do.runtime.record.events.event import EVENT_TYPES, Event
from llm_do.threads import ObservationManager, memory_store
from tests.support.history import results_of, strict
from tests.support.nested import add, three_deep
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script

WHOLE = """
run_started main
call_started main
model_request main
usage main
tool_call main add
tool_call main scout
call_started main/scout
tool_result main add success
model_request main/scout
usage main/scout
tool_call main/scout digger
tool_call main/scout digger
call_started main/scout/digger
call_started main/scout/digger
model_request main/scout/digger
usage main/scout/digger
tool_call main/scout/digger add
model_request main/scout/digger
usage main/scout/digger
tool_call main/scout/digger add
tool_result main/scout/digger add success
tool_result main/scout/digger add success
model_request main/scout/digger
usage main/scout/digger
text_done main/scout/digger dug
call_finished main/scout/digger completed
tool_result main/scout digger success
model_request main/scout/digger
usage main/scout/digger
text_done main/scout/digger dug
call_finished main/scout/digger completed
tool_result main/scout digger success
model_request main/scout
usage main/scout
text_done main/scout scouted
call_finished main/scout completed
tool_result main scout success
model_request main
usage main
text_done main done
call_finished main completed
run_finished main completed
""".strip().splitlines()


def of_call(events: list[Any], call_id: str) -> list[str]:
    return [event.type for event in events if event.call_id == call_id]


def test_a_run_three_levels_deep_emits_every_event_in_order() -> None:
    runtime = three_deep()
    ear = heard(runtime)

    result = carry_out(runtime)

    assert sorted(ear.outline) == sorted(WHOLE)
    assert [event.seq for event in ear.events] == list(range(len(ear.events)))
    assert len({event.run_id for event in ear.events}) == 1
    assert ear.outline[0] == WHOLE[0]
    assert ear.outline[-2:] == WHOLE[-2:]
    assert result.output == "done"


def test_a_run_without_parallel_calls_emits_exactly_these_events() -> None:
    inner = agent("inner", script(call("add", {"a": 1, "b": 1}, "i1"), "two"), tools=[add])
    runtime = runtime_of([agent("main", script(call("inner", {"input": "x"}, "m1"), "done"), toolsets=[inner]), inner])
    ear = heard(runtime)

    carry_out(runtime)

    assert ear.outline == [
        "run_started main",
        "call_started main",
        "model_request main",
        "usage main",
        "tool_call main inner",
        "call_started main/inner",
        "model_request main/inner",
        "usage main/inner",
        "tool_call main/inner add",
        "tool_result main/inner add success",
        "model_request main/inner",
        "usage main/inner",
        "text_done main/inner two",
        "call_finished main/inner completed",
        "tool_result main inner success",
        "model_request main",
        "usage main",
        "text_done main done",
        "call_finished main completed",
        "run_finished main completed",
    ]
    assert [event.depth for event in ear.of("call_started", "run_started")] == [0, 1, 2]


def test_a_stream_yields_the_same_events_and_text_deltas() -> None:
    inner = agent("inner", script(call("add", {"a": 1, "b": 1}, "i1"), "two"), tools=[add])
    runtime = runtime_of([agent("main", script(call("inner", {"input": "x"}, "m1"), "done"), toolsets=[inner]), inner])
    ear = heard(runtime)

    async def watch() -> tuple[list[Any], Any]:
        stream = runtime.stream("go")
        return [event async for event in stream], stream.result

    events, result = asyncio.run(watch())
    whole = [event for event in events if event.type != "text"]

    carried = carry_out(runtime)
    again = [event for event in ear.events if event.run_id == carried.run_id]
    assert [event.type for event in whole] == [event.type for event in again]
    assert [event.path for event in whole] == [event.path for event in again]
    assert [event.seq for event in events] == list(range(len(events)))
    for path, text in (("main", "done"), ("main/inner", "two")):
        pieces = [event.text for event in events if event.type == "text" and event.path == path]
        assert "".join(pieces) == text
    assert (result.status, result.output, result.usage.requests) == ("completed", "done", 4)
    assert [event for event in ear.events if event.run_id == result.run_id] == events


def test_a_childs_events_come_between_its_parents_call_and_result() -> None:
    runtime = three_deep()
    ear = heard(runtime)
    carry_out(runtime)

    for parent in ear.of("tool_call"):
        children = [
            event
            for event in ear.events
            if event.parent_call_id == parent.call_id and event.call_id.endswith(parent.tool_call_id)
        ]
        [done] = [
            event
            for event in ear.of("tool_result")
            if (event.call_id, event.tool_call_id) == (parent.call_id, parent.tool_call_id)
        ]
        assert all(parent.seq < event.seq < done.seq for event in children)
        assert bool(children) == (parent.tool_name != "add")


def test_parallel_calls_of_one_agent_are_distinguished_by_call_id() -> None:
    runtime = three_deep()
    ear = heard(runtime)
    result = carry_out(runtime)

    diggers = {event.call_id: event.input["input"] for event in ear.of("call_started") if event.agent_name == "digger"}
    assert sorted(diggers.values()) == ["left", "right"]
    for call_id in diggers:
        assert of_call(ear.events, call_id) == [
            "call_started", "model_request", "usage", "tool_call", "tool_result", "model_request", "usage", "text_done",
            "call_finished",
        ]  # fmt: skip
    assert {record.call_id for record in result.calls if record.path.endswith("digger")} == set(diggers)


def test_usage_steps_and_calls_add_up_over_three_levels() -> None:
    runtime = three_deep()
    ear = heard(runtime)

    result = carry_out(runtime)

    own = [event.usage for event in ear.of("usage")]
    assert result.usage.requests == result.steps == 8
    assert result.usage.tool_calls == 6
    assert result.usage.requests == sum(usage["requests"] for usage in own)
    assert result.usage.input_tokens == sum(usage["input_tokens"] for usage in own)
    assert result.usage.output_tokens == sum(usage["output_tokens"] for usage in own)
    assert result.usage.to_dict()["total_tokens"] == result.usage.input_tokens + result.usage.output_tokens
    assert sorted(record.path for record in result.calls) == ["main/scout", "main/scout/digger", "main/scout/digger"]
    main_requests = sum(event.path == "main" for event in ear.of("usage"))
    assert result.usage.requests == main_requests + sum(record.usage.requests for record in result.calls)
    assert result.steps == main_requests + sum(record.steps for record in result.calls)
    main_tokens = sum(event.usage["input_tokens"] for event in ear.of("usage") if event.path == "main")
    assert result.usage.input_tokens == main_tokens + sum(record.usage.input_tokens for record in result.calls)
    for record in result.calls:
        strict(record.messages)
        assert record.status == "completed"
    assert runtime.usage == result.usage
    assert [text for _, _, text in results_of(result.messages)] == ["4", "scouted"]


def test_every_event_serializes_to_json() -> None:
    runtime = three_deep()
    ear = heard(runtime)
    carry_out(runtime)

    for event in ear.events:
        data = json.loads(json.dumps(event.to_dict(), allow_nan=False))
        assert data["type"] in EVENT_TYPES
        assert list(data)[:4] == ["type", "seq", "time", "run_id"]


def test_events_are_immutable() -> None:
    runtime = three_deep()
    ear = heard(runtime, "run_started")
    carry_out(runtime)

    with pytest.raises(AttributeError):
        ear.events[0].entry = "other"


def test_a_failed_run_emits_its_error() -> None:
    runtime = runtime_of([agent("main", script(ValueError("no such thing")))])
    ear = heard(runtime)

    result = carry_out(runtime)

    assert ear.outline == [
        "run_started main",
        "call_started main",
        "model_request main",
        "usage main",
        "call_finished main provider_failed",
        "run_failed main provider_failed",
    ]
    assert ear.events[-1].error["type"] == "ProviderError"
    assert "no such thing" in ear.events[-1].error["message"]
    assert result.status == "provider_failed"


# -- subscribers


def test_functions_called_by_name_emit_events_like_agents() -> None:
    async def main(input: Any, ctx: CallContext) -> int:
        return await ctx.call("add", {"a": 1, "b": 2})

    runtime = Runtime(project_of([], main, tools={"add": add}))
    ear = heard(runtime)
    result = carry_out(runtime)

    assert result.output == 3
    assert ear.outline == [
        "run_started main",
        "call_started main",
        "call_started main/add",
        "call_finished main/add completed",
        "call_finished main completed",
        "run_finished main completed",
    ]


def test_context_changes_are_recorded_even_without_subscribers() -> None:
    kit = Toolkit("kit")

    @kit.tool(enables_states=["on"])
    def choose(ctx: Any, number: int) -> Any:
        return "chosen", {"number": number}

    async def written() -> list[Any]:
        store = memory_store()
        spec = agent("main", script([call("choose", number=7)], "fin"), toolsets=[kit])
        result = await runtime_of([spec], options={"store": store, "record": True}).run("go")
        return await ObservationManager(store).get(run_id=result.run_id, types=["state_changed"])

    [change] = asyncio.run(written())
    assert (change.data["updates"], change.data["states"]) == ({"number": 7}, ["on"])


@pytest.mark.parametrize("kind", ["approval", "ask_user", "raised"])
def test_the_duration_of_a_tool_call_excludes_the_wait_for_a_person(kind: str) -> None:
    """The person takes 20 ms."""

    async def answer(question: Any) -> Any:
        until = time.perf_counter() + 0.02
        while time.perf_counter() < until:
            pass
        return ApprovalDecision("once") if kind != "ask_user" else "yes"

    @tool(approval="allow" if kind == "raised" else "ask")
    def send(ctx: RunContext[Any]) -> str:
        """Send."""
        if kind == "raised" and not ctx.tool_call_approved:
            raise ApprovalRequired
        return "sent"

    model = script(call("ask_user", question="Really?") if kind == "ask_user" else call("send"), "done")
    spec = agent("main", model, tools=[send], toolsets=["ask_user"])
    runtime = runtime_of([spec], approvals=answer, options={"ask_user": answer})
    ear = heard(runtime)
    carry_out(runtime)

    (began,), (event,) = ear.of("tool_call"), ear.of("tool_result")
    assert event.status == "success"
    assert event.waited >= 0.02
    assert event.duration + event.waited <= event.time - began.time + 0.005


def test_a_tool_call_that_nobody_is_asked_about_waits_for_no_one() -> None:
    def add(a: int) -> int:
        """Add."""
        return a

    runtime = runtime_of([agent("main", script(call("add", a=1), "done"), tools=[add])])
    ear = heard(runtime)
    carry_out(runtime)

    assert ear.of("tool_result")[0].waited == 0


def test_the_result_of_a_call_says_what_was_decided_about_it_and_why() -> None:
    tools = script([call("add", a=1, b=1), call("nothing")], "done")
    runtime = runtime_of([agent("main", tools, tools=[add])], options={"deny": ["add"]})
    ear = heard(runtime)

    carry_out(runtime)

    results = {event.tool_name: event.decision for event in ear.of("tool_result")}
    assert results["add"]["effect"] == "deny"
    assert results["add"]["rule"] == "add"
    assert "the rule add" in results["add"]["reason"]
    assert results["nothing"] is None


@pytest.mark.parametrize("kind", get_args(Event), ids=lambda kind: kind.type)
def test_the_type_of_an_event_is_one_literal_for_type_checkers_too(kind: Any) -> None:
    assert get_type_hints(kind)["type"] == ClassVar[Literal[kind.type]]


def test_a_clock_that_is_set_back_makes_no_event_earlier_and_no_run_shorter_than_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.time()

    def set_back() -> str:
        """Set the clock back by a day."""
        monkeypatch.setattr("time.time", lambda: now - 86_400)
        return "done"

    store = memory_store()
    runtime = runtime_of(
        [agent("main", script([call("set_back")], "over"), tools=[set_back])], options={"store": store, "record": True}
    )
    log = heard(runtime)
    result = carry_out(runtime)
    record = asyncio.run(store.run(result.run_id))
    times = [event.time for event in log.events]

    assert times == sorted(times)
    assert record is not None
    assert record.finished is not None
    assert record.finished >= record.started


def test_a_clock_that_is_set_back_while_a_model_thinks_makes_no_answer_come_before_its_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.time()

    def think(messages: object, info: object) -> str:
        monkeypatch.setattr("time.time", lambda: now - 86_400)
        return "over"

    store = memory_store()
    runtime = runtime_of([agent("main", script(think))], options={"store": store, "record": True})
    runtime.on("text", lambda _: None)
    (exchange,) = asyncio.run(store.exchanges(carry_out(runtime).run_id))

    assert exchange.first_token is not None
    assert exchange.begun <= exchange.first_token <= exchange.ended
