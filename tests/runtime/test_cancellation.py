"""However a run is ended from outside, nothing keeps running, nothing stays open, and the history is valid."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai import RunContext, Tool as PydanticTool
from pydantic_ai.toolsets import FunctionToolset

from llm_do import CallContext, Runtime
from llm_do.threads import memory_store
from tests.support.history import results_of, strict
from tests.support.runs import Answers, agent, heard, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


class Site:
    """A run that blocks in a tool, a model request, an approval or a child until it is cancelled."""

    def __init__(self, where: str) -> None:
        self.reached = asyncio.Event()
        self.cancelled_tools = 0
        self.entered = self.exited = 0
        self.contexts: list[CallContext] = []

        async def hang(ctx: RunContext[CallContext]) -> str:
            self.contexts.append(ctx.deps)
            self.reached.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled_tools += 1
                raise
            return "never"

        async def hanging(messages: Any, info: Any) -> Any:
            self.reached.set()
            await asyncio.Event().wait()

        async def asked(request: Any) -> Any:
            self.reached.set()
            await asyncio.Event().wait()

        class Counted(FunctionToolset[Any]):
            async def __aenter__(toolset) -> Any:  # noqa: N805
                self.entered += 1
                return toolset

            async def __aexit__(toolset, *exception: Any) -> None:  # noqa: N805
                self.exited += 1

        def counted(ctx: RunContext[Any]) -> FunctionToolset[Any]:
            return Counted([add])

        first = [call("add", {"a": 1, "b": 2}, "done-1"), call("hang", {}, "open-1")]
        inner = agent("inner", script(first, "x"), tools=[hang], toolsets=[counted])
        self.main = {
            "tool": agent("main", script(first, "fin"), tools=[hang], toolsets=[counted]),
            "model": agent("main", script([call("add", {"a": 1, "b": 2}, "done-1")], hanging), toolsets=[counted]),
            "approval": agent("main", script([call("add", {"a": 1, "b": 2}, "open-1")], "fin"), toolsets=[counted]),
            "child": agent(
                "main",
                script([call("inner", {"input": "a"}, "open-1"), call("inner", {"input": "b"}, "open-2")], "fin"),
                toolsets=[inner, counted],
            ),
        }[where]
        self.runtime: Runtime = runtime_of(
            [self.main, inner], approvals=asked if where == "approval" else "approve_all"
        )
        self.ear = heard(self.runtime)

    def check(self) -> None:
        """Check that nothing is open: each tool_call has its result, each call its end, each toolset its exit."""
        calls = [(event.call_id, event.tool_call_id) for event in self.ear.of("tool_call")]
        results = [(event.call_id, event.tool_call_id) for event in self.ear.of("tool_result")]
        assert sorted(calls) == sorted(results)
        assert len(self.ear.of("call_started")) == len(self.ear.of("call_finished"))
        assert [event.seq for event in self.ear.events] == list(range(len(self.ear.events)))
        assert self.ear.types[-1] == "run_failed"
        assert self.ear.events[-1].status == "interrupted"
        assert self.entered == self.exited > 0
        assert all(ctx.cancelled for ctx in self.contexts)
        assert self.cancelled_tools == len(self.contexts)


def within_time(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


WHERE = ["tool", "model", "approval", "child"]


async def nothing_left_running() -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("where", WHERE)
def test_cancelling_from_outside_closes_everything(where: str) -> None:
    async def scenario() -> None:
        site = Site(where)
        task = asyncio.ensure_future(site.runtime.run("go"))
        await site.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        site.check()
        await nothing_left_running()

    within_time(scenario)


@pytest.mark.parametrize("where", WHERE)
def test_an_interrupted_run_has_a_result_to_continue_from(where: str) -> None:
    async def scenario() -> None:
        site = Site(where)
        done = asyncio.Event()
        site.runtime.on("tool_result", lambda event: done.set() if event.tool_call_id == "done-1" else None)
        task = asyncio.ensure_future(site.runtime.execute("go"))
        await site.reached.wait()
        if where == "tool":
            await done.wait()
        site.runtime.interrupt()
        result = await task
        site.check()
        await nothing_left_running()

        assert (result.status, result.exit_code) == ("interrupted", 130)
        strict(result.messages)
        for record in result.calls:
            strict(record.messages)
            assert record.status == "interrupted"
        outcomes = {one: outcome for one, outcome, _ in results_of(result.messages)}
        assert {one: outcome for one, outcome in outcomes.items() if one.startswith("open")} == dict.fromkeys(
            [one for one in outcomes if one.startswith("open")], "interrupted"
        )
        if where == "tool":
            assert outcomes == {"done-1": "success", "open-1": "interrupted"}

        site.main.model = script("continued")
        site.runtime.registry.agents()
        again = await site.runtime.run("continue", messages=result.messages)
        assert again.output == "continued"
        strict(again.messages)

    within_time(scenario)


@pytest.mark.parametrize("where", WHERE)
def test_leaving_a_stream_early_cancels_the_run(where: str) -> None:
    async def scenario() -> None:
        site = Site(where)
        events: AsyncIterator[Any] = site.runtime.stream("go").__aiter__()
        async for event in events:
            if site.reached.is_set() or event.type == "approval_requested":
                break
            if where == "model" and event.type == "tool_result":
                break
        await events.aclose()  # type: ignore[attr-defined]
        site.check()
        await nothing_left_running()

    within_time(scenario)


def test_interrupting_ends_every_active_run() -> None:
    async def scenario() -> None:
        site = Site("tool")
        tasks = [asyncio.ensure_future(site.runtime.execute("go")) for _ in range(5)]
        while len(site.contexts) < 5:  # noqa: ASYNC110
            await asyncio.sleep(0)
        threading.Thread(target=site.runtime.interrupt).start()
        assert [result.status for result in await asyncio.gather(*tasks)] == ["interrupted"] * 5
        await nothing_left_running()

    within_time(scenario)


def test_cancelling_twice_still_waits_for_the_tools_cleanup() -> None:
    async def scenario() -> None:
        started, cleaned = asyncio.Event(), asyncio.Event()

        async def careful() -> str:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.02)
                cleaned.set()
            return ""

        runtime = runtime_of([agent("main", script(call("careful")), tools=[careful])])
        task = asyncio.ensure_future(runtime.run("go"))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert cleaned.is_set()
        await nothing_left_running()

    within_time(scenario)


def test_a_synchronous_tool_is_abandoned_and_can_see_the_cancellation() -> None:
    async def scenario() -> None:
        started, gave_up, release = threading.Event(), threading.Event(), threading.Event()

        def slow(ctx: RunContext[CallContext]) -> str:
            started.set()
            while not ctx.deps.cancelled:
                if release.wait(0.001):
                    return "released"
            gave_up.set()
            return "late"

        runtime = runtime_of([agent("main", script(call("slow")), tools=[slow])])
        ear = heard(runtime, "tool_result")
        task = asyncio.ensure_future(runtime.run("go"))
        try:
            assert await asyncio.to_thread(started.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [event.status for event in ear.events] == ["cancelled"]
            assert await asyncio.to_thread(gave_up.wait, 30)
        finally:
            release.set()

    within_time(scenario)


def test_cancellation_releases_the_reserved_budget() -> None:
    async def scenario() -> None:
        started = asyncio.Event()

        async def hanging(messages: Any, info: Any) -> Any:
            started.set()
            await asyncio.Event().wait()

        slow = agent("slow", script(hanging), max_tokens=90)
        quick = agent("quick", script("quick"), max_tokens=90)

        async def main(input: Any, ctx: CallContext) -> str:
            task = asyncio.ensure_future(ctx.call("slow", "x"))
            await started.wait()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            return await ctx.call("quick", "y")

        runtime = runtime_of([slow, quick], main, budget={"output_tokens": 100})
        result = await runtime.run("go")
        assert result.output == "quick"
        assert [record.status for record in result.calls] == ["interrupted", "completed"]

    within_time(scenario)


def test_calls_that_never_started_have_a_result_too() -> None:
    def alone() -> str:
        raise AssertionError("never asked")

    spec = agent(
        "main",
        script([call("alone", {}, "first"), call("add", {"a": 1, "b": 2}, "second")], "fin"),
        tools=[PydanticTool(alone, sequential=True), add],
    )
    runtime = runtime_of([spec], approvals=Answers(["abort"]))
    ear = heard(runtime, "tool_result")
    result = asyncio.run(runtime.execute("go"))

    assert [(event.tool_call_id, event.status) for event in ear.events] == [
        ("first", "failed"),
        ("second", "cancelled"),
    ]
    assert [(one, outcome) for one, outcome, _ in results_of(result.messages)] == [
        ("first", "interrupted"),
        ("second", "interrupted"),
    ]
    strict(result.messages)


@pytest.mark.parametrize("ending", ["completed", "failed", "limited"])
def test_a_factorys_toolset_lives_as_long_as_its_call(ending: str) -> None:
    life: list[str] = []

    class Living(FunctionToolset[Any]):
        async def __aenter__(self) -> Any:
            life.append("enter")
            return self

        async def __aexit__(self, *exception: Any) -> None:
            life.append("exit")

    def factory(ctx: RunContext[CallContext]) -> Any:
        life.append(f"made for {ctx.deps.path}")
        return Living([add])

    turns: Any = {
        "completed": [call("add", a=1, b=1), "x"],
        "failed": [call("add", a=1, b=1), ValueError("x")],
        "limited": [call("add", a=1, b=1)],
    }
    worker = agent("worker", script(*turns[ending]), toolsets=[factory])
    main = agent("main", script([call("worker", input="a")], [call("worker", input="b")], "fin"), toolsets=[worker])
    result = asyncio.run(runtime_of([main, worker]).run("go"))

    assert result.output == "fin"
    assert life == ["made for main/worker", "enter", "exit"] * 2


def test_a_run_cancelled_while_its_end_is_saved_emits_the_end_that_was_saved() -> None:
    async def scenario() -> None:
        saving, go_on = asyncio.Event(), asyncio.Event()
        store = memory_store()
        finish = store.finish_run

        async def slowly(ending: Any) -> None:
            saving.set()
            await go_on.wait()
            await finish(ending)

        store.finish_run = slowly  # type: ignore[method-assign]
        runtime = runtime_of([agent("main", script("done"))], options={"store": store, "record": True})
        ear = heard(runtime)
        task = asyncio.ensure_future(runtime.run("go"))
        await saving.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

        [kept] = await store.runs()
        assert (ear.types[-1], ear.events[-1].status) == ("run_finished", kept.status)
        assert runtime.usage.requests == 1

    within_time(scenario)
