"""The events of a run, as complete sequences, from run and stream alike."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired

from llm_do import ApprovalDecision, CallContext, EventBus, Runtime, Toolkit, UsageError, tool
from llm_do.runtime.record.events import EVENT_TYPES
from llm_do.threads import ObservationManager, memory_store
from tests.support.history import results_of, strict
from tests.support.runs import agent, carry_out, heard, project_of, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def three_deep() -> Runtime:
    """A project where main calls scout, scout calls digger twice in parallel, and all use `add`."""
    digger = agent("digger", script(call("add", {"a": 1, "b": 1}, "d1"), "dug"), tools=[add])
    scout = agent(
        "scout",
        script([call("digger", {"input": "left"}, "s1"), call("digger", {"input": "right"}, "s2")], "scouted"),
        toolsets=[digger],
    )
    main = agent(
        "main",
        script([call("add", {"a": 2, "b": 2}, "m1"), call("scout", {"input": "go"}, "m2")], "done"),
        tools=[add],
        toolsets=[scout],
    )
    return runtime_of([main, scout, digger])


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


def test_a_subscriber_receives_only_events_that_match_its_filter() -> None:
    runtime = three_deep()
    finished, of_scout, of_thread, of_other = (
        heard(runtime, "run_finished"),
        heard(runtime, agent="scout"),
        heard(runtime, thread="t1"),
        heard(runtime, thread="t2"),
    )
    both = heard(runtime, "tool_call", agent="digger", thread="t1")

    asyncio.run(runtime.run("go", thread_id="t1"))
    asyncio.run(runtime.run("go"))

    assert finished.types == ["run_finished"] * 2
    assert {event.agent_name for event in of_scout.events} == {"scout"}
    assert len({event.run_id for event in of_thread.events}) == 1
    assert of_other.events == []
    assert [event.tool_name for event in both.events] == ["add", "add"]


@pytest.mark.parametrize("error", [RuntimeError("subscriber"), SystemExit(3)], ids=repr)
def test_a_subscriber_that_raises_affects_no_other(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    runtime = three_deep()

    def broken(event: Any) -> None:
        raise error

    runtime.on(None, broken)
    ear = heard(runtime)
    with caplog.at_level(logging.CRITICAL + 1, logger="llm_do.events"):
        result = carry_out(runtime)

    assert result.status == "completed"
    assert sorted(ear.outline) == sorted(WHOLE)


def test_unsubscribing_takes_effect_immediately_even_within_a_run() -> None:
    runtime = three_deep()
    seen: list[Any] = []

    def first_only(event: Any) -> None:
        seen.append(event)
        stop()

    stop = runtime.on(None, first_only)
    carry_out(runtime)
    stop()

    assert [event.type for event in seen] == ["run_started"]


def test_a_model_streams_only_if_a_subscriber_receives_text() -> None:
    asked: list[str] = []

    class Recording(type(script("x"))):  # type: ignore[misc]
        async def request(self, *args: Any) -> Any:
            asked.append("whole")
            return await super().request(*args)

        def request_stream(self, *args: Any, **kwargs: Any) -> Any:
            asked.append("stream")
            return super().request_stream(*args, **kwargs)

    runtime = runtime_of([agent("main", Recording(script("hello").script))])
    heard(runtime, "text_done")
    carry_out(runtime)
    stop = runtime.on("text", lambda event: None)
    carry_out(runtime)
    stop()
    carry_out(runtime)

    assert asked == ["whole", "stream", "whole"]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_exception_in_an_application_event_subscriber_is_logged_and_not_raised(
    kind: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    bus = EventBus()
    received: list[int] = []

    def broken(**data: Any) -> None:
        raise error

    async def broken_later(**data: Any) -> None:
        raise error

    bus.on("step", broken if kind == "sync" else broken_later)
    bus.on("step", lambda step: received.append(step))
    asyncio.run(bus.emit("step", step=1))

    assert received == [1]
    assert "a subscriber of 'step' failed" in caplog.text


def test_cancelling_the_emitter_of_an_application_event_propagates() -> None:
    bus = EventBus()

    async def cancelled() -> bool:
        entered = asyncio.Event()

        async def slow() -> None:
            entered.set()
            await asyncio.Event().wait()

        bus.on("step", slow)
        emitting = asyncio.create_task(bus.emit("step"))
        await entered.wait()
        emitting.cancel()
        await asyncio.wait([emitting])
        return emitting.cancelled()

    assert asyncio.run(cancelled())


def test_an_application_event_reaches_its_subscribers_in_order() -> None:
    bus = EventBus()
    received: list[str] = []

    async def slow(**data: Any) -> None:
        await asyncio.sleep(0)
        received.append(f"slow {data['step']}")

    def broken(**data: Any) -> None:
        raise ValueError("no")

    def quick(step: int) -> None:
        received.append(f"quick {step}")

    for callback in (slow, broken, quick):
        bus.on("step", callback)
    asyncio.run(bus.emit("step", step=1))
    bus.off("step", slow)
    bus.off("step", slow)
    asyncio.run(bus.emit("step", step=2))
    asyncio.run(bus.emit("unheard", step=3))

    assert received == ["slow 1", "quick 1", "quick 2"]


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


def test_warnings_from_tools_in_threads_arrive_in_order_too() -> None:
    def noisy(ctx: RunContext[CallContext], n: int) -> int:
        for step in range(100):
            ctx.deps.warn(f"{n} at {step}")
        return n

    runtime = runtime_of([agent("main", script([call("noisy", n=n) for n in range(8)], "fin"), tools=[noisy])])

    async def watch() -> list[Any]:
        return [event async for event in runtime.stream("go")]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        events = asyncio.run(watch())
    finally:
        sys.setswitchinterval(interval)

    assert [event.seq for event in events] == list(range(len(events)))
    assert sum(event.type == "warning" for event in events) == 800
    for n in range(8):
        mine = [event.message for event in events if event.type == "warning" and event.message.startswith(f"{n} ")]
        assert mine == [f"{n} at {step}" for step in range(100)]


def test_an_abandoned_call_emits_no_more_warnings() -> None:
    started, over, warned = threading.Event(), threading.Event(), threading.Event()

    def slow(ctx: RunContext[CallContext]) -> str:
        started.set()
        over.wait(60)
        ctx.deps.warn("too late")
        warned.set()
        return ""

    runtime = runtime_of([agent("main", script(call("slow")), tools=[slow])])
    ear = heard(runtime)

    async def interrupted() -> None:
        task = asyncio.ensure_future(runtime.execute("go"))
        assert await asyncio.to_thread(started.wait, 60)
        runtime.interrupt()
        await task

    asyncio.run(interrupted())
    types = ear.types
    over.set()

    assert warned.wait(60)
    assert (ear.types, types[-1]) == (types, "run_failed")


def test_an_async_callback_that_would_never_be_awaited_is_rejected() -> None:
    async def hear(event: Any) -> None: ...

    with pytest.raises(UsageError, match="can't be async"):
        three_deep().on(None, hear)


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


def test_a_result_has_each_warning_of_the_run_once() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        ctx.warn("mind the gap")
        ctx.warn("mind the gap")
        await ctx.call("inner", "x")
        return "done"

    def lonely(ctx: RunContext[CallContext]) -> str:
        """Warn."""
        ctx.deps.warn("no server")
        return "ok"

    runtime = runtime_of([agent("inner", script(call("lonely"), "ok"), tools=[lonely])], main)
    ear = heard(runtime, "warning")
    result = carry_out(runtime)

    assert len(ear.events) == 3
    assert result.to_dict()["warnings"] == [
        {"message": "mind the gap", "agent_path": "main"},
        {"message": "no server", "agent_path": ear.events[-1].path},
    ]


def test_a_run_that_ends_early_has_its_warnings_too() -> None:
    async def main(input: Any, ctx: CallContext) -> str:
        ctx.warn("mind the gap")
        raise ValueError("no")

    assert [each.message for each in carry_out(runtime_of([], main)).warnings] == ["mind the gap"]
    assert carry_out(three_deep()).to_dict()["warnings"] == []


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
