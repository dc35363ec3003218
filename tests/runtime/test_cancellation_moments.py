"""A run may be cancelled at any moment: nothing of it stays open, and its history can be continued."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic_ai import RunContext

from llm_do import CallContext
from tests.support.history import strict
from tests.support.runs import Answers, agent, heard, runtime_of
from tests.support.scripted import call, script


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def within_time(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(bounded())


async def nothing_left_running() -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def _after(steps: int, task: asyncio.Task[Any]) -> None:
    for _ in range(steps):
        if task.done():
            return
        await asyncio.sleep(0)
    task.cancel()


def _hops(hops: int, meters: list[Any] | None = None) -> Callable[..., Awaitable[str]]:
    async def hop(ctx: RunContext[CallContext], n: int) -> str:
        if meters is not None:
            meters.append(ctx.deps.run.budget)
        for _ in range(hops):
            await asyncio.sleep(0)
        return f"hopped {n}"

    return hop


@given(st.integers(0, 120), st.integers(0, 4), st.sampled_from(["approve_all", "ask"]), st.booleans())
def test_a_run_cancelled_at_any_moment_leaves_nothing_open(steps: int, hops: int, mode: str, streamed: bool) -> None:
    async def scenario() -> None:
        meters: list[Any] = []
        hop = _hops(hops, meters)
        worker = agent("worker", script([call("hop", n=1), call("nope")], "w"), tools=[hop], max_tokens=10)
        main = agent(
            "main",
            script([call("worker", input="a"), call("hop", n=0), call("worker", input="b")], call("hop", n=2), "fin"),
            tools=[hop],
            toolsets=[worker],
            max_tokens=10,
        )
        runtime = runtime_of(
            [main, worker], approvals=Answers() if mode == "ask" else mode, budget={"output_tokens": 100_000}
        )
        ear = heard(runtime)
        if streamed:
            runtime.on("text", lambda event: None)
        task = asyncio.ensure_future(runtime.execute("go"))
        await _after(steps, task)
        with suppress(asyncio.CancelledError):
            result = await task
            strict(result.messages)
        assert not any(meter.is_held for meter in meters)
        await nothing_left_running()
        for event_type, end in (
            ("tool_call", "tool_result"),
            ("call_started", "call_finished"),
            ("approval_requested", "approval_resolved"),
        ):
            assert len(ear.of(event_type)) == len(ear.of(end))
        if ear.events:
            assert ear.types[-1] in ("run_failed", "run_finished")

    within_time(scenario)


@pytest.mark.sample(1)
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_runs_tasks_end_with_it_after_however_many_turns_of_the_loop_it_is_cancelled(
    streamed: bool, nested: bool
) -> None:
    hop = _hops(1)
    worker = agent("worker", script([call("hop", n=1)], "w"), tools=[hop])
    first = [call("worker", input="a"), call("hop", n=0)] if nested else [call("hop", n=0)]
    runtime = runtime_of([agent("main", script(first, "fin"), tools=[hop], toolsets=[worker]), worker])
    if streamed:
        runtime.on("text", lambda event: None)

    async def scenario() -> None:
        for turns in range(41):
            task = asyncio.ensure_future(runtime.execute("go"))
            await _after(turns, task)
            with suppress(asyncio.CancelledError):
                await task
            await nothing_left_running()

    within_time(scenario)


@given(st.integers(1, 60))
def test_a_run_interrupted_at_any_moment_can_be_continued(steps: int) -> None:
    async def scenario() -> None:
        main = agent(
            "main",
            script([call("hop", n=1), call("hop", n=2), call("nope")], call("hop", n=3), "fin"),
            tools=[_hops(2)],
        )
        runtime = runtime_of([main])
        task = asyncio.ensure_future(runtime.execute("go"))
        for _ in range(steps):
            await asyncio.sleep(0)
        runtime.interrupt()
        result = await task
        strict(result.messages)
        main.model = script("continued")
        assert (await runtime.run("continue", messages=result.messages)).output == "continued"

    within_time(scenario)
